"""What a trial gets that chooses while others do."""

from itertools import count, islice

from hypothesis import given
from hypothesis import strategies as st

from search.phases import Ask, Choice


def choices():
    """Endless: a stack with one seed after the other."""
    return (Choice(("attention",), seed_index=seed_index) for seed_index in count(1))


@given(n_left=st.integers(0, 8), ahead=st.integers(0, 10), refused=st.frozensets(st.integers(1, 8)))
def test__turn__some_left__is_the_free_choice_at_its_place_or_else_the_first(
    n_left, ahead, refused
):
    left = list(islice(choices(), n_left))
    free = [choice for choice in left if choice.seed_index not in refused]
    ask = Ask(9, frozenset(choice.key for choice in left if choice not in free), ahead=ahead)
    expected = free[ahead] if ahead < len(free) else next(iter(free), None)
    assert ask.turn(left) == expected


@given(st.integers(0, 30))
def test__turn__without_end__each_has_its_own(ahead):
    assert Ask(9, ahead=ahead).turn(choices()).seed_index == ahead + 1
