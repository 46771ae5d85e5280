import itertools

import pytest
from own_study import loss, store_url, stored_rows

import search
from search.api import study_of
from search.errors import InputError
from search.phases import Agenda, next_phase
from search.planning.plan import make_plan
from search.planning.plan_words import plan_lines
from search.planning.stack_costs import StackCost, extremes
from search.rows import Counts
from search.spec.budget import Budget
from search.spec.listed import default_budget, n_trainings, stacks
from search.spec.study_file import study_from

LISTED = {"name": "listed", "options": {"seeds": 3}}
THREE = ["attention*4", "sepconv*2, attention*2", "bproj"]


def listed(architectures=(), *, seeds=3, n_layers=None, choices=None, objective=loss, **document):
    space = {"architectures": list(architectures)} if architectures else {}
    if choices is not None:
        space["choices"] = list(choices)
    encoder = {} if n_layers is None else {"n_layers": n_layers}
    document |= {
        "strategy": {"name": "listed", "options": {"seeds": seeds}},
        "space": space,
        "encoder": encoder,
    }
    return study_of(document, objective=objective)


def run(folder, study, budget=None, objective=loss, **options):
    return search.run(study, budget, store_url(folder), objective=objective, **options)


def test__run__listed_architectures__are_trained_seed_by_seed_and_read_on_test(tmp_path):
    outcome = run(tmp_path, listed(THREE))
    assert (outcome.exit_code, outcome.reason, outcome.started) == (0, "space used up", 9)
    rows = stored_rows(tmp_path, outcome)
    assert [(row.seed_index, row.notation) for row in rows] == [
        (seed, notation) for seed in (1, 2, 3) for notation in THREE
    ]
    assert all(row.phase == "confirm" and row.seed == row.seed_index for row in rows)
    assert all("loss" in row.selection and "loss" in row.test for row in rows)


def test__run__listed_study_again__starts_nothing(tmp_path):
    first = run(tmp_path, listed(THREE))
    for budget in (None, 9, 50, "1h"):
        again = run(tmp_path, listed(THREE), budget)
        assert (again.started, again.exit_code, again.reason) == (0, 0, "space used up")
    assert len(stored_rows(tmp_path, first)) == 9


def test__run__budget_below_the_list__trains_its_first_and_the_rest_later(tmp_path):
    study = listed(THREE)
    outcome = run(tmp_path, study, 4)
    assert (outcome.started, outcome.reason) == (4, "budget")
    assert run(tmp_path, study).started == 5
    rows = stored_rows(tmp_path, outcome)
    assert [row.notation for row in rows] == THREE * 3


def test__C43__no_list__is_the_whole_space_once_each_seed(tmp_path):
    study = listed(n_layers=2, choices=["attention", "sepconv", "bproj"], seeds=2)
    outcome = run(tmp_path, study, 30)
    assert (outcome.exit_code, outcome.reason, outcome.started) == (0, "space used up", 18)
    rows = stored_rows(tmp_path, outcome)
    every = list(itertools.product(["attention", "sepconv", "bproj"], repeat=2))
    assert [row.mixers for row in rows] == every * 2
    assert [row.seed_index for row in rows] == [1] * 9 + [2] * 9


def test__run__training_of_a_list_that_fails__is_not_tried_again(tmp_path):
    def fails_on_bproj(architecture, seed, report):
        if architecture.blocks[0].mixer.kind == "bproj":
            raise RuntimeError("no")
        return loss(architecture, seed, report)

    study = listed(THREE, objective=fails_on_bproj)
    outcome = run(tmp_path, study, objective=fails_on_bproj)
    assert (outcome.exit_code, outcome.started, outcome.failed) == (0, 9, 3)
    assert run(tmp_path, study, objective=fails_on_bproj).started == 0


def test__C57__every_training_of_a_list_fails__is_no_success(tmp_path):
    def fails(architecture, seed, report):
        raise RuntimeError("broken")

    outcome = run(tmp_path, listed(THREE, objective=fails), objective=fails)
    assert outcome.exit_code == 1
    assert "broken" in outcome.message


def test__study__listed_stacks__decide_choices_and_depth():
    study = study_from({"strategy": LISTED, "space": {"architectures": THREE}})
    assert [config.kind for config in study.space.choices] == ["attention", "sepconv", "bproj"]
    assert study.encoder.n_layers == 4
    assert n_trainings(study) == 9
    assert [len(labels) for labels in stacks(study)] == [4, 4, 1]
    assert study_from(study.model_dump()) == study
    given = {"strategy": LISTED, "space": {"architectures": THREE}, "encoder": {"n_layers": 6}}
    assert study_from(given).encoder.n_layers == 6


def test__study__two_ways_to_write_a_stack__are_one_study():
    names = {
        study_from({"strategy": LISTED, "space": {"architectures": [text]}}).default_name
        for text in ("sepconv*2", "sepconv, sepconv", " sepconv * 2 ")
    }
    assert len(names) == 1


@pytest.mark.parametrize(
    ("space", "path", "text"),
    [
        ({"architectures": ["sepcnv*2"]}, "space.architectures.0", "did you mean 'sepconv'"),
        ({"architectures": ["bproj", "bproj*"]}, "space.architectures.1", "expected"),
        ({"architectures": ["sepconv*20000"]}, "space.architectures.0", "10000"),
        ({"architectures": ["bproj*9999, average*2"]}, "space.architectures.0", "at most 10000"),
        ({"architectures": [""]}, "space.architectures.0", "a mixer's name"),
        ({"architectures": ["bproj*2", "bproj, bproj"]}, "space.architectures.1", "number 0"),
        ({"architectures": ["attention(n_heads=3)"]}, "space.architectures.0", "n_heads"),
        ({"architectures": ["bproj"], "choices": ["average"]}, "space.choices", "leave the ch"),
        (
            {"architectures": ["bproj"], "layers": [{"layer": 0, "choices": ["bproj"]}]},
            "space.layers",
            "leave the layers out",
        ),
    ],
)
def test__study__list_that_cannot_be_trained__is_one_line_with_its_path(space, path, text):
    with pytest.raises(InputError) as caught:
        study_from({"strategy": LISTED, "space": space})
    [line] = str(caught.value).splitlines()
    assert line.startswith(f"{path}: ")
    assert text in line


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"space": {"architectures": ["bproj"]}}, "space.architectures"),
        ({"strategy": {"name": "listed", "options": {"seeds": 0}}}, "strategy.options.seeds"),
        ({"strategy": {"name": "listed", "options": {"seeds": 1.5}}}, "strategy.options.seeds"),
        ({"strategy": LISTED, "recipe": "sweep"}, "recipe"),
    ],
)
def test__study__list_and_strategy_that_do_not_fit__are_refused(document, path):
    with pytest.raises(InputError, match=path):
        study_from(document)


def test__default_budget__list_and_search__is_everything_and_20_trials():
    study = study_from({"strategy": LISTED, "space": {"architectures": THREE}})
    assert default_budget(study) == Budget("trials", 9)
    assert default_budget(study_from({})) == Budget("trials", 20)


@pytest.mark.parametrize("budget", ["5", "100s", "9flop"])
def test__next_phase__listed_study__is_confirm_until_list_or_budget_ends(budget):
    limit = Budget.parse(budget)
    open_, done = (Agenda(0, frozenset(p), is_listed=True) for p in (["confirm"], []))
    for spent in range(9):
        counts = Counts(by_phase={"confirm": spent}, started=spent, busy_s=9.0 * spent, flops=spent)
        expected = None if limit.is_used_up(counts) else "confirm"
        assert next_phase(limit, counts, open_) == expected
        assert next_phase(limit, counts, done) is None


def test__study__limits_or_widths_that_a_list_cannot_have__are_refused():
    document = {"strategy": LISTED, "space": {"architectures": ["attention*2", "sepconv*9"]}}
    with pytest.raises(InputError, match=r"^limits: "):
        study_from({**document, "limits": {"max_params": 1e6}})
    small = {"n_layers": 2, "d_ff": 8}
    with pytest.raises(InputError, match=r"^space\.architectures\.1: .*more params"):
        study_from({**document, "match": "params", "encoder": small})


def test__plan__listed_study__counts_its_trainings_and_times_the_extremes():
    study = study_from({"strategy": LISTED, "space": {"architectures": [*THREE, "attention*9"]}})
    dear, cheap = extremes(study)
    assert ([c.kind for c in dear], [c.kind for c in cheap]) == (["attention"] * 9, ["bproj"])
    cost = StackCost("s", 10, step_s=0.1, trial_s=20.0, peak_memory_bytes=5)
    for budget, trials in (("12", 12), ("7", 7), ("99", 12)):
        plan = make_plan(study, Budget.parse(budget), cost, cost, name="s")
        assert plan.trials == (trials, trials)
        assert dict(plan.phases) == {"baseline": 0, "search": 0, "confirm": trials}
        assert plan.repeats == trials // 4
        assert plan.left_out == ()
        assert "4 architectures x 3 seeds" in "\n".join(plan_lines(plan, study))
