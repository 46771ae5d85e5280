"""Refuse a mixer that sees later tokens, before a causal study spends anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.engine.needs import mixers_of
from search.errors import InputError

if TYPE_CHECKING:
    from search.spec.study import StudySpec

TOKENS = 12
"""Of the input whose later tokens are changed."""


def refuse_looking_ahead(study: StudySpec) -> None:
    """Measures that no mixer which a causal study may build looks ahead; its word is not enough.

    A mixer that saw what it is to predict would win every search. Takes milliseconds per mixer.

    Raises:
        InputError: An output moved with a later token; the text has the counterexample.
    """
    if not study.encoder.causal:
        return
    from mixers.conformance import CHECKS, Subject
    from mixers.errors import ConformanceError
    from mixers.registry import mixer_registry
    from mixers.testing import Check

    longest = study.sizes.max_seq_len
    for config in mixers_of(study):
        subject = Subject(
            mixer_registry.load(config.kind),
            config,
            d_model=study.encoder.d_model,
            seq_len=min(TOKENS, longest),
            max_seq_len=longest,
        )
        try:
            Check("causal", subject, CHECKS["causal"])()
        except ConformanceError as error:
            raise InputError(
                f"mixer {config.kind} cannot stand in a causal study: {error.measured} "
                f"({error.counterexample}); repair it, or leave it out of the choices"
            ) from None
