from hypothesis import given
from hypothesis import strategies as st

from search.phases import Agenda, left_out, next_phase, quotas
from search.rows import Counts
from search.spec.budget import Budget

ALL = frozenset({"baseline", "search", "confirm"})


def counts(by_phase, busy_s=0.0, flops=0):
    started = sum(by_phase.values())
    return Counts(by_phase=dict(by_phase), started=started, busy_s=busy_s, flops=flops)


def run(n, agenda, by_phase=None):
    """Starts trials until nothing may start; returns the phases in order."""
    by_phase = dict(by_phase or {})
    order = []
    while (phase := next_phase(Budget.parse(n), counts(by_phase), agenda(by_phase))) is not None:
        by_phase[phase] = by_phase.get(phase, 0) + 1
        order.append(phase)
        assert len(order) <= n
    return order, by_phase


def plenty(by_phase, listed=10):
    missing = by_phase.get("baseline", 0) < listed
    return Agenda(listed, ALL if missing else ALL - {"baseline"})


def test__quotas__small_budgets__are_as_documented():
    expected = {1: (0, 1, 0), 2: (0, 2, 0), 3: (1, 2, 0), 5: (1, 4, 0), 6: (2, 2, 2), 9: (3, 3, 3)}
    expected |= {10: (3, 4, 3), 24: (8, 8, 8), 60: (10, 30, 20)}
    for n, parts in expected.items():
        assert tuple(quotas(n, 10)[p] for p in ("baseline", "search", "confirm")) == parts


@given(n=st.integers(1, 500), listed=st.integers(0, 20))
def test__quotas__any_budget__sum_to_it_and_keep_their_limits(n, listed):
    shares = quotas(n, listed)
    assert sum(shares.values()) == n
    assert min(shares.values()) >= 0
    assert shares["baseline"] <= min(n / 3, listed)
    assert shares["confirm"] == (n // 3 if n >= 6 else 0)


@given(n=st.integers(1, 80))
def test__next_phase__enough_to_do__spends_exactly_the_budget_in_order(n):
    order, by_phase = run(n, plenty)
    assert len(order) == n
    assert {p: by_phase.get(p, 0) for p in ALL} == quotas(n, 10)
    assert order == sorted(order, key=["baseline", "search", "confirm"].index)


@given(first=st.integers(1, 40), more=st.integers(0, 40))
def test__next_phase__budget_raised__spends_exactly_the_difference(first, more):
    _, by_phase = run(first, plenty)
    order, total = run(first + more, plenty, by_phase)
    assert len(order) == more
    assert sum(total.values()) == first + more


@given(first=st.integers(2, 40), data=st.data())
def test__next_phase__equal_or_smaller_budget__starts_nothing(first, data):
    _, by_phase = run(first, plenty)
    smaller = data.draw(st.integers(1, first))
    assert run(smaller, plenty, by_phase)[0] == []


def test__next_phase__share_that_cannot_be_used__goes_to_search():
    order, _ = run(9, lambda by_phase: Agenda(0, frozenset({"search"})))
    assert order == ["search"] * 9
    order, _ = run(9, lambda by_phase: Agenda(10, frozenset({"search", "confirm"})))
    assert order == ["search"] * 3 + ["confirm"] * 3 + ["search"] * 3


def test__next_phase__space_used_up__confirms_its_share_and_ends():
    def agenda(by_phase):
        left = by_phase.get("baseline", 0) + by_phase.get("search", 0) < 9
        return Agenda(4, ALL if left else frozenset({"confirm"}))

    order, by_phase = run(30, agenda)
    assert by_phase["confirm"] == 10
    assert len(order) == 19


def shares(unit, amounts, open_phases=ALL):
    agenda = Agenda(10, open_phases)
    budget = Budget(unit, 90.0)
    key = "busy_s" if unit == "seconds" else "flops"
    return [next_phase(budget, counts({"search": 30}, **{key: a}), agenda) for a in amounts]


def test__next_phase__time_and_flops__are_split_in_thirds_of_what_is_spent():
    for unit in ("seconds", "flops"):
        found = shares(unit, [0, 29, 31, 59, 61, 89, 90, 91])
        assert found == [
            *["baseline"] * 2,
            *["search"] * 2,
            *["confirm"] * 2,
            None,
            None,
        ]
        assert shares(unit, [0, 61], ALL - {"baseline"}) == ["search", "confirm"]
        assert shares(unit, [61, 89], {"search"}) == ["search", "search"]


def test__next_phase__first_training_takes_most_of_the_time__a_second_stack_comes_next():
    only_one = Agenda(10, ALL - {"confirm"})
    spent = counts({"baseline": 1}, busy_s=16.0)
    assert next_phase(Budget.parse("20s"), spent, only_one) == "baseline"
    assert next_phase(Budget.parse("20s"), spent, Agenda(10, ALL)) == "confirm"


def test__next_phase__space_used_up_early_in_time__confirms_no_more_than_its_share():
    budget, agenda = Budget("seconds", 9000.0), Agenda(4, frozenset({"confirm"}))
    by_phase = {"baseline": 4, "search": 6}
    while (phase := next_phase(budget, counts(by_phase, busy_s=50.0), agenda)) is not None:
        by_phase[phase] = by_phase.get(phase, 0) + 1
        assert by_phase["confirm"] < 50
    assert by_phase["confirm"] == 5


def screened(n_screen, budget, listed=10):
    """Phases of a study with so many runs of a design beside the baselines."""

    def agenda(by_phase):
        left = by_phase.get("screen", 0) < n_screen
        return Agenda(
            listed, plenty(by_phase, listed).open_phases | ({"screen"} if left else set())
        )

    return run(budget, agenda)


def test__next_phase__design__comes_between_baselines_and_search():
    order, by_phase = screened(14, 48)
    assert by_phase == {"baseline": 10, "screen": 14, "search": 8, "confirm": 16}
    assert order == sorted(order, key=["baseline", "screen", "search", "confirm"].index)


@given(budget=st.integers(1, 80), n_screen=st.integers(0, 60))
def test__next_phase__design__has_all_of_the_searchs_share_if_need_be(budget, n_screen):
    _, by_phase = screened(n_screen, budget)
    shares = quotas(budget, 10, n_screen)
    assert sum(shares.values()) == budget
    assert shares.get("screen", 0) + shares["search"] == quotas(budget, 10)["search"]
    assert by_phase == {phase: n for phase, n in shares.items() if n}


def test__next_phase__time__design_has_the_middle_third_until_it_is_complete():
    with_design = ALL | {"screen"}
    assert shares("seconds", [0, 31, 59, 61], with_design) == [
        "baseline",
        "screen",
        "screen",
        "confirm",
    ]
    assert shares("seconds", [61], {"search", "screen"}) == ["screen"]


def test__left_out__baselines_not_trained__are_named_in_order():
    assert left_out(["a", "b", "c"], {"b"}) == ("a", "c")
