import csv
import json
import subprocess
import sys

import pytest
import store_factory

from search.errors import InputError, NothingThereError
from search.export import export_view, read_view
from search.store.views import VIEWS


@pytest.fixture(scope="module")
def filled(module_store):
    study_id = store_factory.fill(module_store, seeds=2)
    store_factory.fill(module_store, 'ot"her, stüdy', architectures=("attention*3",))
    worker = module_store.register_worker()
    claim = store_factory.claim_and_commit(module_store, study_id, worker, "average*2")
    module_store.fail(claim, store_factory.failure('ValueError: a "b",\tc'))
    return module_store


def as_text(value):
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("view", [view.name for view in VIEWS])
def test__export__csv__same_as_the_view(filled, tmp_path, view):
    columns, rows = read_view(filled, view)
    path = tmp_path / "out.csv"
    assert export_view(filled, path, view=view) == len(rows)
    with path.open(encoding="utf-8", newline="") as file:
        found = list(csv.reader(file))
    assert found[0] == list(columns)
    assert found[1:] == [[as_text(row[column]) for column in columns] for row in rows]


def test__export__json_lines__strict_and_same_as_the_view(filled, tmp_path):
    def refuse(name):
        raise AssertionError(name)

    path = tmp_path / "out.jsonl"
    assert export_view(filled, path) == 10
    lines = path.read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line, parse_constant=refuse) for line in lines]
    assert documents == read_view(filled, "trials_flat")[1]
    assert documents[-1]["error"] == 'ValueError: a "b",\tc'
    assert documents[0]["created_at"].endswith("+00:00")


def test__export__parquet__types_and_values(filled, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "out.parquet"
    export_view(filled, path, view="pareto", study="demo")
    table = parquet.read_table(path)
    assert table.to_pylist() == read_view(filled, "pareto", "demo")[1]
    assert {name: str(table.schema.field(name).type) for name in ("mean", "n", "is_pareto")} == {
        "mean": "double",
        "n": "int64",
        "is_pareto": "bool",
    }
    export_view(filled, path, view="trials_flat")
    table = parquet.read_table(path)
    assert str(table.schema.field("created_at").type) == "timestamp[us, tz=UTC]"
    assert str(table.schema.field("reused_from").type) == "string"  # no value to tell


def test__export__one_study__its_rows_alone(filled, tmp_path):
    path = tmp_path / "out.csv"
    assert export_view(filled, path, study='ot"her, stüdy') == 1
    with pytest.raises(NothingThereError):
        export_view(filled, path, study="demi")


def test__export__wrong_names__one_line(filled, tmp_path):
    with pytest.raises(InputError, match=r"views are trials_flat"):
        export_view(filled, tmp_path / "a.csv", view="trials; DROP TABLE trials")
    with pytest.raises(InputError, match=r"\.csv, \.jsonl"):
        export_view(filled, tmp_path / "a.xls")
    with pytest.raises(InputError, match="no folder"):
        export_view(filled, tmp_path / "missing" / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test__export__without_pyarrow__says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from pathlib import Path\n"
        "from search.errors import InputError\n"
        "from search.export import export_view\n"
        "try: export_view(None, Path('a.parquet'))\n"
        "except InputError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert "pip install 'mixsearch[parquet]'" in done.stdout
