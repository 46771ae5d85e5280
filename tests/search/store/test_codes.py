"""Codes of one study tell its stacks apart."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from search.rows import TrialRow
from search.store.codes import distinct_codes

MIXERS = {"attention": "A", "attention(rotary=true)": "A", "sepconv": "S", "average": "M"}


def row(number: int, mixers: Sequence[str]) -> TrialRow:
    code = "".join(MIXERS[mixer] for mixer in mixers)
    return TrialRow(
        id=number + 1,
        study="s",
        number=number,
        phase="search",
        state="completed",
        code=code,
        mixers=tuple(mixers),
        n_layers=len(mixers),
    )


def codes(*stacks: Sequence[str]) -> list[str]:
    return [r.code for r in distinct_codes([row(n, mixers) for n, mixers in enumerate(stacks)])]


def test__distinct_codes__two_kinds_of_attention__the_first_keeps_the_capital() -> None:
    stacks = (["attention(rotary=true)", "sepconv"], ["attention", "sepconv"], ["average"] * 2)
    assert codes(*stacks) == ["AS", "aS", "MM"]


def test__distinct_codes__one_mixer_of_each_kind__as_they_were() -> None:
    rows = [row(0, ["attention", "sepconv"]), row(1, ["average", "attention"])]
    assert distinct_codes(rows) == rows


@given(
    st.lists(
        st.lists(st.sampled_from(sorted(MIXERS)), min_size=2, max_size=2), min_size=1, max_size=9
    )
)
def test__distinct_codes__any_study__equal_codes_mean_equal_stacks(stacks: list[list[str]]) -> None:
    found = dict(zip(codes(*stacks), stacks, strict=True))
    assert len(found) == len({tuple(stack) for stack in stacks})


def test__distinct_codes__proposed_trial__has_none() -> None:
    proposed = TrialRow(id=1, study="s", number=0, phase="search", state="proposed")
    assert distinct_codes([proposed]) == [proposed]
