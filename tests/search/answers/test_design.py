from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats
from simulated import ATTENTION, question, row

from search.answers.anova import indicators
from search.answers.design import design_of
from search.answers.family import Family
from search.strategies.screen_design import screening_design
from search.strategies.screen_plan import NOTE, screening_of

A, S = ATTENTION, "sepconv"
FAMILY = Family(layer_contrasts=4)
MEASURED = (0.293, 0.350, 0.363, 0.368, 0.367)
SD_ALL_ATTENTION, SD_HYBRID = 0.0095, 0.0025
DESIGN = screening_design(4)


def screened(value, n_layers=4, n=None, fresh=()):
    """Rows of a study that ran the first n runs of its design; fresh seeds repeat some stacks."""
    screening = screening_of([(A, S)] * n_layers, A, S, {})
    rows = []
    for run in screening.design.runs[:n]:
        labels = screening.labels(run)
        attrs = {NOTE: {**screening.note(), "run": len(rows), "runs": 0}}
        rows.append(row(len(rows), labels, value(run), phase="screen", sampler_attrs=attrs))
    for run, values in fresh:
        for k, loss in enumerate(values):
            rows.append(
                row(len(rows), screening.labels(run), loss, phase="confirm", seed_index=k + 1)
            )
    return rows


def noisy(mean, sd=0.002, seed=0):
    generator = np.random.default_rng(seed)
    return lambda run: mean(run) + sd * generator.standard_normal()


def crossed(mean, n_seeds, seed=0, sd=lambda run: SD_HYBRID, n_layers=4):
    """Rows of a listed study of all stacks; each seed moves all of them a little."""
    generator = np.random.default_rng(seed)
    rows = []
    for k in range(n_seeds):
        shift = 0.01 * generator.standard_normal()
        for run in product((False, True), repeat=n_layers):
            value = mean(run) + shift + sd(run) * generator.standard_normal()
            labels = tuple(S if cheap else A for cheap in run)
            rows.append(
                row(len(rows), labels, value, phase="confirm", seed=k + 1, seed_index=k + 1)
            )
    return rows


def stack(text):
    return tuple({"A": A, "S": S}[letter] for letter in text)


def design(rows, pick="SSSA", family=FAMILY, **asked):
    asked = question(n_layers=len(pick), **asked)
    return design_of(rows, asked, stack(pick), family)


def value_by_run(rows):
    return {
        tuple(mixer == S for mixer in r.mixers): r.selection["loss"]
        for r in rows
        if r.phase != "confirm"
    }


def test__layers__full_factorial__average_is_the_contrast_of_halves():
    rows = screened(noisy(lambda run: 3.0, sd=1.0))
    y = value_by_run(rows)
    found = design(rows)
    assert (found.kind, found.n_runs, found.is_complete) == ("full factorial", 16, True)
    for layer in found.layers:
        cheap = [value for run, value in y.items() if run[layer.layer]]
        other = [value for run, value in y.items() if not run[layer.layer]]
        assert len(cheap) == len(other) == 8
        assert layer.average.estimate == pytest.approx(np.mean(cheap) - np.mean(other))
        half = (layer.average.high - layer.average.low) / 2
        # Two readings of four layers hold together at the first look's 4 %.
        t = stats.t.ppf(1 - 0.01 / 8 / 2, found.error.df)
        assert half == pytest.approx(t * found.error.sd * np.sqrt(1 / 8 + 1 / 8))


def test__layers__folded_design_with_its_ladder__average_is_the_contrast_of_halves():
    rows = screened(noisy(lambda run: 3.0, sd=1.0), n_layers=8)
    found = design(rows, pick="S" * 8)
    assert (found.kind, found.n_runs) == ("folded Plackett-Burman", 19)
    base = screening_of([(A, S)] * 8, A, S, {}).design.base
    y = value_by_run(rows)
    for layer in found.layers:
        signs = [1 if run[layer.layer] else -1 for run in base]
        expected = np.mean([2 * s * y[run] for s, run in zip(signs, base, strict=True)])
        assert layer.average.estimate == pytest.approx(expected)


def test__tests__one_seed__are_scipys_and_those_of_nested_least_squares():
    rows = screened(noisy(lambda run: 3.0 - 0.1 * run[0], sd=0.05), n_layers=6)
    found = design(rows, pick="S" * 6)
    y = value_by_run(rows)
    by_count = {}
    for run, value in y.items():
        by_count.setdefault(sum(run), []).append(value)
    expected = stats.f_oneway(*by_count.values())
    assert found.count_test.f == pytest.approx(expected.statistic)
    assert found.count_test.p_value == pytest.approx(expected.pvalue)
    counts = indicators([sum(run) for run in y])
    layers = np.array(list(y), dtype=float)[:, :-1]
    values = np.array(list(y.values()))
    rss = [
        float(np.linalg.lstsq(model, values, rcond=None)[1][0])
        for model in (counts, np.hstack([counts, layers]))
    ]
    df2 = len(y) - counts.shape[1] - 5
    f = (rss[0] - rss[1]) / 5 / (rss[1] / df2)
    assert found.position_test.f == pytest.approx(f)
    assert (found.position_test.df1, found.position_test.df2) == (5, df2)
    assert found.position_test.p_value == pytest.approx(stats.f.sf(f, 5, df2))
    assert found.error.sd == pytest.approx(np.sqrt(rss[1] / df2))


def test__tests__several_seeds__are_those_of_seeds_as_blocks():
    rows = crossed(lambda run: 3.0 - 0.05 * sum(run) ** 0.5, 3, n_layers=3)
    found = design(rows, pick="SSS", is_listed=True)
    y, cells, seeds = [], [], []
    for r in rows:
        y.append(r.selection["loss"])
        cells.append(tuple(mixer == S for mixer in r.mixers))
        seeds.append(r.seed_index)
    values = np.array(y)

    def rss(*groups):
        model = np.hstack([indicators(group) for group in groups])
        fitted = np.linalg.lstsq(model, values, rcond=None)[0]
        return float(((values - model @ fitted) ** 2).sum())

    numbers = [int("".join(str(int(c)) for c in cell), 2) for cell in cells]
    counts = [sum(cell) for cell in cells]
    full = rss(numbers, seeds)
    error = full / (7 * 2)
    assert found.error.source == "seeds"
    assert found.error.df == 14
    assert found.error.sd == pytest.approx(np.sqrt(error))
    assert found.position_test.df1 == 4
    between = rss(counts, seeds) - full
    # All-attention and all-cheap are alone with their counts; the other six speak of places.
    shared = [k for k, count in enumerate(counts) if count in (1, 2)]
    values = values[shared]
    alone = rss([numbers[k] for k in shared], [seeds[k] for k in shared]) / (5 * 2)
    assert found.position_test.f == pytest.approx(between / 4 / alone)
    assert found.position_test.df2 == 10


def test__count__planted__is_found_and_position_is_not():
    found = design(screened(noisy(lambda run: 3.0 - 0.05 * min(2, sum(run)))))
    assert found.count_word == "matters"
    assert found.count_test.p_value < 1e-6
    assert found.position_word == "no matter"
    assert found.position_test.p_value > 0.05
    means = [count.mean.estimate for count in found.counts]
    assert means == pytest.approx([3.0, 2.95, 2.9, 2.9, 2.9], abs=0.005)
    for count, truth in zip(found.counts, [3.0, 2.95, 2.9, 2.9, 2.9], strict=True):
        assert count.mean.low < truth < count.mean.high


def test__position__planted__is_found_beside_the_count():
    found = design(screened(noisy(lambda run: 3.0 - 0.05 * run[0] + 0.05 * run[3])))
    assert found.position_word == "matters"
    assert found.position_test.p_value < 1e-6
    assert (found.move.origin, found.move.target) == (0, 3)
    assert found.move.interval.estimate == pytest.approx(0.1, abs=0.01)
    assert [layer.average_word for layer in found.layers] == [
        "better",
        "may be cheap",
        "may be cheap",
        "keep attention",
    ]


def test__position__large_noise__is_undecided_and_not_denied():
    found = design(screened(noisy(lambda run: 3.0, sd=0.05)))
    assert found.position_word == "undecided"
    assert found.move.interval.low < -0.02 or found.move.interval.high > 0.02


def test__layers__interaction__average_and_stack_differ_and_both_are_kept():
    # One cheap layer among the first two is as good as it gets; the second costs.
    rows = crossed(lambda run: 3.0 - 0.1 * (run[0] != run[1]), 3)
    found = design(rows, pick="SAAA", is_listed=True)
    assert found.together_test.p_value < 1e-6
    first = found.layers[0]
    assert first.disagree
    assert first.average.estimate == pytest.approx(0.0, abs=0.01)
    assert first.average_word == "may be cheap"
    assert first.in_stack.estimate == pytest.approx(-0.1, abs=0.01)
    assert first.stack_word == "better"
    second = found.layers[1]
    assert second.in_stack.estimate == pytest.approx(0.1, abs=0.01)
    assert second.stack_word == "keep attention"
    assert not found.layers[2].disagree


def test__layers__interaction_and_repeats__their_noise_is_the_error():
    spread = (3.0, 3.002, 2.998, 3.003, 2.997)
    fresh = [((True,) * 4, spread), ((False,) * 4, spread)]

    def mean(run):
        return 3.0 - 0.1 * (run[0] != run[1])

    without = design(screened(noisy(mean)), pick="SAAA")
    found = design(screened(noisy(mean), fresh=fresh), pick="SAAA")
    assert (without.error.source, without.layers[0].disagree) == ("lack of fit", False)
    assert (found.error.source, found.error.df) == ("repeats", 8)
    assert found.layers[0].disagree
    assert (found.together_test.df1, found.together_test.df2) == (8, 8)


@pytest.mark.parametrize("pick", ["SSSA", "AASS"])
def test__layers__in_the_stack__is_cheap_minus_attention_of_the_two_stacks(pick):
    rows = screened(noisy(lambda run: 3.0, sd=1.0))
    y = value_by_run(rows)
    found = design(rows, pick=pick)
    own = tuple(letter == "S" for letter in pick)
    for layer in found.layers:
        k = layer.layer
        cheap, other = ((*own[:k], state, *own[k + 1 :]) for state in (True, False))
        assert layer.in_stack.estimate == pytest.approx(y[cheap] - y[other])
        assert layer.n_pairs == 1
        half = (layer.in_stack.high - layer.in_stack.low) / 2
        # Any of the stacks might have been the pick, in any of its four layers.
        t = stats.t.ppf(1 - 0.01 / (4 * len(y)) / 2, found.error.df)
        assert half == pytest.approx(t * found.error.sd * np.sqrt(2))


def test__layers__in_the_stack_over_seeds__is_the_mean_of_the_pairs():
    rows = crossed(lambda run: 3.0 - 0.1 * run[3], 4)
    found = design(rows, pick="SSSS", is_listed=True)
    y = {(r.code, r.seed_index): r.selection["loss"] for r in rows}
    last = found.layers[3]
    pairs = [y["SSSS", k] - y["SSSA", k] for k in range(1, 5)]
    assert (last.n_pairs, last.in_stack.estimate) == (4, pytest.approx(np.mean(pairs)))


def test__layers__pick_of_a_third_mixer__is_changed_layer_by_layer_where_trained():
    rows = screened(noisy(lambda run: 3.0))
    pick = (S, "bproj", A, A)
    rows.append(row(len(rows), pick, 2.5))
    found = design_of(rows, question(), pick, FAMILY)
    assert found.layers[1].mixer == "bproj"
    saaa = next(r.selection["loss"] for r in rows if r.code == "SAAA")
    assert found.layers[1].in_stack.estimate == pytest.approx(2.5 - saaa)
    assert found.layers[0].in_stack is None
    assert found.layers[0].stack_reason == "the changed stack is not trained"


def test__layers__more_contrasts_than_readings__wider_by_the_familys_level():
    rows = screened(noisy(lambda run: 3.0))
    widths = [
        layer.average.high - layer.average.low
        for family in (FAMILY, replace(FAMILY, layer_contrasts=8), Family(layer_contrasts=16))
        for layer in design(rows, family=family).layers[:1]
    ]
    assert widths[0] == widths[1] < widths[2]


def test__design__cut_short__says_so_and_gives_no_word_of_averages():
    found = design(screened(noisy(lambda run: 3.0 - 0.2 * run[0]), n=10))
    assert not found.is_complete
    assert (found.n_runs, found.n_planned) == (10, 16)
    first = found.layers[0]
    assert (first.average_word, first.average_reason) == ("undecided", "the design is incomplete")
    assert first.average.estimate == pytest.approx(-0.2, abs=0.05)


def test__design__failed_run__is_incomplete():
    rows = screened(noisy(lambda run: 3.0))
    rows[7] = replace(rows[7], state="failed", selection={})
    found = design(rows)
    assert (found.n_runs, found.is_complete) == (15, False)


def test__error__repeats_that_agree__are_pooled_with_the_lack_of_fit():
    generator = np.random.default_rng(4)
    runs = [(False,) * 4, (True, True, False, False), (True,) * 4]
    alike = [(run, 3.0 + 0.01 * generator.standard_normal(4)) for run in runs]
    alone = design(screened(noisy(lambda run: 3.0, sd=0.01))).error
    found = design(screened(noisy(lambda run: 3.0, sd=0.01), fresh=alike)).error
    assert (alone.source, alone.df) == ("lack of fit", 8)
    assert (found.source, found.df) == ("lack of fit and repeats", 17)
    squares = sum(((values - values.mean()) ** 2).sum() for _, values in alike)
    assert found.sd == pytest.approx(np.sqrt((8 * alone.sd**2 + squares) / 17))


@pytest.mark.parametrize("sds", [(0.1, 0.1, 0.1), (0.1, 1e-3, 0.01)])
def test__error__repeats_that_do_not_agree__are_left_out(sds):
    generator = np.random.default_rng(4)
    runs = [(False,) * 4, (True, True, False, False), (True,) * 4]
    fresh = [
        (run, 3.0 + sd * generator.standard_normal(5)) for run, sd in zip(runs, sds, strict=True)
    ]
    found = design(screened(noisy(lambda run: 3.0, sd=0.01), fresh=fresh)).error
    assert (found.source, found.df) == ("lack of fit", 8)


def test__error__stacks_of_different_noise__each_repeated_one_has_its_own():
    wide, narrow = (3.1, 2.9, 3.05, 2.95), (3.0, 3.001, 2.999, 3.002)
    fresh = [((False,) * 4, wide), ((True,) * 4, narrow)]
    found = design(screened(noisy(lambda run: 3.0 - 0.1 * (sum(run) > 1)), fresh=fresh))
    assert not found.error.agrees
    for place, repeats in ((0, wide), (4, narrow)):
        mean = found.counts[place].mean
        half = stats.t.ppf(0.975, 3) * np.std(repeats, ddof=1)
        assert (mean.high - mean.low) / 2 == pytest.approx(half)
        assert mean.df == pytest.approx(3)
    # What stands alone with its count is left out of the test.
    assert (found.count_test.df1, found.count_test.df2) == (2, 11)
    assert "without stacks alone with their count" in found.count_reason


def replayed(rng, sd):
    """A study of a null world: the pick is the luckiest stack, and finalists have fresh seeds."""
    values = {run: 3.0 + sd(run) * rng.standard_normal() for run in DESIGN.runs}
    pick = min(values, key=values.get)
    finalists = sorted({pick, (False,) * 4, (True,) * 4})
    fresh = [(run, 3.0 + sd(run) * rng.standard_normal(4)) for run in finalists]
    return design(screened(values.get, fresh=fresh), pick="".join("AS"[cheap] for cheap in pick))


@pytest.mark.parametrize("factor", [1, 4])
def test__design__nothing_matters_and_the_pick_is_luck__few_studies_have_a_false_word(factor):
    rng = np.random.default_rng(1)
    found = [replayed(rng, lambda run: 0.01 if any(run) else 0.01 * factor) for _ in range(100)]
    words = [{word for x in one.layers for word in (x.average_word, x.stack_word)} for one in found]
    # At 5 % of studies, 12 or more of 100 happen in one of 230 sets.
    assert sum(bool(said & {"better", "keep attention"}) for said in words) < 12
    assert sum(one.position_word == "matters" for one in found) < 12
    # All-attention has four times the noise; it is left out of the test where repeats show that.
    assert sum(one.count_word == "matters" for one in found) < (12 if factor == 1 else 20)


def test__error__nothing_left__no_interval_and_a_reason_never_zero():
    for rows in (screened(lambda run: 3.0), screened(noisy(lambda run: 3.0), n_layers=2)):
        found = design(rows, pick="S" * rows[0].n_layers)
        assert found.error.sd is None
        assert found.count_test is None or found.count_test.p_value < 1
        assert all(layer.average.low is None for layer in found.layers)
        assert {layer.average_word for layer in found.layers} == {"undecided"}
        assert all(layer.average_reason for layer in found.layers)
        assert found.position_word == "undecided"


def measured(n_seeds, seed):
    rows = crossed(
        lambda run: MEASURED[sum(run)],
        n_seeds,
        seed=seed,
        sd=lambda run: SD_HYBRID if any(run) else SD_ALL_ATTENTION,
    )
    asked = {"direction": "maximize", "tolerance": 0.01, "is_listed": True}
    return design(rows, **asked)


def test__design__table_as_measured_on_prototypes__count_matters_and_position_does_not():
    found = [measured(4, seed) for seed in range(40)]
    assert all(one.count_word == "matters" and one.count_test.p_value < 0.01 for one in found)
    assert all(one.position_word == "no matter" for one in found)
    # Where nothing matters p is uniform.
    p_values = [one.position_test.p_value for one in found]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    first = found[0]
    assert [count.n for count in first.counts] == [1, 4, 6, 4, 1]
    # The count is not additive, so the average of a layer misleads about the best stack.
    assert all(layer.average_word == "better" for layer in first.layers)
    assert all(layer.disagree for layer in first.layers)
    assert first.layers[3].stack_word != "better"


def test__design__complete_table_of_another_strategy__is_one_too():
    rows = [replace(r, phase="search", seed_index=0) for r in crossed(lambda run: 3.0, 1)]
    assert design(rows).kind == "full factorial"
    assert design(rows[:-1]) is None


def test__design__listed_stacks_that_are_no_factorial__test_the_count_and_no_layer():
    rows = [
        r
        for r in crossed(lambda run: 3.0 - 0.05 * sum(run), 4)
        if r.code in {"AAAA", "SAAA", "SSAA", "SSSA", "SSSS"}
    ]
    found = design(rows, is_listed=True)
    assert (found.kind, found.n_runs, found.error.df) == ("list", 5, 12)
    assert found.count_word == "matters"
    assert found.position_test is None
    assert found.position_word == "undecided"
    assert {layer.average for layer in found.layers} == {None}
    assert found.layers[2].in_stack.estimate == pytest.approx(-0.05, abs=0.01)


def test__design__a_round_of_seeds_that_was_cut__takes_whole_rounds():
    rows = crossed(lambda run: 3.0, 3)[:40]
    found = design(rows, is_listed=True)
    assert (found.n_seeds, found.n_runs) == (2, 16)


def test__design__chosen_samples__are_none():
    rows = [row(k, stack(text), 3.0) for k, text in enumerate(["AAAA", "SSSS", "SSAA", "SAAA"])]
    assert design(rows) is None
    assert design([]) is None
