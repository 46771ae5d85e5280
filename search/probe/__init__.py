"""Contextual-mapping distinctness: what a network can tell about the context of a token.

Self-attention's part in the universality proof of Yun et al. (ICLR 2020, Definition 3.1) is a
contextual mapping: every token in every context gets a value of its own. The probe measures how
much of that a network does, on pairs of contexts that differ in a known way (``strata``), against
a measured noise floor (``noise``), as shares and as margins (``readings``). See ``docs/probe.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from search.messages import ProbeReading
from search.probe.contextual import contextual_readings
from search.probe.errors import ProbeError
from search.probe.network import FrozenNetwork, Layers, Rows
from search.probe.readings import Compared, Measured, far, measure, profile, read
from search.probe.strata import STRATA, draw

if TYPE_CHECKING:
    from mixers import EncoderSpec

__all__ = ["BASES", "ProbeError", "probe", "probe_spec"]

Size = Literal["small", "full"]

BASES = {"small": 24, "full": 48}
"""Contexts used; of more, the first ones."""
VARIANTS = {"small": 4, "full": 8}
STRATA_OF = {"small": ("one_edit", "half_edits", "transposition"), "full": STRATA}
CHUNK_BYTES = 2**28
KEPT_BYTES = 2**29


def probe(
    encoder: nn.Module,
    contexts: Tensor,
    vocabulary: Tensor,
    *,
    seed: int,
    size: Size = "small",
    dtype: torch.dtype = torch.float64,
    when: Literal["init", "final"] = "init",
    mask: Tensor | None = None,
    layers: Layers | None = None,
) -> ProbeReading:
    """Measures an encoder; the encoder itself, its mode and its dtype stay untouched.

    Small: 24 bases x 4 variants of ``one_edit``, ``half_edits`` and ``transposition`` at the last
    block, noise floor on the bases alone. Full: 48 bases x 8 variants of every stratum, each item
    with its own noise floor, profiles by distance and distinctness over all items.

    Readings at the last block are named ``<stratum>.<reading>`` (see ``readings.read``); those of
    other probe points have the point's name before them (``layer_0.mixer.one_edit.p_sep``).
    ``probe`` is ``one_edit.gap_median``. Equal arguments give equal readings.

    Args:
        encoder: an ``Encoder``, or a module with ``spec``, ``blocks[i].mixer`` and the same call.
        contexts: token ids (contexts, N), the bases; the first 24 (48) are used.
        vocabulary: ids that edits draw from, uniformly.
        seed: the study's; of the edits and of the noise floor.
        size: "small" within a search, "full" on request.
        dtype: float64 asks what the layers can tell, the training dtype what they do tell.
        when: recorded with the readings.
        mask: (contexts, N) bool, True = real token; None = all real.
        layers: "last" block or "all" probe points; None = last if small, all if full.

    Raises:
        ProbeError: contexts of the wrong shape, no two ids to draw from, or non-finite outputs.
    """
    if contexts.dim() != 2 or contexts.numel() == 0:
        raise ProbeError(f"probe: contexts must be (contexts, N) ids, got {tuple(contexts.shape)}")
    network = FrozenNetwork(encoder, dtype=dtype, layers=layers or ("last", "all")[size == "full"])
    tokens = contexts[: BASES[size]].cpu()
    real = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask[: len(tokens)].cpu()
    bases = Rows(tokens, real)
    strata = [
        draw(
            stratum,
            tokens,
            real,
            vocabulary,
            n_variants=VARIANTS[size],
            seed=seed,
            d_model=network.d_model,
        )
        for stratum in STRATA_OF[size]
    ]
    context_bytes = 8 * network.d_model * tokens.shape[1] * (1 + VARIANTS[size])
    measured = measure(
        network,
        bases,
        strata,
        positional=network.positional,
        seed=seed,
        floor_of_variants=size == "full",
        keep_bases=KEPT_BYTES // (context_bytes * len(strata)) + 1 if size == "full" else 0,
        chunk=max(1, CHUNK_BYTES // (context_bytes * len(network.points))),
    )
    readings: dict[str, float | None] = {"positional": float(network.positional)}
    for (point, stratum), compared in measured.compared.items():
        prefix = "" if point == network.last_point else f"{point}."
        values = read(compared, measured.spread[point].sigma)
        if network.positional:
            del values["equality_error"]
        readings |= {f"{prefix}{stratum}.{name}": value for name, value in values.items()}
    readings["probe"] = readings["one_edit.gap_median"]
    if size == "full":
        readings |= _full_readings(network, measured)
        readings |= contextual_readings(measured.items, positional=network.positional)
    return ProbeReading(when=when, readings=readings, text=_text(readings, size, dtype))


def probe_spec(
    spec: EncoderSpec,
    *,
    seed: int = 0,
    size: Size = "full",
    dtypes: tuple[torch.dtype, ...] = (torch.float64, torch.float32),
    contexts: Tensor | None = None,
    vocabulary: Tensor | None = None,
) -> ProbeReading:
    """Probes an architecture as initialised from ``seed``.

    The readings of the first dtype have plain names; those of the others start with the dtype's
    name (``float32.one_edit.p_sep``): what they lose is lost to precision.

    Args:
        spec: the architecture.
        seed: of the weights, of the contexts and of the edits.
        size: as in ``probe``.
        dtypes: the first is the primary reading.
        contexts: ids (contexts, N); None = uniform random ids at full length.
        vocabulary: ids that edits may draw; None = all.

    Raises:
        ProbeError: as ``probe``.
    """
    from mixers import Encoder

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = Encoder(spec)
    if vocabulary is None:
        vocabulary = torch.arange(spec.vocab_size)
    if contexts is None:
        generator = torch.Generator().manual_seed(seed)
        shape = (BASES[size], spec.max_seq_len)
        contexts = vocabulary[torch.randint(len(vocabulary), shape, generator=generator)]
    readings: dict[str, float | None] = {}
    texts = []
    for dtype in dtypes:
        reading = probe(encoder, contexts, vocabulary, seed=seed, size=size, dtype=dtype)
        prefix = "" if dtype == dtypes[0] else f"{_name(dtype)}."
        readings |= {f"{prefix}{name}": value for name, value in reading.readings.items()}
        texts.append(reading.text)
    return ProbeReading(when="init", readings=readings, text="\n\n".join(texts))


def _full_readings(network: FrozenNetwork, measured: Measured) -> dict[str, float | None]:
    """Profiles by distance, and separation beyond what the local layers carry."""

    def at_last(stratum: str) -> Compared:
        return measured.compared[network.last_point, stratum]

    readings: dict[str, float | None] = {
        "far.reach": float(network.local_reach),
        "far.p_sep": far(at_last("one_edit"), network.local_reach),
    }
    for stratum in STRATA_OF["full"]:
        for distance, share in profile(at_last(stratum)).items():
            readings[f"{stratum}.p_sep.distance_{distance}"] = share
    return readings


def _text(readings: dict[str, float | None], size: Size, dtype: torch.dtype) -> str:
    """The last block's readings as a table for people."""
    mode = "positional" if readings["positional"] else "equivariant"
    columns = ("p_sep", "borderline", "d_ctx", "gap_min", "gap_p01", "gap_median")
    lines = [
        f"last block, {mode}, {size}, {_name(dtype)}",
        f"{'stratum':<16}" + "".join(f"{column:>12}" for column in columns),
    ]
    for stratum in STRATA_OF[size]:
        values = (readings[f"{stratum}.{column}"] for column in columns)
        cells = ("-" if value is None else f"{value:.3g}" for value in values)
        lines.append(f"{stratum:<16}" + "".join(f"{cell:>12}" for cell in cells))
    for name in ("contextual.d_ctx", "contextual.s_ctx", "contextual.d_all", "far.p_sep"):
        if readings.get(name) is not None:
            lines.append(f"{name:<16}{readings[name]:>12.3g}")
    return "\n".join(lines)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
