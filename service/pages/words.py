"""How the pages write times, states and stacks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from search.rows import StudyRow

MOODS = {
    "good": ("completed", "running", "better", "may be cheap", "keep depth"),
    "bad": ("failed", "diverged", "lost", "keep attention"),
    "warn": ("paused", "stopped", "pruned", "preempted", "orphan", "queued"),
}
TINTS = {letter: f"k{place}" for place, letter in enumerate("ASBMH0LDPF")}
N_TINTS = len(TINTS)
REASONS = {
    "budget": "the budget is used up",
    "space used up": "nothing is left to train",
    "failed": "no trial gave a result",
}
STEPS = ((60, 1, "second"), (3600, 60, "minute"), (86_400, 3600, "hour"))
DAY_S = 86_400
A_MONTH_S = 31 * DAY_S


def as_moment(value: datetime | str) -> datetime:
    """Reads a stored time; one without a zone is UTC."""
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def iso(value: datetime | str) -> str:
    """A time for programs."""
    return as_moment(value).isoformat(timespec="seconds")


def utc(value: datetime | str) -> str:
    """A time for people, to the second."""
    return as_moment(value).strftime("%Y-%m-%d %H:%M:%S UTC")


def ago(value: datetime | str, now: datetime | None = None) -> str:
    """How long ago a time was; the day itself where it is more than a month."""
    moment = as_moment(value)
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    if seconds < 1:
        return "just now"
    if seconds >= A_MONTH_S:
        return moment.strftime("%Y-%m-%d")
    for end, size, unit in STEPS:
        if seconds < end:
            return _counted(int(seconds // size), unit)
    return _counted(int(seconds // DAY_S), "day")


def _counted(n: int, unit: str) -> str:
    return f"{n} {unit}{'' if n == 1 else 's'} ago"


def mood(word: Any) -> str:
    """The class of a badge for a state or an outcome."""
    first = str(word).partition(" (")[0].partition(":")[0].partition(";")[0]
    return next((name for name, words in MOODS.items() if first in words), "")


def tint(letter: str) -> str:
    """The colour class of a mixer's letter; letters beyond the built-in ones share them."""
    return TINTS.get(letter) or f"k{ord(letter[0]) % N_TINTS if letter else 0}"


def study_state(study: StudyRow) -> str:
    """A study's state; one that nobody works on now is idle."""
    if study.state == "running" and not study.n_running:
        return "idle"
    return study.state


def study_reason(study: StudyRow) -> str:
    """Why a study is in its state, in words; empty where it needs no reason."""
    reason = study.reason or ""
    return REASONS.get(reason, reason)


def ticks(text: str) -> Markup:
    """Text whose parts between backticks are code."""
    parts = [escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts)
    )
