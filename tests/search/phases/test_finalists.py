from dataclasses import replace

import pytest
from own_study import own_study

from search.phases.confirm import ConfirmPhase
from search.phases.finalists import Finalist, finalists, turns
from search.phases.history import history_of, trained_labels
from search.rows import Latency, TrialRow
from search.spec.baselines import baselines
from search.spec.limits import Limit
from search.spec.measures import COSTS
from search.spec.space import Space

A, P, S, B = "attention(rotary=true)", "attention", "sepconv", "bproj"


def study(direction="minimize"):
    return own_study(n_layers=2, choices=[A, S, B], direction=direction)


def row(number, mixers, loss, *, state="completed", seed_index=0, phase="search", **fields):
    return TrialRow(
        id=number + 1,
        study="s",
        number=number,
        phase=phase,
        state=state,
        mixers=tuple(mixers),
        n_layers=len(mixers),
        seed_index=seed_index,
        selection={} if loss is None else {"loss": loss},
        **fields,
    )


def roles(rows, direction="minimize"):
    spec = study(direction)
    found = finalists(spec, Space.of(spec), baselines(spec), rows)
    return {finalist.role: finalist.labels for finalist in found}


def test__finalists__hybrid_wins__rival_is_the_best_pure_stack_of_another_kind():
    rows = [row(0, (A, A), 1.0), row(1, (S, S), 0.8), row(2, (B, B), 0.9), row(3, (S,), 0.85)]
    rows += [row(4, (S, A), 0.7), row(5, (A, S), 0.75), row(6, (A,), 0.95)]
    assert roles(rows) == {
        "pick": (S, A),
        "reference": (A, A),
        "shorter": (S,),
        "rival": (S, S),
    }


def test__finalists__pure_stack_wins__rival_is_the_best_hybrid():
    rows = [row(0, (A, A), 1.0), row(1, (S, S), 0.6), row(2, (S, A), 0.7), row(3, (A, S), 0.65)]
    assert roles(rows) == {"pick": (S, S), "reference": (A, A), "rival": (A, S)}


def test__finalists__reference_wins__appears_once():
    rows = [row(0, (A, A), 0.1), row(1, (S, S), 0.6), row(2, (S, A), 0.7)]
    assert roles(rows) == {"pick": (A, A), "rival": (S, A)}


def test__finalists__learned_positions_are_better__stand_as_the_reference_not_as_the_pick():
    rows = [row(0, (A, A), 1.0), row(1, (P, P), 0.2), row(2, (S, A), 0.7)]
    assert roles(rows) == {"pick": (S, A), "reference": (P, P)}


def test__finalists__maximized__take_the_highest():
    rows = [row(0, (A, A), 0.3), row(1, (S, S), 0.8), row(2, (S, A), 0.7)]
    assert roles(rows, "maximize")["pick"] == (S, S)


def test__finalists__repeats_failures_and_blanks__do_not_choose():
    rows = [
        row(0, (A, A), 1.0),
        row(1, (S, S), None),
        row(2, (B, B), 0.1, state="diverged"),
        row(3, (S, A), 0.2, seed_index=1, phase="confirm"),
        row(4, (A, B), 0.3, state="stopped"),
    ]
    assert roles(rows) == {"pick": (A, A)}
    assert roles([]) == {}


def test__turns__go_round_with_rising_seed_index():
    chosen = [Finalist("pick", (S, A)), Finalist("reference", (A, A))]
    rows, order = [], []
    for number in range(5):
        finalist, seed_index = next(turns(chosen, rows))
        order.append((finalist.role, seed_index))
        state = "failed" if number == 0 else "completed"
        rows.append(row(number, finalist.labels, 1.0, state=state, seed_index=seed_index))
    assert order == [
        ("pick", 1),
        ("reference", 1),
        ("pick", 2),
        ("reference", 2),
        ("pick", 3),
    ]
    assert next(turns([], rows), None) is None


def test__turns__new_pick_after_a_raised_budget__is_first_with_its_own_seeds():
    rows = [row(0, (A, A), 1.0, seed_index=1), row(1, (A, A), 1.0, seed_index=2)]
    chosen = [Finalist("pick", (S, A)), Finalist("reference", (A, A))]
    assert next(turns(chosen, rows)) == (chosen[0], 1)


def history(rows, **facts):
    spec = study()
    defaults = {"measures": spec.measures, "study_attrs": {"n": 1}}
    return history_of(rows, Space.of(spec), **(defaults | facts))


def test__history__states__feed_a_sampler_as_documented():
    states = {
        "completed": "complete",
        "diverged": "pruned",
        "pruned": "pruned",
        "failed": "failed",
        "stopped": "failed",
        "queued": "running",
        "running": "running",
    }
    stacks = list(Space.of(study()))
    rows = [row(n, stacks[n], 0.5, state=state) for n, state in enumerate(states)]
    rows.append(row(90, (), None, state="proposed"))
    found = history(rows)
    assert {t.number: t.state for t in found.trials} == dict(enumerate(states.values()))
    assert found.study_attrs == {"n": 1}
    assert len(found.taken) == len(states)


def test__history__repeats_shorter_and_foreign__are_not_shown():
    rows = [
        row(0, (S, A), 0.5),
        row(1, (S, A), 0.4, seed_index=1, phase="confirm"),
        row(2, (S,), 0.3, phase="baseline"),
        row(3, (P, P), 0.2, phase="baseline"),
        row(4, (A, A), 0.2, phase="baseline", sampler_attrs={"generation": 3}),
    ]
    found = history(rows)
    assert [t.number for t in found.trials] == [0, 4]
    assert found.trials[1].attrs == {"generation": 3}
    assert found.taken == {(S, A), (S,), (P, P), (A, A)} == trained_labels(rows)


def test__history__topped_up__is_as_made_from_all_rows():
    stacks = list(Space.of(study()))
    rows = [row(n, labels, 0.5 + n) for n, labels in enumerate(stacks[:-1])]
    rows[1] = row(1, stacks[1], None, state="running")
    seen = {}
    assert history(rows, seen=seen) == history(rows)
    # One ends, one is trained again with another result, one is new.
    rows[1] = row(1, stacks[1], 0.25)
    rows[0] = row(0, stacks[0], 9.0)
    rows.append(row(len(rows), stacks[-1], None, state="failed"))
    assert history(rows, seen=seen) == history(rows)
    assert [trial.value for trial in history(rows, seen=seen).trials[:2]] == [9.0, 0.25]


def test__history__completed_without_the_objective__is_no_good_point():
    [trial] = history([row(0, (S, A), None)]).trials
    assert (trial.state, trial.value) == ("failed", None)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test__history__any_order_of_rows__is_by_number(order):
    rows = [row(n, list(Space.of(study()))[n], 0.1 * n) for n in order]
    assert [t.number for t in history(rows).trials] == [0, 1, 2]


def test__finalists__limits__only_the_reference_may_be_over_them():
    costs = {(A, A): 40, (S, S): 10, (S, A): 25, (A, S): 25, (B, B): 20, (S,): 5, (A,): 30}
    losses = {(A, A): 1.0, (S, S): 1.6, (S, A): 0.7, (A, S): 1.2, (B, B): 1.5, (S,): 2.0, (A,): 1.1}

    def timed(number, layers, factor=1.0):
        return row(number, layers, losses[layers], latency_s=factor * costs[layers])

    rows = [timed(number, layers) for number, layers in enumerate(losses)]
    spec = study()
    limits = type(spec.limits)(max_latency=25)
    bounded = spec.model_copy(update={"limits": limits})
    # An own function's latency is a metric that it returns.
    rows = [replace(r, selection=r.selection | {"latency": r.latency_s}) for r in rows]
    found = finalists(bounded, Space.of(bounded), baselines(bounded), rows)
    assert {f.role: f.labels for f in found} == {
        "pick": (S, A),
        "reference": (A, A),
        "shorter": (S,),
        "rival": (B, B),
    }
    nothing = [replace(r, selection={"loss": r.selection["loss"]}) for r in rows]
    unknown = finalists(bounded, Space.of(bounded), baselines(bounded), nothing)
    assert {f.role for f in unknown} == {"reference"}


def test__history__several_objectives_and_a_limit__values_and_excesses_by_name():
    spec = study()
    measures = (*spec.measures, COSTS["latency"], COSTS["throughput"])
    limits = (Limit("max_latency", COSTS["latency"], 0.02),)
    timed = Latency(
        median=0.03,
        low=0.03,
        high=0.03,
        n=1,
        batch_size=6,
        seq_len=8,
        device="cpu",
        dtype="float32",
    )
    rows = [
        row(0, (S, A), 0.5, latency_s=0.03, latency=timed),
        row(1, (A, S), 0.4, latency_s=0.03),
        row(2, (B, S), None, latency_s=0.03, latency=timed),
        row(3, (S, S), None, state="diverged"),
    ]
    found = history(rows, measures=measures, limits=limits)
    assert found.directions == ("minimize", "minimize", "maximize")
    first, no_throughput, no_loss, diverged = found.trials
    assert first.values == pytest.approx((0.5, 0.03, 200.0))
    assert first.excesses == {"max_latency": pytest.approx(0.5)}
    assert [no_throughput.state, no_loss.state, diverged.state] == ["failed", "failed", "pruned"]
    assert (no_loss.values, no_loss.value, no_loss.excesses) == ((), None, {})


def test__confirm_phase__one_stack_with_a_result__waits_for_another_to_compare_with():
    spec = study()
    phase = ConfirmPhase(spec, Space.of(spec), baselines(spec))
    alone = [row(0, [A, A], 3.0, phase="baseline"), row(1, [S, S], None, state="diverged")]
    assert not phase.is_open(alone)
    assert phase.is_open([*alone, row(2, [S, A], 3.1)])
