"""Workers with real training processes: one of the two is killed, or both; nothing is lost."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from crew import SMALL
from fault_trials import RECIPE, faults_installed
from invariants import check_invariants
from nursery import Nursery

import search
from search.engine.needs import plugins_of
from search.rows import TrialRow
from search.spec.study import StudySpec
from search.store.repo import Store

AT = 5
KILLS = ("kills_child", "kills_both_in_save", "kills_parent")
TRIALS = len(KILLS) + 1
LONGEST_S = 240


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with faults_installed(tmp_path_factory.mktemp("faults")) as folder:
        yield folder / "site"


def study_of_kills() -> StudySpec:
    """Architectures that kill something in their fifth step, once each, and one that does not."""
    traps = [{"kind": "faults.trap", "fault": fault, "at": AT} for fault in KILLS]
    return StudySpec.model_validate(
        {
            "task": {"kind": "faults.copy"},
            "encoder": {"d_model": 16, "n_layers": 1, "d_ff": 16, "dropout": 0.2},
            "space": {"choices": [*traps, {"kind": "identity"}]},
            "baselines": {"reference": "identity", "cheap": "faults.trap"},
            "strategy": {"name": "listed", "options": {"seeds": 1}},
            "training": RECIPE,
        }
    )


@pytest.fixture(scope="module")
def undisturbed(site: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrialRow]:
    """The trials by notation, each trained in one piece."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("cache_dir", "files_dir"):
            patch.setenv(f"SEARCH_{name.upper()}", str(folder / name))
        patch.setenv("SEARCH_THREADS", "1")
        patch.setenv("FAULT_FLAG", str(folder / "struck"))
        for fault in KILLS:
            (folder / f"struck-{fault}").touch()
        url = f"sqlite:///{folder / 'search.db'}"
        search.run(study_of_kills(), str(TRIALS), url, name="kills", in_process=True)
    with Store.open(url) as store:
        return {row.notation: row for row in store.rows("kills")}


@pytest.mark.parametrize(
    "ready_url",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.slow])],
    indirect=True,
)
def test__SIGKILL__of_parent_or_child_or_both__ends_as_undisturbed_from_the_newest_checkpoint(
    nursery: Nursery,
    ready_url: str,
    site: Path,
    undisturbed: dict[str, TrialRow],
    tmp_path: Path,
) -> None:
    settings = {
        "SEARCH_CACHE_DIR": tmp_path / "cache",
        "SEARCH_FILES_DIR": tmp_path / "files",
        "SEARCH_THREADS": 1,
        "SEARCH_CHECKPOINT_S": 1e-6,
        "SEARCH_LEASE_S": 2 * SMALL.lease_s,
        "SEARCH_BEAT_S": SMALL.beat_s,
        "SEARCH_POLL_S": 0.2,
        "FAULT_SITE": site,
        "FAULT_FLAG": tmp_path / "struck",
    }
    with Store.open(ready_url) as store:
        study = study_of_kills()
        row = store.ensure_study("kills", study, plugins_of(study))
        store.ask_budget(row.id, str(TRIALS))
    words = ("worker", "--store", ready_url, "--study", "kills", "--until-idle")
    codes, end = [], time.monotonic() + LONGEST_S
    while True:
        worker = nursery.start("real_worker", *words, **settings)
        _, said = worker.communicate(LONGEST_S)
        assert worker.returncode in (0, -signal.SIGKILL), said
        codes.append(worker.returncode)
        with Store.open(ready_url) as store:
            if store.study("kills").state == "completed":
                break
        assert time.monotonic() < end, said
    assert codes.count(-signal.SIGKILL) == 2
    with Store.open(ready_url) as store:
        documents = check_invariants(
            store,
            "kills",
            TRIALS,
            value=lambda row: undisturbed[row.notation].selection["loss"],
            redone=1,
        )
        for found in store.rows("kills"):
            assert found.curve == undisturbed[found.notation].curve
    for document in documents[: len(KILLS)]:
        first, *_, last = document["attempts"]
        assert (first["cause"], last["outcome"]) == ("lost", "completed")
        assert last["resumed_step"] >= AT - 1
