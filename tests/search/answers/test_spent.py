from simulated import ATTENTION, row

from search.answers.spent import spent_of

A, S = ATTENTION, "sepconv"


def test__spent_of__phases__in_order_with_their_time_and_reused_trials_at_no_cost():
    spent = spent_of(
        [
            row(0, (A, A), 3.0, phase="baseline", seconds=10.0),
            row(1, (S, S), 2.0, phase="baseline", seconds=7.0, reused_from=99),
            row(2, (S, A), 2.0, phase="search", seconds=4.0),
            row(3, (A, S), phase="search", state="running"),
        ]
    )
    assert [(p.phase, p.n, p.reused, p.seconds) for p in spent.phases] == [
        ("baseline", 2, 1, 10.0),
        ("search", 2, 0, 4.0),
    ]
    assert spent.failures == ()


def test__spent_of__failures__grouped_by_state_and_cause_most_frequent_first():
    spent = spent_of(
        [
            row(0, (A, A), state="diverged", reason="loss was nan at step 5"),
            row(1, (S, A), state="failed", error="ValueError: boom"),
            row(2, (S, A), state="failed", error="ValueError: boom"),
            row(3, (S, S), state="failed", error="ValueError: boom"),
            row(4, (A, S), state="stopped"),
        ]
    )
    assert [(f.state, f.cause, f.n, f.codes, f.first) for f in spent.failures] == [
        ("failed", "ValueError: boom", 3, ("SA", "SS"), 1),
        ("diverged", "loss was nan at step 5", 1, ("AA",), 0),
        ("stopped", "cause not recorded", 1, ("AS",), 4),
    ]
    assert spent.first_failure == "ValueError: boom"


def test__spent_of__all_diverged__the_first_one_is_the_cause():
    rows = [row(k, (A, S), state="diverged", reason=f"loss was nan at step {k}") for k in (5, 7)]
    assert spent_of(rows).first_failure == "loss was nan at step 5"
    assert spent_of([row(0, (A, S), state="stopped")]).first_failure is None
