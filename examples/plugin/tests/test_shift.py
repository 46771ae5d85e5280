"""Every claim of the mixer, measured."""

from mixers.testing import Check, parametrize_with_checks


@parametrize_with_checks("acme-mixers.shift", [{}, {"distance": 3}, {"share": 0.5}])
def test_shift_keeps_its_claims(check: Check) -> None:
    """One claim of one config."""
    check()
