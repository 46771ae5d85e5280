"""Promotion at rungs, against the published algorithm and the definitions of its ranks."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from simulated import row
from store_factory import study_spec

from search.phases.rungs import crowding, fronts, n_at_rungs, promotions, ranks, search_steps

STEPS, RUNGS = 600, (60, 180)
STUDIES = {n: study_spec(rungs=RUNGS, reduction=n) for n in (2, 3, 4)}
STUDY = STUDIES[3]
LEVELS = (*RUNGS, STEPS)


def trial(number, losses, *, state="pruned", **fields):
    """A trial of the search that was read at as many rungs as there are losses."""
    given = {"rungs": {r: {"loss": loss} for r, loss in zip(RUNGS, losses, strict=False)}}
    steps = LEVELS[max(0, len(losses) - 1)]
    return row(number, ("sepconv",), **{"state": state, "steps": steps} | given | fields)


def named(promotion):
    """The number of the trial to promote, and how far it is to go."""
    return None if promotion is None else (promotion.trial_id - 1, promotion.until)


class Published:
    """Algorithm 2 of Li et al. (2020), as it is written there."""

    def __init__(self, reduction):
        self.reduction = reduction
        self.rungs = [{} for _ in LEVELS]
        self.promoted = [set() for _ in LEVELS]

    def get_job(self):
        for k in reversed(range(len(RUNGS))):
            ordered = sorted(self.rungs[k], key=lambda number: (self.rungs[k][number], number))
            candidates = ordered[: len(self.rungs[k]) // self.reduction]
            promotable = [n for n in candidates if n not in self.promoted[k]]
            if promotable:
                self.promoted[k].add(promotable[0])
                return promotable[0], k + 1
        return None


@settings(max_examples=30, deadline=None)
@given(data=st.data(), reduction=st.integers(2, 4), workers=st.integers(1, 4))
def test__promotions__workers_finish_in_any_order__decides_as_the_published_algorithm(
    data, reduction, workers
):
    study = STUDIES[reduction]
    published = Published(reduction)
    reached, in_hand, n_trials = {}, {}, 0
    for _ in range(20):
        while len(in_hand) < workers:
            rows = [
                trial(n, losses, state="running" if n in in_hand else "pruned")
                if len(losses) < len(LEVELS)
                else trial(n, losses[:-1], state="completed", steps=STEPS)
                for n, losses in reached.items()
            ]
            job = published.get_job()
            promotion = promotions(rows, study).usual
            if job is None:
                assert promotion is None
                reached[n_trials], in_hand[n_trials] = [], 0
                n_trials += 1
                continue
            number, level = job
            assert named(promotion) == (number, None if level == 2 else RUNGS[level])
            assert (promotion.steps, promotion.until_steps) == (RUNGS[level - 1], LEVELS[level])
            in_hand[number] = level
        number = data.draw(st.sampled_from(sorted(in_hand)))
        level = in_hand.pop(number)
        loss = float(data.draw(st.integers(0, 9)))
        reached[number].append(loss)
        published.rungs[level][number] = loss


def test__promotions__no_rungs__none():
    rows = [trial(n, (1.0 + n,)) for n in range(9)]
    assert promotions(rows, study_spec()).closing is None


def test__promotions__other_phases_and_trials_without_a_value__neither_compared_nor_promoted():
    rows = [trial(n, (1.0,), phase=phase) for n, phase in enumerate(["baseline", "confirm"] * 4)]
    rows += [trial(8, (2.0,)), trial(9, (), state="failed"), trial(10, (3.0,))]
    assert promotions(rows, STUDY).usual is None
    rows.append(trial(11, (4.0,)))
    assert named(promotions(rows, STUDY).usual) == (8, 180)


def test__promotions__diverged_before_the_rung__counts_as_the_worst_of_it():
    rows = [trial(0, (2.0,)), trial(1, (3.0,)), trial(2, (), state="diverged", steps=30)]
    assert named(promotions(rows, STUDY).usual) == (0, 180)
    rows = [trial(n, (2.0 + n, 1.0 + n)) for n in range(2)]
    # One that diverged before the first rung has not been on the way to the second.
    assert promotions([*rows, trial(2, (), state="diverged")], STUDY).usual is None
    assert named(promotions([*rows, trial(2, (9.0,), state="diverged")], STUDY).usual) == (0, None)


def test__promotions__closing__the_best_of_each_rung_once_nothing_is_on_its_way():
    few = [trial(0, (2.0,)), trial(1, (1.0,))]
    assert promotions(few, STUDY).usual is None
    assert named(promotions(few, STUDY).closing) == (1, 180)
    assert promotions([*few, trial(2, (), state="running")], STUDY).closing is None
    assert named(promotions([few[0], trial(1, (1.0, 5.0))], STUDY).closing) == (1, None)
    done = trial(1, (1.0, 5.0), state="completed", steps=STEPS)
    assert promotions([few[0], done], STUDY).closing is None


def test__promotions__over_a_measured_limit__after_all_that_keep_it():
    study = study_spec(rungs=RUNGS, limits={"max_latency": 1.0})
    rows = [trial(n, (1.0 + n,), latency_s=2.0 if n == 0 else 0.5) for n in range(3)]
    assert named(promotions(rows, study).usual) == (1, 180)


def test__promotions__several_objectives__the_front_first_and_its_ends_in_it():
    study = study_spec(rungs=RUNGS, objectives=["loss", "params"], reduction=2)
    points = [(3.0, 1), (1.0, 9), (1.9, 5), (2.0, 4), (3.5, 2), (2.5, 6)]
    rows = [trial(n, (loss,), params=params) for n, (loss, params) in enumerate(points)]
    chosen = []
    while (promotion := promotions(rows, study).usual) is not None and promotion.until == 180:
        number = promotion.trial_id - 1
        chosen.append(number)
        loss, params = points[number]
        rows[number] = trial(number, (loss,), state="running", params=params)
    # 0, 1, 2, 3 are the front; 2 and 3 lie between the ends, 2 between the wider gaps:
    # 1.0 / 2 + 5 / 8 against 1.1 / 2 + 4 / 8.
    assert chosen == [1, 0, 2]


def peeled(points):
    """Fronts by their definition: what nothing left dominates, again and again."""
    left, found = set(range(len(points))), []
    while left:
        front = {
            i
            for i in left
            if not any(
                all(a <= b for a, b in zip(points[j], points[i], strict=True))
                and any(a < b for a, b in zip(points[j], points[i], strict=True))
                for j in left
            )
        }
        found.append(front)
        left -= front
    return found


POINTS = st.integers(1, 3).flatmap(
    lambda d: st.lists(st.tuples(*[st.integers(0, 6).map(float)] * d), max_size=25)
)


@settings(max_examples=80, deadline=None)
@given(points=POINTS)
def test__fronts__any_points__are_those_of_the_definition(points):
    assert [set(front) for front in fronts(points)] == peeled(points)
    order = sorted(range(len(points)), key=lambda i: ranks(points)[i])
    if points and len(points[0]) == 1:
        assert [points[i] for i in order] == sorted(points)


@settings(deadline=None)
@given(xs=st.lists(st.integers(0, 1000), min_size=3, max_size=12, unique=True))
def test__crowding__two_objectives__the_neighbours_box_over_the_fronts(xs):
    points = [(float(x), 1000.0 - x) for x in xs]
    found = crowding(points)
    ordered = sorted(xs)
    for x, distance in zip(xs, found, strict=True):
        at = ordered.index(x)
        if at in (0, len(xs) - 1):
            assert distance == math.inf
        else:
            gap = (ordered[at + 1] - ordered[at - 1]) / (ordered[-1] - ordered[0])
            assert distance == pytest.approx(2 * gap)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 40), reduction=st.integers(2, 4))
def test__search_steps__trials_that_come_best_first__what_the_promotions_take(n, reduction):
    study = STUDIES[reduction]
    rows = {number: trial(number, (float(number),)) for number in range(n)}
    steps = 60 * n
    while (promotion := promotions(list(rows.values()), study).closing) is not None:
        number = promotion.trial_id - 1
        steps += promotion.until_steps - promotion.steps
        at = [float(number)] * 2
        is_last = promotion.until is None
        last = {"state": "completed", "steps": STEPS} if is_last else {}
        rows[number] = trial(number, at, **last)
    assert steps == search_steps(n, study)
    assert n_at_rungs(n, study)[-1] == sum(r.state == "completed" for r in rows.values())


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"rungs": [100, 100]}, "rungs.1", "rungs rise"),
        ({"rungs": [600]}, "rungs.0", "a rung lies before"),
        ({"rungs": [0]}, "rungs.0", "greater than or equal to 1"),
        ({"rungs": [100], "reduction": 1}, "reduction", "greater than or equal to 2"),
    ],
)
def test__study__rungs_that_cannot_be__refused_with_the_field(changes, path, words):
    with pytest.raises(ValidationError) as refused:
        study_spec(**changes)
    assert [".".join(map(str, e["loc"])) for e in refused.value.errors()] == [path]
    assert words in str(refused.value)


def test__study__no_rungs__has_the_name_it_had():
    assert study_spec(rungs=[], reduction=3).default_name == study_spec().default_name
    assert study_spec(rungs=[100]).default_name != study_spec().default_name
