from pathlib import Path

import pytest
import store_factory

from search.store.repo import Store

FAILED = "ValueError: something went wrong in forward"


@pytest.fixture(scope="session")
def filled_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with one study of twelve completed trials, a failed and a running one."""
    url = f"sqlite:///{tmp_path_factory.mktemp('filled') / 'search.db'}"
    with Store.open(url) as store:
        study_id = store_factory.fill(store, seeds=3)
        worker = store.register_worker()
        for notation in ("attention(rotary=true), sepconv", "sepconv(kernel_size=9), attention"):
            claim = store_factory.claim_and_commit(store, study_id, worker, notation)
            if "rotary" in notation:
                store.fail(claim, store_factory.failure(FAILED))
    return url


@pytest.fixture
def two_studies(tmp_path: Path) -> str:
    """A store with two studies: one without a trial, one with a single failed one."""
    url = f"sqlite:///{tmp_path / 'two.db'}"
    with Store.open(url) as store:
        store.ensure_study("empty", store_factory.study_spec(seed=1), store_factory.PLUGINS)
        study = store.ensure_study("hopeless", store_factory.study_spec(), store_factory.PLUGINS)
        worker = store.register_worker()
        claim = store_factory.claim_and_commit(store, study.id, worker, "attention*2")
        store.fail(claim, store_factory.failure(FAILED))
    return url
