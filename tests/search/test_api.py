import os
import subprocess
import sys
from pathlib import Path

import pytest
from own_study import Recorder, loss, own_study, run_own, store_url, stored_rows

import search
from search.api import study_of
from search.engine.own_objective import source_sha256
from search.errors import InputError, NothingThereError

ROOT = Path(__file__).parents[2]


def test__search__imported__costs_nothing_heavy():
    code = (
        "import sys, search; heavy = {'torch', 'optuna', 'sqlalchemy', 'pydantic', 'plotly'}; "
        "print(sorted(heavy & set(sys.modules)), sorted(dir(search)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[] ['StudySpec', 'open', 'run']\n"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        search.nonsense  # noqa: B018


def test__own_objective__metrics_and_reports__are_stored_with_curve_and_splits(tmp_path):
    def objective(architecture, seed, report):
        report(10, 3.0)
        report(20, {"error": 2.0, "speed": 7})
        return {"error": 1.5 + seed, "speed": 8}

    recorder = Recorder()
    outcome = run_own(
        tmp_path, 6, objective, metric="error", unit="%", seed=4, observer=recorder, tolerance=0.5
    )
    rows = stored_rows(tmp_path, outcome)
    assert [row.phase for row in rows] == ["baseline"] * 2 + ["search"] * 2 + ["confirm"] * 2
    assert [row.seed for row in rows] == [4, 4, 4, 4, 5, 5]
    assert rows[0].selection == {"error": 5.5, "speed": 8.0}
    assert rows[0].test == {}
    assert rows[4].test == {"error": 6.5, "speed": 8.0}
    assert rows[0].curve == ((10, 3.0), (20, 2.0))
    assert recorder.readings[:2] == [(10, {"error": 3.0}), (20, {"error": 2.0, "speed": 7.0})]
    assert rows[0].flops > 0
    with search.open(store_url(tmp_path)) as store:
        study = store.study(outcome.study)
    assert (study.objective, study.direction) == ("error", "minimize")
    assert study.spec["tolerance"] == 0.5
    assert study.spec["task"]["unit"] == "%"


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ({"accuracy": 1.0}, "returned accuracy but not 'loss'"),
        ("high", "expected a number"),
        (None, "expected a number"),
    ],
)
def test__own_objective__returns_something_else__fails_saying_what(tmp_path, returned, expected):
    outcome = run_own(tmp_path, 1, lambda architecture, seed, report: returned)
    assert outcome.exit_code == 1
    assert expected in outcome.message


def test__own_objective__exits_or_hides_exceptions__is_one_trial_that_failed_or_diverged(tmp_path):
    def exits(architecture, seed, report):
        sys.exit("enough")

    def hides(architecture, seed, report):
        try:
            report(1, float("nan"))
        except Exception:
            return 0.0
        return 0.0

    exiting = run_own(tmp_path, 1, exits)
    hidden = run_own(tmp_path, 1, hides)
    assert [stored_rows(tmp_path, o)[0].state for o in (exiting, hidden)] == ["failed", "diverged"]
    assert "tried to exit" in exiting.message
    assert "loss is nan at step 1" in hidden.message


def test__own_objective__number_whose_square_is_infinite__has_diverged_and_the_rest_counts(
    tmp_path,
):
    def grows(architecture, seed, report):
        return 1e200 if "sepconv" in str(architecture.blocks) else 1.0

    outcome = run_own(tmp_path, 9, grows)
    rows = stored_rows(tmp_path, outcome)
    assert outcome.exit_code == 0
    assert all((row.state == "diverged") == ("S" in row.code) for row in rows)
    assert "loss is 1e+200" in next(row.reason for row in rows if row.state == "diverged")


def test__own_objective__changed_source__is_another_study(tmp_path):
    def first(architecture, seed, report):
        return 1.0

    def second(architecture, seed, report):
        return 2.0

    assert source_sha256(first) != source_sha256(second)
    names = {run_own(tmp_path, 1, objective).study for objective in (first, second, first)}
    assert len(names) == 2
    with pytest.raises(InputError, match=r"task\.source_sha256"):
        run_own(tmp_path, 2, second, name=run_own(tmp_path, 1, first).study)


def test__own_objective__without_source__is_known_by_its_code():
    scope = {}
    exec("def f(a, s, r): return 1.0\ndef g(a, s, r): return 2.0", scope)
    assert source_sha256(scope["f"]) != source_sha256(scope["g"])
    text = "def f(a, s, r): return (lambda: 1.0)()"
    scopes: tuple[dict, dict] = ({}, {})
    for scope in scopes:
        exec(text, scope)
    assert source_sha256(scopes[0]["f"]) == source_sha256(scopes[1]["f"])

    class Callable:
        def __call__(self, architecture, seed, report):
            return 1.0

    assert study_of(objective=Callable()).task.name == "Callable"
    with pytest.raises(InputError, match="source"):
        source_sha256(len)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"budget": 0}, "allows nothing"),
        ({"budget": "banana"}, "not understood"),
        ({"choices": ["atention"]}, "did you mean 'attention'"),
        ({"choices": ["sepconv(n_filters=7)"]}, "must divide"),
        ({"n_layers": 0}, r"encoder\.n_layers"),
        ({"objective": 3}, "expected a function"),
        ({"budget": "3e9flop"}, "FLOPs needs a task"),
        ({"study": {"task": {"kind": "mlm"}}}, "task of its own"),
        ({"study": "none.yaml"}, "none.yaml"),
        ({"store": "sqlite:///none/x.db"}, "no folder"),
    ],
)
def test__run__wrong_argument__is_one_line_and_leaves_no_trial(tmp_path, arguments, expected):
    options = {"objective": loss, "store": store_url(tmp_path), "budget": 2} | arguments
    with pytest.raises(search_error(arguments), match=expected):
        search.run(**options)
    if (tmp_path / "search.db").exists():
        with search.open(store_url(tmp_path)) as store:
            assert sum(study.n_trials for study in store.studies()) == 0


def search_error(arguments):
    from search.errors import StoreError

    return StoreError if "store" in arguments else InputError


def test__run__study_of_a_function_without_the_function__is_refused(tmp_path):
    with pytest.raises(InputError, match="the function 'loss' of a script"):
        search.run(own_study(), 2, store_url(tmp_path))


def test__open__no_store__says_so(tmp_path):
    with pytest.raises(NothingThereError):
        search.open(store_url(tmp_path))


def test__run__open_store__stays_open(tmp_path):
    with search.open(store_url(tmp_path), create=True) as store:
        outcome = search.run(own_study(), 2, store, objective=loss)
        assert store.study(outcome.study).n_completed == 2
        assert store.study(outcome.study).reason == "budget"


def test__example__own_objective__runs_and_needs_few_lines(tmp_path):
    path = ROOT / "examples" / "own_objective.py"
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    code = [line for line in lines if not line.lstrip().startswith(("#", '"""'))]
    assert len(code) <= 15
    shown = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env=os.environ | {"SEARCH_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert shown.returncode == 0, shown.stderr
    assert "12 trials" in shown.stdout
