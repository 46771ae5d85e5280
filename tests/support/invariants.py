"""What must hold of a store after whatever happened to its workers; reads nothing but the store."""

from collections import Counter
from typing import Any

from fault_worker import value_of

from search.rows import FINAL_STATES
from search.store.repo import Store


def check_invariants(store: Store, study: str, budget: int) -> list[dict[str, Any]]:
    """Hold a finished study to its promises; returns its trials as documents.

    The budget is exact, no trial is lost or brought to an end twice, each ended for a stated
    reason, nothing is in anybody's hands any more, and every number is the one that the training
    gives.
    """
    rows = store.rows(study)
    assert len(rows) == budget, [row.state for row in rows]
    # A reservation that was given back may leave a number unused.
    assert len({row.number for row in rows}) == budget
    trained = Counter((row.mixers, row.seed_index) for row in rows)
    assert set(trained.values()) == {1}, trained
    documents = [store.trial(row.id) for row in rows]
    for row, document in zip(rows, documents, strict=True):
        attempts = document["attempts"]
        assert row.state in FINAL_STATES, (row.number, row.state)
        assert row.state == "completed" or row.reason, row.number
        assert [a["number"] for a in attempts] == list(range(1, len(attempts) + 1))
        assert all(a["ended_at"] and a["outcome"] for a in attempts), attempts
        ends = [a["outcome"] for a in attempts if a["outcome"] == row.state]
        assert len(ends) == 1, attempts
        assert attempts[-1]["outcome"] == row.state, attempts
        if row.state == "completed":
            assert row.selection["loss"] == value_of(row.code, row.seed), row
            steps = [step for step, _ in row.curve]
            assert steps == sorted(set(steps)), row.curve
    found = store.study(study)
    assert found.n_running == 0
    assert found.state == "completed", (found.state, found.reason)
    return documents
