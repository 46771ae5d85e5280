import math

import pytest

from search.cli.numbers import decimals, size_in_bytes


@pytest.mark.parametrize(
    ("value", "text"), [(512, "512 B"), (1536, "1.5 KiB"), (3 << 30, "3.0 GiB"), (None, "-")]
)
def test__size_in_bytes__size__binary_unit(value: int | None, text: str) -> None:
    assert size_in_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.23456, "1.2346"), (None, "-"), (math.nan, "-"), (math.inf, "-")]
)
def test__decimals__any_value__digits_or_dash(value: float | None, text: str) -> None:
    assert decimals(value) == text
