"""Many workers at the same moment: all of them have a number before any of them chooses."""

from collections import Counter

import pytest
from store_factory import result, study_spec

from search.engine.assembly import make_claims
from search.engine.needs import strategy_of
from search.engine.preparing import Prepared
from search.spec.budget import Budget

SPACE = {"choices": ["attention", "sepconv", "average"]}
ENCODER = {"d_model": 32, "n_layers": 4, "d_ff": 64}
STACKS = ["sepconv*4", "attention*4", "average*4", "sepconv, attention*3"]
WORTH = {"attention": 0.5, "sepconv": 0.1, "average": 0.4}


class Crowd:
    """Workers whose claims cross: each commits only when every later one has done so.

    What each commit came to is in `outcomes`.
    """

    def __init__(self, store, study, budget):
        self.store = store
        self.row = store.ensure_study("s", study, {})
        self.spec, self.budget = study, Budget.parse(budget)
        self.outcomes = Counter()
        self.found = []
        self.waiting = 0

    def __getattr__(self, name):
        return getattr(self.store, name)

    def commit(self, claim, *arguments, **named):
        """What a worker calls; the next one claims first."""
        if self.waiting:
            self.one_more()
        outcome = self.store.commit(claim, *arguments, **named)
        self.outcomes[outcome] += 1
        return outcome

    def one_more(self):
        self.waiting -= 1
        worker, strategy = self.store.register_worker(), strategy_of(self.spec)
        claims = make_claims(
            self, self.row, self.spec, strategy, self.budget, worker, Prepared("f")
        )
        self.found.append(claims.next())

    def claim_together(self, n):
        """Let n workers claim; returns what they got."""
        self.waiting, self.found = n, []
        self.one_more()
        return self.found

    def train(self, assignments):
        """End their trials with a loss that depends on the architecture."""
        for assignment in assignments:
            loss = 1.0 + sum(WORTH[block.mixer.kind] for block in assignment.spec.blocks)
            splits = (
                ("selection", "test") if assignment.claim.phase == "confirm" else ("selection",)
            )
            self.store.finish(assignment.claim, result(loss, splits=splits))


@pytest.fixture
def searched(store):
    """A study whose search is over: the confirmation's share of the budget is left."""
    crowd = Crowd(store, study_spec(encoder=ENCODER, space=SPACE), 60)
    while (done := len(store.rows("s"))) < 40:
        crowd.train(crowd.claim_together(1))
        assert len(store.rows("s")) == done + 1
    crowd.outcomes.clear()
    return crowd


def test__claims__first_baselines__each_worker_gets_its_own_at_once(store):
    crowd = Crowd(store, study_spec(encoder=ENCODER, space=SPACE), 60)
    found = crowd.claim_together(6)
    assert len({assignment.spec.arch_id for assignment in found}) == 6
    assert {assignment.claim.phase for assignment in found} == {"baseline"}
    assert crowd.outcomes == {"running": 6}


def test__claims__confirmation__each_worker_gets_its_own_repeat_at_once(searched):
    found = searched.claim_together(20)
    repeats = {(assignment.role, assignment.seed_index) for assignment in found}
    assert {assignment.claim.phase for assignment in found} == {"confirm"}
    assert len(repeats) == 20
    assert searched.outcomes == {"running": 20}
    last = Counter(role for role, _ in repeats)
    assert repeats == {(role, k + 1) for role, n in last.items() for k in range(n)}
    assert max(last.values()) - min(last.values()) <= 1


def test__claims__listed_study__each_worker_gets_its_own_training_at_once(store):
    study = study_spec(
        encoder=ENCODER,
        space={"architectures": STACKS},
        strategy={"name": "listed", "options": {"seeds": 3}},
    )
    crowd = Crowd(store, study, 12)
    found = crowd.claim_together(12)
    assert len({(a.spec.arch_id, a.seed_index) for a in found}) == 12
    assert crowd.outcomes == {"running": 12}


def test__claims__workers_that_died_choosing__their_repeats_are_made_up_for(searched):
    worker = searched.store.register_worker()
    dead = [
        searched.store.reserve(searched.row.id, worker, lambda counts: "confirm") for _ in range(2)
    ]
    [third] = searched.claim_together(1)
    assert (third.role, third.seed_index) == ("pick", 2)
    for claim in dead:
        searched.store.release(claim, True, "died")
    repeats = [third, *(searched.claim_together(1)[0] for _ in range(3))]
    assert sorted((repeat.role, repeat.seed_index) for repeat in repeats) == [
        ("pick", 1),
        ("pick", 2),
        ("reference", 1),
        ("reference", 2),
    ]
