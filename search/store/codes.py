"""Codes that tell mixers of one kind apart: "A" and "a" for attention with and without rotary.

A code has one letter a layer, for reading only, and by itself the letter says no more than the
mixer's kind. Where one study has several mixers of a kind, each gets a letter of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from search.rows import TrialRow


def distinct_codes(rows: Sequence[TrialRow]) -> list[TrialRow]:
    """Returns the rows with their distinct codes; those whose code is distinct stay as they are."""
    return [
        row if row.code == code else replace(row, code=code)
        for row, code in zip(rows, codes_of(rows), strict=True)
    ]


def codes_of(rows: Sequence[TrialRow]) -> list[str]:
    """Returns codes that no two stacks of the rows share, as far as letters go.

    Of the mixers of one letter the one that came first keeps it, the next takes the small letter,
    further ones take digits.
    """
    letters = letters_of((row.code, row.mixers) for row in rows if len(row.code) == row.n_layers)
    if all(letter == symbol for (symbol, _), letter in letters.items()):
        return [row.code for row in rows]
    return [code_of(row, letters) for row in rows]


def letters_of(stacks: Iterable[tuple[str, Sequence[str]]]) -> dict[tuple[str, str], str]:
    """Returns the letter of each mixer, by its kind's letter and its notation."""
    letters: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    stacks = list(dict.fromkeys((code, tuple(mixers)) for code, mixers in stacks))
    symbols = {symbol for code, _ in stacks for symbol in code}
    for code, mixers in stacks:
        for symbol, mixer in zip(code, mixers, strict=True):
            if (symbol, mixer) in letters:
                continue
            wishes = (symbol, symbol.lower(), *"123456789")
            free = (w for w in wishes if w not in taken and (w == symbol or w not in symbols))
            letters[symbol, mixer] = next(free, symbol)
            taken.add(letters[symbol, mixer])
    return letters


def code_of(row: TrialRow, letters: dict[tuple[str, str], str]) -> str:
    """Returns a row's code in distinct letters."""
    if len(row.code) != row.n_layers:
        return row.code
    return "".join(letters[pair] for pair in zip(row.code, row.mixers, strict=True))
