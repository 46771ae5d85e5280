"""Whether the speed-up over all-attention is real, beside what counting promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section
from search.wording import plural

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.speedup import Ratio

ABOUT = (
    "A speed-up is real where the stack is faster than all-attention as measured, is not worse, "
    "and no shorter model is as fast and as good. FLOPs are a guide, the clock decides."
)


def section(answer: Answer, room: Room | None) -> Section:
    """The word, the ratios and what they were measured on."""
    found = answer.speed_up
    if found is None or found.measured is None:
        return Section("Speed-up")
    faster = f"{found.candidate} is {ratio_text(found.measured)} times as fast as all-attention"
    counted = f"; by FLOPs {found.counted:.2f}, a guide" if found.counted else ""
    if room is not None:
        why = f" ({found.because[0]})" if found.real == "no" else ""
        return Section("Speed-up", lines=(f"{faster}{counted}; real? {found.real}{why}",))
    why = f" ({'; '.join(found.because)})" if found.because else ""
    lines = [f"real? {found.real}{why}: {faster}{counted}"]
    if found.shorter is not None and found.shorter_measured is not None:
        lines.append(
            f"{found.shorter}, with fewer layers, is {ratio_text(found.shorter_measured)} times as "
            f"fast as {found.candidate}"
        )
    if found.conditions is not None:
        device, dtype, batch, length = found.conditions
        runs = plural(found.measured.n + found.measured.n_other, "run")
        lines.append(f"forward pass, {runs}: {device}, {dtype}, batch {batch} of {length} tokens")
    return Section("Speed-up", lines=tuple(lines), about=ABOUT)


def ratio_text(ratio: Ratio) -> str:
    """A ratio with its interval."""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.estimate:.2f}"
    digits = 2 if ratio.high - ratio.low >= 0.02 else 3
    return f"{ratio.estimate:.{digits}f} [{ratio.low:.{digits}f}, {ratio.high:.{digits}f}]"
