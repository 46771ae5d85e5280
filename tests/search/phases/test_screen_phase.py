from collections import Counter

import pytest

from benchmarks.replay import spend
from search.phases import Ask, n_runs, phase_sources, quotas
from search.rows import TrialRow
from search.spec.baselines import baselines
from search.spec.space import Space
from search.spec.study import StudySpec
from search.strategies import make_strategy
from search.strategies.screen_design import screening_design

CHANGES = {
    "strategy": {"name": "screen"},
    "space": {"choices": ["attention", "sepconv", "bproj", "average"]},
}


def study_of(**changes):
    return StudySpec.model_validate({**CHANGES, **changes})


def sources_of(study):
    return phase_sources(study, make_strategy("screen", {}, study.seed))


def row(choice, phase, number, loss=None, state="completed"):
    value = loss(choice.labels) if loss else 3.0
    return TrialRow(
        id=number + 1,
        study="s",
        number=number,
        phase=phase,
        state=state,
        role=choice.role,
        arch_id=str(choice.key),
        mixers=choice.labels,
        n_layers=len(choice.labels),
        seed=choice.seed_index,
        seed_index=choice.seed_index,
        selection={"loss": value} if state == "completed" else {},
        sampler_attrs=choice.attrs,
    )


def replay(study, budget, loss=None, state="completed"):
    def train(choice, phase, number):
        return row(choice, phase, number, loss, state if phase == "screen" else "completed")

    return spend(budget, sources_of(study), len(baselines(study)), train)


def best_bproj(labels):
    return 3.0 - 0.1 * sum(label.startswith("bproj") for label in labels)


def members(rows, kinds):
    return {
        tuple(label.split("(")[0] for label in row.mixers)
        for row in rows
        if len(row.mixers) == 4 and {label.split("(")[0] for label in row.mixers} <= kinds
    }


@pytest.mark.parametrize("loss", [None, best_bproj])
def test__screen_phase__enough_budget__trains_each_stack_of_the_two_mixers_once(loss):
    study = study_of()
    rows = replay(study, 45, loss)
    phases = Counter(row.phase for row in rows)
    cheap = "bproj" if loss else "sepconv"
    # Two of the 16 are uniform baselines; with sepconv, both halves are baselines too.
    assert phases["screen"] == (14 if loss else 12)
    assert phases["baseline"] == len(baselines(study))
    assert phases["confirm"] == 15
    assert phases["search"] == 45 - sum(phases[p] for p in ("screen", "baseline", "confirm"))
    assert phases["search"] > 0
    assert len(members(rows, {"attention", cheap})) == 16


def test__screen_phase__small_budget__trains_the_first_runs_of_the_design():
    # Both uniform stacks and both halves of the two mixers are baselines.
    rows = replay(study_of(), 12)
    trained = [
        tuple(label.startswith("sepconv") for label in row.mixers)
        for row in rows
        if row.phase == "screen"
    ]
    halves = {(False, False, True, True), (True, True, False, False)}
    left = [run for run in screening_design(4).runs if run not in halves and 0 < sum(run) < 4]
    assert len(trained) == 4
    assert trained == left[:4]


def test__screen_phase__failed_runs__are_not_repeated():
    rows = replay(study_of(), 45, state="failed")
    assert Counter(row.phase for row in rows)["screen"] == 12


def test__screen_phase__rows_cut_anywhere__goes_on_as_it_would_have():
    study = study_of()
    rows = replay(study, 45, best_bproj)
    screen = next(source for source in sources_of(study) if source.phase == "screen")
    for trial in rows:
        if trial.phase != "screen":
            continue
        before = rows[: trial.number]
        assert screen.is_open(before)
        assert screen.choose(before, Ask(trial.number)).labels == trial.mixers
    after = [trial for trial in rows if trial.phase != "search"]
    assert not screen.is_open(after)


def test__screen_phase__runs_taken_by_other_workers__takes_the_next():
    study = study_of()
    screen = next(source for source in sources_of(study) if source.phase == "screen")
    taken, chosen = frozenset(), []
    while (choice := screen.choose([], Ask(0, taken))) is not None:
        taken |= {choice.key}
        chosen.append(choice.labels)
    assert len(chosen) == len(set(chosen)) == 16
    assert all(labels in Space.of(study) for labels in chosen)


@pytest.mark.parametrize("budget", [1, 6, 12, 24, 45])
def test__quotas__runs_of_the_design__are_those_that_are_trained(budget):
    study = study_of()
    listed = baselines(study)
    first = quotas(budget, len(listed))["baseline"]
    runs = n_runs(study, [baseline.labels for baseline in listed[:first]])
    planned = quotas(budget, len(listed), runs)
    done = Counter(row.phase for row in replay(study, budget))
    assert done == {phase: n for phase, n in planned.items() if n}


def test__phase_sources__other_strategy__has_no_design():
    study = StudySpec.model_validate({**CHANGES, "strategy": {"name": "tpe"}})
    sources = phase_sources(study, make_strategy("tpe", {}, 0))
    assert "screen" not in {source.phase for source in sources}
