"""Conformance kit: measures every claim of a mixer. Plain functions, no test framework needed.

    from mixers.testing import check_mixer
    check_mixer("sepconv")

In a test suite of pytest, one test per check:

    @parametrize_with_checks(MyMixer)
    def test__my_mixer__keeps_its_claims(check):
        check()
"""

import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from mixers.catalogue import mixer_config
from mixers.config import MixerConfig
from mixers.conformance import CHECKS, CheckFunction, Subject, influence
from mixers.errors import ConformanceError, MixerError, SpecError
from mixers.registry import mixer_registry

if TYPE_CHECKING:
    import pytest

    from mixers.base import TokenMixer

__all__ = [
    "Check",
    "ConformanceError",
    "check_mixer",
    "checks",
    "influence",
    "parametrize_with_checks",
]

WIDEST = 256
"""Features up to which a width is looked for that suits a config."""


@dataclass(frozen=True)
class Check:
    """One claim of one config, ready to be measured by calling it.

    Attributes:
        name: Name of the check, as `expected_failures` has it.
        subject: What is measured.
        function: The measurement.
        expected: Why it is known to fail, or None.
    """

    name: str
    subject: Subject
    function: CheckFunction
    expected: str | None = None

    def __str__(self) -> str:
        """Return an id for test reports."""
        return f"{self.subject.label}-{self.name}"

    def __call__(self) -> None:
        """Measure.

        Raises:
            ConformanceError: The claim does not hold, the mixer raises something, or the check is
                listed as a known failure and passes.
            SpecError: The config does not fit the sizes of the measurement.
        """
        try:
            self.measure()
        except ConformanceError:
            if self.expected is None:
                raise
            return
        if self.expected is not None:
            raise ConformanceError(
                self.subject.kind,
                f"{self.name} is a known failure ({self.expected})",
                "it passes",
                "take it out of expected_failures",
            )

    def measure(self) -> None:
        """Call the measurement; what the mixer itself raises becomes a ConformanceError."""
        try:
            self.function(self.subject)
        except (ConformanceError, SpecError):
            raise
        except Exception as error:
            raise ConformanceError(
                self.subject.label,
                f"{self.name} can be measured",
                f"{type(error).__name__}: {error}",
                raised_at(error, self.subject.mixer_type),
            ) from error


def raised_at(error: Exception, mixer_type: type) -> str:
    """Say where an error came from: the last line of the mixer's own module, else the last."""
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [frame for frame in frames if frame[0].f_globals.get("__name__") == mixer_type.__module__]
    frame, line = (own or frames)[-1]
    code = frame.f_code
    return f"raised in {code.co_name} at {Path(code.co_filename).name}, line {line}"


def check_mixer(
    mixer: "str | type[TokenMixer[Any]]",
    configs: Sequence[MixerConfig | Mapping[str, Any]] | None = None,
    *,
    d_model: int | None = None,
    seq_len: int = 12,
    expected_failures: Mapping[str, str] | None = None,
) -> list[str]:
    """Measure every claim of a mixer and stop at the first that does not hold.

    Args:
        mixer: A registered kind, or a mixer class.
        configs: Configs to measure; by default the one that `{"kind": ...}` alone gives.
        d_model: Features per token; by default 16, or the next number that a config fits.
        seq_len: Tokens of the test inputs.
        expected_failures: {name of a check: reason}; it is an error if such a check passes.

    Returns:
        The checks that were made.

    Raises:
        ConformanceError: With the claim, the measurement and a counterexample.
        MixerError: As `checks`.
    """
    made = []
    for check in checks(
        mixer,
        configs,
        d_model=d_model,
        seq_len=seq_len,
        expected_failures=expected_failures,
    ):
        check()
        made.append(str(check))
    return made


def checks(
    mixer: "str | type[TokenMixer[Any]]",
    configs: Sequence[MixerConfig | Mapping[str, Any]] | None = None,
    *,
    d_model: int | None = None,
    seq_len: int = 12,
    expected_failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """Return the checks that `check_mixer` makes, for one test each; arguments as there.

    Raises:
        MixerError: The mixer is unknown or lacks a part, a config does not fit the sizes of the
            measurement, or an expected failure names no check.
    """
    known = dict(expected_failures or {})
    unknown = sorted(set(known) - set(CHECKS))
    if unknown:
        raise MixerError(f"no check is called {unknown[0]!r}; the checks are {', '.join(CHECKS)}")
    return [
        Check(name, subject, function, known.get(name))
        for subject in subjects(mixer, configs, d_model, seq_len)
        for name, function in CHECKS.items()
    ]


def parametrize_with_checks(
    mixer: "str | type[TokenMixer[Any]]",
    configs: Sequence[MixerConfig | Mapping[str, Any]] | None = None,
    **options: Any,
) -> "pytest.MarkDecorator":
    """Return a decorator of pytest that gives a test one `check` after the other.

    Arguments as in `check_mixer`. The test calls its argument, which is named `check`.
    """
    import pytest

    return pytest.mark.parametrize("check", checks(mixer, configs, **options), ids=str)


def subjects(
    mixer: "str | type[TokenMixer[Any]]",
    configs: Sequence[MixerConfig | Mapping[str, Any]] | None,
    d_model: int | None,
    seq_len: int,
) -> Iterator[Subject]:
    """Yield one subject per config."""
    mixer_type = mixer_registry.load(mixer) if isinstance(mixer, str) else mixer
    if missing := sorted(getattr(mixer_type, "__abstractmethods__", ())):
        raise MixerError(f"{mixer_type.__name__} lacks {', '.join(missing)}; a mixer has them all")
    for config in [{}] if configs is None else configs:
        if isinstance(config, MixerConfig):
            valid = config
        elif isinstance(mixer, str):
            valid = mixer_config({"kind": mixer, **config})
        else:
            valid = mixer_type.config_type.model_validate_json(to_json(dict(config)))
        widths = range(16, WIDEST + 1) if d_model is None else (d_model,)
        tried = [Subject(mixer_type, valid, width, seq_len) for width in widths]
        fitting = next((subject for subject in tried if misfit(subject) is None), None)
        if fitting is None:
            raise SpecError(
                f"{misfit(tried[0])}; this is about the sizes of the measurement: choose others, "
                "with d_model and seq_len"
            )
        yield fitting


def misfit(subject: Subject) -> str | None:
    """Return which setting rules out the sizes of the measurement, or None."""
    sizes = {"d_model": subject.d_model, "max_seq_len": subject.longest}
    try:
        problems = list(subject.config.resolve(**sizes).conflicts(**sizes))
    except Exception:  # whatever a plugin's code raises: each check will say it
        return None
    return next((f"{subject.kind}.{field}: {text}" for field, text in problems), None)
