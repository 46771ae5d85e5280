"""An architecture that ran out of memory is not trained again in its study."""

import pytest
import simulated
from own_study import loss, own_study, store_url, stored_rows

import search
from search.api import study_of
from search.phases import Ask
from search.phases.confirm import ConfirmPhase
from search.phases.history import history_of, too_large, trained_labels
from search.phases.recipe import RecipePhase
from search.spec.baselines import baselines
from search.spec.space import Space
from search.spec.sweep import Sweep


def no_memory(labels, number=0, **fields):
    return simulated.row(number, labels, state="failed", cause="out_of_memory", **fields)


@pytest.mark.parametrize(
    "fields", [{}, {"seed_index": 2}, {"recipe": {"learning_rate": 0.1}}], ids=str
)
def test__history__out_of_memory_with_any_seed_or_recipe__is_taken(fields):
    space = Space(({"attention": "attention", "sepconv": "sepconv"},) * 2)
    rows = [no_memory(("attention", "sepconv"), **fields)]
    history = history_of(rows, space, measures=(), study_attrs={})
    assert history.taken == trained_labels(rows) == {("attention", "sepconv")}


def test__run__listed_architecture_out_of_memory__its_other_seeds_are_left_out(tmp_path):
    def greedy(architecture, seed, report):
        if "bproj" in architecture.notation:
            raise MemoryError
        return loss(architecture, seed, report)

    study = study_of(
        {
            "strategy": {"name": "listed", "options": {"seeds": 3}},
            "space": {"architectures": ["attention*4", "bproj*4", "sepconv*4"]},
        },
        objective=greedy,
    )
    outcome = search.run(study, None, store_url(tmp_path), objective=greedy)
    assert (outcome.exit_code, outcome.reason, outcome.started) == (0, "space used up", 7)
    assert "7 of 9 trainings are done; the others are of architectures that ran out of" in (
        outcome.message
    )
    (failed,) = [row for row in stored_rows(tmp_path, outcome) if row.state == "failed"]
    assert failed.cause == "out_of_memory"


def test__confirm_phase__finalist_out_of_memory__gets_no_other_seed():
    study = own_study()
    space, listed = Space.of(study), baselines(study)
    stacks = [space.at(index) for index in range(4)]
    rows = [
        simulated.row(number, labels, 1.0 + 0.1 * number) for number, labels in enumerate(stacks)
    ]
    phase = ConfirmPhase(study, space, listed)
    first = phase.choose(rows, Ask(9))
    assert first is not None
    repeats = {"phase": "confirm", "seed_index": 1}
    for labels in stacks[1:]:
        for seed_index in range(1, 6):
            again = repeats | {"seed_index": seed_index}
            rows.append(simulated.row(len(rows), labels, 1.5, **again))
    done = simulated.row(len(rows), first.labels, 1.0, **repeats)
    assert phase.choose([*rows, done], Ask(30)).labels == first.labels
    rows.append(no_memory(first.labels, len(rows), **repeats))
    assert phase.choose(rows, Ask(30)).labels != first.labels
    assert too_large(rows) == {first.labels}


def test__recipe_phase__stack_out_of_memory__gets_no_other_rate():
    study = study_of({"recipe": "sweep"})
    phase = RecipePhase(Sweep.of(study))
    first = phase.choose([], Ask(0))
    left = phase.choose([no_memory(first.labels, recipe=first.recipe)], Ask(1))
    assert left.labels != first.labels
