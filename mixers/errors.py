"""Errors a user can cause; all are `ValueError`s whose text says what, where and what to do."""


class MixerError(ValueError):
    """A mixer was asked for something it cannot do; base of all errors of this room."""


class UnknownMixerError(MixerError):
    """No mixer is registered under this name."""


class BrokenPluginError(MixerError):
    """A plugin of this name is installed but could not be taken in; the text holds the reason."""


class SpecError(MixerError):
    """A spec or a config is wrong; the text has one line per problem, each with its path."""


class ConformanceError(MixerError, AssertionError):
    """A mixer does not do what it claims.

    Attributes:
        kind: The mixer's kind.
        claim: What was claimed, in one sentence.
        measured: What was measured instead.
        counterexample: The smallest input found that shows it.
    """

    def __init__(self, kind: str, claim: str, measured: str, counterexample: str) -> None:
        self.kind = kind
        self.claim = claim
        self.measured = measured
        self.counterexample = counterexample
        super().__init__(
            f"{kind}: claim: {claim}; measured: {measured}; counterexample: {counterexample}"
        )


class PluginWarning(UserWarning):
    """A plugin was set aside; everything else works."""
