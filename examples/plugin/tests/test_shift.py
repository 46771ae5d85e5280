"""Every claim of the mixer, measured."""

import pytest

from mixers.testing import Check, checks

CONFIGS = [{}, {"distance": 3}, {"share": 0.5}]


@pytest.mark.parametrize("check", checks("acme-mixers.shift", CONFIGS), ids=str)
def test_shift_keeps_its_claims(check: Check) -> None:
    """One claim of one config."""
    check()
