"""What `search mixers show` says of a preset."""

from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixers import EncoderSpec


def preset_document(name: str) -> dict[str, Any]:
    """Return a preset as JSON values.

    Raises:
        MixerError: There is no preset of this name.
    """
    from mixers import count_flops, count_parameters
    from mixers.presets import PRESETS, preset

    spec = preset(name)
    return {
        "preset": name,
        "source": PRESETS[name].source,
        "code": spec.code,
        "notation": spec.notation,
        "parameters": count_parameters(spec),
        "flops": count_flops(spec),
        "spec": spec.model_dump(mode="json"),
    }


def preset_text(name: str) -> str:
    """Return a preset as lines; raises as `preset_document`."""
    from mixers.presets import preset
    from search.wording import scaled

    found = preset_document(name)
    spec = preset(name)
    rows = [("layers", words) for words in layer_words(spec)]
    rows += [
        (field, str(getattr(spec, field)).lower())
        for field, facts in type(spec).model_fields.items()
        if field != "blocks"
        and (facts.is_required() or getattr(spec, field) != facts.get_default())
    ]
    rows += [
        ("d_ff", ", ".join(dict.fromkeys(str(block.d_ff) for block in spec.blocks))),
        ("parameters", f"{scaled(found['parameters'])}, the encoder's alone"),
        ("FLOPs", f"{scaled(found['flops'])} forward, {spec.max_seq_len} tokens"),
        ("source", found["source"]),
    ]
    lines = [f"{name}  (preset of {spec.n_layers} layers, code {spec.code})", ""]
    return "\n".join([*lines, *(f"{row:<18}{words}" for row, words in rows)])


def layer_words(spec: "EncoderSpec") -> list[str]:
    """Return each mixer with the numbers of its layers, from 0: "0, 3: attention"."""
    from mixers import format_architecture

    sizes = {"d_model": spec.d_model, "max_seq_len": spec.max_seq_len}
    layers: dict[str, list[int]] = {}
    for layer, block in enumerate(spec.blocks):
        layers.setdefault(format_architecture([block.mixer], **sizes), []).append(layer)
    return [f"{ranges(places)}: {notation}" for notation, places in layers.items()]


def ranges(numbers: list[int]) -> str:
    """Return rising numbers in words: "0, 3 to 5"."""
    runs = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    found = []
    for _, run in runs:
        places = [number for _, number in run]
        found.append(str(places[0]) if len(places) == 1 else f"{places[0]} to {places[-1]}")
    return ", ".join(found)
