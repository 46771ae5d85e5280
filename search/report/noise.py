"""The noise floor: how far repeats of one architecture lie apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from search.answers.variance import few_words
from search.report.sections import Room, Section
from search.wording import two_digits

if TYPE_CHECKING:
    from search.answers.answer import Answer

SHOWN = 0.05
"""Bartlett's p up to which SDs are called different; above it they may be too unlike to pool."""

ABOUT = (
    "The same stack, trained again with another seed, ends elsewhere; the repeat SD says "
    "how far. Differences much smaller than that mean nothing. df are the degrees of "
    "freedom that it rests on: the more, the surer."
)


def section(answer: Answer, room: Room | None) -> Section:
    """The repeat SD beside the range of the uniform stacks."""
    noise = answer.noise
    if noise.sd is None and noise.equal_p is not None:
        own = (f"{r.code} {two_digits(r.sd)} ({r.n - 1} df)" for r in noise.repeats if r.sd)
        differs = "differs" if noise.equal_p <= SHOWN else "may differ"
        line = f"repeat SD {differs} by architecture (Bartlett's p {noise.equal_p:.2g}): "
        line += ", ".join(own)
    elif noise.sd is None:
        line = f"not measured ({noise.reason}): no difference can be called real"
    else:
        line = (
            f"repeat SD {two_digits(noise.sd)} ({noise.df} df, 95 %: "
            f"{two_digits(noise.low)}..{two_digits(noise.high)})"
        )
        line += f", {few_words(noise.df)}" if few_words(noise.df) else ""
    if noise.uniform_range is not None:
        line += f"; {noise.uniform_n} uniform stacks span {two_digits(noise.uniform_range)}"
        line += f" = {two_digits(noise.ratio)} SD" if noise.ratio is not None else ""
    lines = (line,) if room is not None else (line, *_by_contrast(answer))
    return Section("Noise floor", lines=lines, about=ABOUT)


def _by_contrast(answer: Answer) -> Iterator[str]:
    """The documents' part of each contrast's error, and whether common seeds move together."""
    for contrast in answer.contrasts:
        pair = f"{contrast.candidate} - {contrast.other}"
        if contrast.evaluation is not None:
            yield (
                f"{pair}: standard error from {contrast.evaluation.n_groups} groups of test "
                f"documents {two_digits(contrast.evaluation.sd)}, which no further seed lowers"
            )
        if contrast.pairing is not None:
            common = contrast.pairing
            ends = "" if common.low is None else f" [{common.low:+.2f}, {common.high:+.2f}]"
            wide, is_paired = two_digits(common.width_ratio), "is" if common.is_used else "is not"
            yield (
                f"{pair}: correlation over {common.n} common seeds "
                f"{common.correlation:+.2f}{ends}; paired, the interval of seeds is {wide} "
                f"times as wide (it {is_paired} paired: one-sided p {two_digits(common.p_value)})"
            )
