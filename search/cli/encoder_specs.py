"""An encoder as people name it on the command line: a file, notation, or a preset."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mixers import EncoderSpec

FILE_ENDINGS = (".yaml", ".yml", ".json")
PRESET = "preset:"
"""Stands before a preset's name where a mixer has the name, too."""


def read_spec(
    text: str, *, d_model: int, d_ff: int, seq_len: int, vocab_size: int
) -> "EncoderSpec":
    """Read an encoder spec from a file or a preset, or build one from notation and sizes.

    Raises:
        InputError: The file cannot be read.
        MixerError: There is no preset of this name.
        SpecError: It is no valid spec.
    """
    from pydantic import ValidationError

    from mixers import EncoderSpec
    from mixers.errors import SpecError
    from mixers.explain import explain
    from mixers.presets import preset

    if is_file(text):
        return spec_of_file(Path(text))
    name = preset_named(text)
    if name is not None:
        return preset(name)
    try:
        return EncoderSpec.of(
            text, d_ff=d_ff, d_model=d_model, max_seq_len=seq_len, vocab_size=vocab_size
        )
    except ValidationError as error:
        raise SpecError("; ".join(explain(error, EncoderSpec))) from None


def spec_of_file(path: Path) -> "EncoderSpec":
    """Read an encoder spec from a file; raises as `read_spec`."""
    from mixers import EncoderSpec
    from mixers.errors import SpecError
    from mixers.explain import load
    from search.errors import InputError
    from search.spec.study_file import parse_yaml, plain

    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file in UTF-8") from None
    try:
        return load(EncoderSpec, plain(parse_yaml(content, source=str(path))))
    except SpecError as error:
        raise InputError(f"{path}: {'; '.join(str(error).splitlines())}") from None


def has_sizes(text: str) -> bool:
    """Whether a text names a whole spec, as a file or a preset does and notation does not."""
    return is_file(text) or preset_named(text) is not None


def is_file(text: str) -> bool:
    """Whether a text is the path of a spec; by its ending, too, so a slip is named as one."""
    path = Path(text)
    return path.suffix.lower() in FILE_ENDINGS or path.is_file()


def is_notation(text: str) -> bool:
    """Whether a text has settings, a count or several layers, as no bare name has."""
    return any(mark in text for mark in "(*,")


def preset_named(text: str) -> str | None:
    """Return the preset that a text names, or None: a mixer of the same name comes first."""
    from mixers.errors import MixerError
    from mixers.presets import NAMES
    from mixers.registry import mixer_registry

    if text.startswith(PRESET):
        return text.removeprefix(PRESET)
    if text not in NAMES:
        return None
    try:
        mixer_registry.get(text)
    except MixerError:
        return text
    return None
