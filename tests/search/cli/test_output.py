import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from search.cli.output import LEFT, RIGHT, json_text, table


@dataclasses.dataclass
class Row:
    loss: float
    name: str


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


@given(anything)
def test__json_text__any_value__strict_json(value: object) -> None:
    json.loads(json_text(value), parse_constant=refuse)


def test__json_text__rows_and_arrays__plain_values() -> None:
    value = {
        "row": Row(float("nan"), "a"),
        "n": np.float32(0.5),
        "many": np.array([1, 2]),
        "at": datetime(2024, 1, 2, tzinfo=UTC),
        "where": Path("x/y"),
    }
    assert json.loads(json_text(value)) == {
        "row": {"loss": None, "name": "a"},
        "n": 0.5,
        "many": [1, 2],
        "at": "2024-01-02T00:00:00+00:00",
        "where": "x/y",
    }


def test__table__piped__aligned_and_never_cut() -> None:
    long = "sepconv(kernel_size=31), " * 20
    text = table((("name", LEFT), ("loss", RIGHT)), [(long, "1.5"), ("b", "10.25")])
    lines = text.splitlines()
    assert long.strip() in lines[1]
    assert len({len(line) for line in lines}) == 1
    assert lines[1].endswith(" 1.5")
    assert lines[2].endswith("10.25")


def test__table__cells_that_look_like_markup__shown_as_they_are() -> None:
    assert "[red]a[/red]" in table((("name", LEFT),), [("[red]a[/red]",)])
