import json
import math

import pytest
from simulated import ATTENTION, MIXERS, Simulation, listed_baselines, question, row

from search.answers.answer import make_answer
from search.report.cautions import cautions

A, S, B = ATTENTION, "sepconv", "bproj"


def answer_of(rows, asked=None, chosen=None):
    return make_answer(
        rows, asked or question(), chosen or {}, mixers=MIXERS, baselines=listed_baselines()
    )


def confirm(number, layers, loss, seed, **fields):
    return row(number, layers, loss, phase="confirm", seed=seed, seed_index=seed, **fields)


def effect(answer, layer, mixer):
    return next(e for e in answer.layers if (e.layer, e.mixer) == (layer, mixer))


def test__noise__two_architectures__pooled_by_degrees_of_freedom():
    rows = [confirm(k, (A,) * 4, loss, k + 1) for k, loss in enumerate([1.0, 2.0, 3.0])]
    rows += [confirm(k + 3, (S,) * 4, loss, k + 1) for k, loss in enumerate([1.0, 1.6])]
    noise = answer_of(rows).noise
    assert noise.df == 3
    assert noise.sd == pytest.approx(math.sqrt((2 * 1.0 + 1 * 0.18) / 3))
    assert [repeat.n for repeat in noise.repeats] == [3, 2]
    assert noise.low < noise.sd < noise.high
    # chi-square quantiles with 3 degrees of freedom: 0.2158 and 9.3484
    assert noise.high == pytest.approx(noise.sd * math.sqrt(3 / 0.2158), rel=1e-3)
    assert noise.low == pytest.approx(noise.sd * math.sqrt(3 / 9.3484), rel=1e-3)


@pytest.mark.parametrize(
    ("losses", "reason"), [([], "too few runs"), ([1.0], "too few runs"), ([1.0, 1.0], "identical")]
)
def test__noise__not_measurable__none_with_a_reason_never_zero(losses, reason):
    noise = answer_of([confirm(k, (A,) * 4, loss, k + 1) for k, loss in enumerate(losses)]).noise
    assert noise.sd is None
    assert noise.ratio is None
    assert reason in noise.reason


def test__noise__uniform_stacks__range_without_the_second_attention_and_the_short():
    losses = {(A,) * 4: 3.0, (S,) * 4: 2.5, (B,) * 4: 3.2, ("attention",) * 4: 9.0, (S, S): 8.0}
    noise = answer_of([row(k, layers, losses[layers]) for k, layers in enumerate(losses)]).noise
    assert noise.uniform_n == 3
    assert noise.uniform_range == pytest.approx(0.7)


def test__counts__full_depth_runs__grouped_by_layers_without_attention():
    rows = [
        row(0, (A, A, A, A), 3.0),
        row(1, (S, A, A, A), 2.8),
        row(2, (A, A, A, B), 2.6),
        row(3, (S, S), 1.0),
        row(4, (S, S, A, A), 2.5, state="diverged"),
        confirm(5, (A, A, A, A), 1.0, 1),
    ]
    found = answer_of(rows).counts
    assert [(entry.n_cheap, entry.n) for entry in found] == [(0, 1), (1, 2)]
    assert (found[1].mean, found[1].low, found[1].high) == pytest.approx((2.7, 2.6, 2.8))


def test__layer_effects__matched_pairs__mean_difference_of_exactly_those():
    rows = [
        row(0, (A, A, A, A), 3.0),
        row(1, (S, A, A, A), 2.8),  # pair of 0 in layer 0
        row(2, (A, B, B, B), 4.0),
        row(3, (S, B, B, B), 3.7),  # pair of 2 in layer 0
        row(4, (S, S, A, A), 2.5),  # pair of 1 in layer 1
        row(5, (S, S, S, B), 1.0),  # no pair
        row(6, (S, A, A, A), 9.0, seed=5),  # another seed: no pair
    ]
    answer = answer_of(rows)
    first = effect(answer, 0, S)
    assert first.n == 2
    assert first.interval.estimate == pytest.approx(-0.25)
    assert first.interval.low < -0.25 < first.interval.high
    single = effect(answer, 1, S)
    assert (single.n, single.word, single.reason) == (1, "undecided", "one pair")
    assert single.interval.estimate == pytest.approx(-0.3)
    assert single.interval.low is None
    absent = effect(answer, 3, S)
    assert (absent.n, absent.interval, absent.reason) == (0, None, "no pairs")


def test__layer_effects__learned_positions_baseline__is_no_partner():
    rows = [row(0, ("attention",) * 4, 3.0), row(1, (S, "attention", "attention", "attention"), 2)]
    assert all(found.n == 0 for found in answer_of(rows).layers)


def halves(first, last, seeds=(0,)):
    rows = []
    for seed in seeds:
        for layers, value in (((S, S, A, A), first), ((A, A, S, S), last)):
            rows.append(row(len(rows), layers, value + 0.001 * seed * (layers[0] == S), seed=seed))
    return rows


def repeats(start, n):
    return [
        confirm(start + k, (A,) * 4, 3.0 + 0.01 * (-1) ** k, k + 1, selection={}) for k in range(n)
    ]


@pytest.mark.parametrize(
    ("rows", "word", "n"),
    [
        (halves(2.0, 3.0), "undecided", 1),
        (halves(2.0, 3.0, seeds=(0, 1, 2)), "cheap first", 3),
        (halves(3.0, 2.0, seeds=(0, 1, 2)), "cheap last", 3),
        (halves(2.0, 2.0, seeds=(0, 1, 2)), "no matter", 3),
        (halves(2.0, 3.0) + repeats(10, 8), "cheap first", 1),
        (halves(2.0, 3.0) + repeats(10, 5), "undecided", 1),
        (halves(2.0, 2.01) + repeats(10, 8), "undecided", 1),
    ],
)
def test__position__halves__a_word_only_where_the_runs_carry_it(rows, word, n):
    position = answer_of(rows).position
    assert (position.word, position.n) == (word, n)


def test__position__a_half_is_missing__nothing_is_said():
    assert answer_of(halves(2.0, 3.0)[:1]).position is None


def curve(*values):
    return tuple((100 * (k + 1), value) for k, value in enumerate(values))


def test__ranks__one_swapped_pair__tau_by_hand():
    curves = [curve(5, 4, 1), curve(5.5, 3, 2), curve(6, 5, 3), curve(7, 6, 4)]
    rows = [row(k, (A, A, A, MIXERS[k]), 1.0, curve=values) for k, values in enumerate(curves)]
    ranks = answer_of(rows).ranks
    assert (ranks.n, ranks.previous.step, ranks.previous.last_step) == (4, 200, 300)
    assert (ranks.previous.swapped, ranks.previous.pairs) == (1, 6)
    assert ranks.previous.tau == pytest.approx((5 - 1) / 6)
    assert (ranks.half.step, ranks.half.tau) == (100, 1.0)


def test__ranks__three_architectures__too_few():
    rows = [row(k, (A, A, A, MIXERS[k]), 1.0, curve=curve(3, 2)) for k in range(3)]
    assert (answer_of(rows).ranks.n, answer_of(rows).ranks.previous) == (3, None)


@pytest.mark.parametrize(
    ("change", "spread", "word"),
    [
        (0.2, 0.001, "growing"),
        (-0.2, 0.001, "closing"),
        (0.0, 0.001, "steady"),
        (0.0, 0.05, "undecided"),
    ],
)
def test__lead__over_seeds__word_from_the_interval_of_its_change(change, spread, word):
    rows = []
    for seed, wobble in enumerate((1, -1, 0.5, -0.5), start=1):
        pick = curve(2.5, 2.0, 1.5, 1.0 - change + wobble * spread)
        rows.append(confirm(len(rows), (S,) * 4, 1.0, seed, curve=pick))
        rows.append(confirm(len(rows), (A,) * 4, 1.5, seed, curve=curve(3.0, 2.5, 2.0, 1.5)))
    lead = answer_of(rows, chosen={"pick": (S,) * 4, "reference": (A,) * 4}).lead
    assert lead.word == word
    assert lead.n == 4
    assert [step for step, _ in lead.points] == [100, 200, 300, 400]
    assert [value for _, value in lead.points] == pytest.approx([0.5, 0.5, 0.5, 0.5 + change])
    assert lead.middle_step == 200


def test__lead__one_seed__figures_but_no_word():
    rows = [
        row(0, (S,) * 4, 1.0, curve=curve(2.0, 1.0)),
        row(1, (A,) * 4, 2.0, curve=curve(2.5, 2.0)),
    ]
    lead = answer_of(rows, chosen={"pick": (S,) * 4, "reference": (A,) * 4}).lead
    assert (lead.n, lead.word) == (1, "undecided")
    assert lead.points == ((100, 0.5), (200, 1.0))


def predicted(n, probe, **fields):
    return [
        row(
            k,
            (S,) * (k % 5) + (A,) * (4 - k % 5) if k < 5 else (B,) * (k - 4) + (A,) * (8 - k),
            1.0 + 0.1 * k,
            probe=probe(k),
            params=1000 + k,
            flops=10_000 - (k * 7) % 5,
            **{name: value(k) for name, value in fields.items()},
        )
        for k in range(n)
    ]


def test__predictors__eight_architectures__trivial_ones_that_do_better_are_named():
    rows = predicted(
        8,
        probe=lambda k: (k * 3) % 8,
        probe_init=lambda k: k**2,
        curve=lambda k: ((100, 9.0 - k), (600, 1.0)),
        route=lambda k: {"seen_after": [8, 60 if k == 4 else 64], "n_pairs": 64},
    )
    found = answer_of(rows).predictors
    by_name = {entry.name: entry.correlation for entry in found.found}
    assert found.n == 8
    assert by_name["params"].estimate == pytest.approx(1.0)
    assert by_name["probe as initialised"].estimate == pytest.approx(1.0)
    assert by_name["loss at step 100"].estimate == pytest.approx(-1.0)
    assert by_name["depth"] is None
    assert "params" in found.better
    assert found.better_than_init == ("params",)
    # SciPy, of 4, 3, 2, 1, 0, 3, 2, 1 layers of attention; the fifth stack alone is local.
    assert by_name["attention layers"].estimate == pytest.approx(-0.533422, abs=1e-5)
    assert by_name["reach"].estimate == pytest.approx(-0.082479, abs=1e-5)


def test__predictors__probe_ties_with_a_trivial_one__that_one_is_named():
    found = answer_of(predicted(8, probe=lambda k: -(k**3))).predictors
    by_name = {entry.name: entry.correlation for entry in found.found}
    assert by_name["probe after training"].estimate == pytest.approx(-1.0)
    assert by_name["probe as initialised"] is None
    assert (found.better, found.better_than_init) == (("params",), ())


@pytest.mark.parametrize("missing", ["rows", "probe"])
def test__predictors__fewer_than_eight_readings__none(missing):
    rows = predicted(7 if missing == "rows" else 8, probe=lambda k: None if k == 7 else float(k))
    found = answer_of(rows).predictors
    assert (found.n, found.found) == (7, ())


def test__costs__pick_against_others__ratios_of_medians():
    rows = [
        row(0, (S,) * 4, 1.0, params=50, flops=100, step_s=0.01, latency_s=0.002),
        row(1, (S,) * 4, 1.0, params=50, flops=100, step_s=0.03, latency_s=None, seed=1),
        row(2, (A,) * 4, 2.0, params=100, flops=400, step_s=0.04, latency_s=0.004),
    ]
    answer = answer_of(rows, chosen={"pick": (S,) * 4, "reference": (A,) * 4})
    (saving,) = answer.savings
    assert (saving.against, saving.params, saving.flops) == ("reference", 2.0, 4.0)
    assert (saving.step, saving.latency) == pytest.approx((2.0, 2.0))
    assert [cost.name for cost in answer.costs] == ["pick", "reference"]


def test__leaders__order_and_direction__best_first_with_names():
    rows = [
        row(0, (A,) * 4, 3.0, phase="baseline", role="reference"),
        row(1, (S,) * 4, 2.0, phase="baseline", role="cheap"),
        row(2, (S, A, A, A), 2.5),
    ]
    chosen = {"pick": (S,) * 4, "reference": (A,) * 4}
    low = answer_of(rows, chosen=chosen).leaders
    high = answer_of(rows, question(direction="maximize"), chosen).leaders
    assert [leader.code for leader in low] == ["SSSS", "SAAA", "AAAA"]
    assert [leader.code for leader in high] == ["AAAA", "SAAA", "SSSS"]
    assert low[0].names == ("pick", "cheap")
    assert low[1].n_attention == 3


def test__C41__leaders__not_finite_or_diverged__never_shown():
    rows = [
        row(0, (A,) * 4, 3.0),
        row(1, (S,) * 4, math.nan),
        row(2, (B,) * 4, -math.inf),
        row(3, (S, A, A, A), 0.1, state="diverged"),
        row(4, (B, A, A, A), 0.2, state="pruned"),
    ]
    answer = answer_of(rows)
    assert [leader.code for leader in answer.leaders] == ["AAAA"]
    json.dumps(answer.to_dict(), allow_nan=False)


def test__reach__rows__says_what_was_left_out_and_why_trials_failed():
    rows = [
        row(0, (A,) * 4, 3.0, phase="baseline", role="reference", seconds=10.0),
        row(1, (S,) * 4, phase="baseline", state="failed", error="ValueError: boom", seconds=5.0),
    ]
    answer = answer_of(rows)
    assert answer.reach.n_trained == 1
    assert answer.reach.failed == ("cheap",)
    assert answer.reach.untested[:2] == ("first_half_cheap", "last_half_cheap")
    said = "; ".join(cautions(answer))
    assert "no run of these baselines ended with a result: cheap;" in said
    assert "the budget left out baselines (first half cheap, last half cheap" in said
    assert answer.spent.first_failure == "ValueError: boom"
    assert answer.spent.by_state == {"completed": 1, "failed": 1}
    assert answer.spent.seconds == 15.0


def test__cautions__every_confirmation_of_a_finalist_failed__names_it_first():
    rows = [row(i, (mixer,) * 4, 3.0, phase="baseline") for i, mixer in enumerate((A, S))]
    rows += [row(2 + i, (S,) * 4, 3.0 + i / 99, phase="confirm", seed=i + 1) for i in range(3)]
    failed = {"phase": "confirm", "state": "failed", "error": "RuntimeError: boom"}
    rows += [row(5 + i, (A,) * 4, seed=i + 1, **failed) for i in range(3)]
    found = cautions(answer_of(rows))
    assert found[0] == "no run that was to confirm AAAA ended with a result"
    rows.append(row(8, (A,) * 4, 3.1, phase="confirm", seed=4))
    assert not any("to confirm" in text for text in cautions(answer_of(rows)))


@pytest.mark.parametrize("budget", [1, 3, 5, 6, 9, 24, 40])
def test__to_dict__any_budget__strict_json_without_an_interval_of_zero_width(budget):
    answer = Simulation(lambda layers: 3.0 + 0.1 * (layers[0] == A), lambda layers: 0.01).run(
        budget
    )
    document = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    found = []

    def visit(value):
        if isinstance(value, dict):
            if value.get("low") is not None and "level" in value:
                found.append(value)
            for item in value.values():
                visit(item)
        elif isinstance(value, list):
            for item in value:
                visit(item)

    visit(document)
    assert all(entry["low"] < entry["high"] for entry in found)
    assert bool(found) == (budget >= 24)


def test__answer__no_rows__says_nothing():
    answer = answer_of([])
    assert (answer.pick, answer.contrasts, answer.leaders) == (None, (), ())
    assert answer.hybrid_beats_all == "undecided"
