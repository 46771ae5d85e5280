import math

import pytest

from search.cli.numbers import decimals, percent, scaled, seconds, size_in_bytes


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (950, "950"),
        (999.6, "1.00 k"),
        (1234, "1.23 k"),
        (45_600, "45.6 k"),
        (2_500_000, "2.50 M"),
        (3e15, "3.00 P"),
        (None, "-"),
        (math.nan, "-"),
    ],
)
def test__scaled__size__decimal_prefix(value: float | None, text: str) -> None:
    assert scaled(value) == text


def test__scaled__unit__follows_the_prefix() -> None:
    assert scaled(12_345_678, "FLOP") == "12.3 MFLOP"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00034, "340 us"),
        (0.0123, "12.3 ms"),
        (0.9996, "1 s"),
        (4.561, "4.56 s"),
        (59.96, "1 min 00 s"),
        (200, "3 min 20 s"),
        (3900, "1 h 05 min"),
        (math.inf, "-"),
        (None, "-"),
    ],
)
def test__seconds__span__unit_that_fits(value: float | None, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(512, "512 B"), (1536, "1.5 KiB"), (3 << 30, "3.0 GiB"), (None, "-")]
)
def test__size_in_bytes__size__binary_unit(value: int | None, text: str) -> None:
    assert size_in_bytes(value) == text


def test__decimals_and_percent__absent_or_not_finite__dash() -> None:
    assert decimals(1.23456) == "1.2346"
    assert percent(0.3456) == "34.6 %"
    assert {f(x) for f in (decimals, percent) for x in (None, math.nan, math.inf)} == {"-"}
