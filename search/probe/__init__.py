"""Contextual-mapping distinctness: what a network can tell about the context of a token.

Self-attention's part in the universality proof of Yun et al. (ICLR 2020, Definition 3.1) is a
contextual mapping: every token in every context gets a value of its own. The probe measures how
much of that a network does, on pairs of contexts that differ in a known way (``strata``), against
a measured noise floor (``noise``), as shares and as margins (``readings``). See ``docs/probe.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from search.messages import ProbeReading
from search.probe.clusters import Floats
from search.probe.contextual import contextual_readings
from search.probe.errors import ProbeError
from search.probe.network import FrozenNetwork, Layers, Rows
from search.probe.readings import Compared, Measured, far, gaps_of, measure, profile, read
from search.probe.strata import STRATA, draw
from search.probe.text import dtype_name, table

if TYPE_CHECKING:
    from mixers import EncoderSpec

__all__ = [
    "BASES",
    "DTYPES",
    "STRATA_OF",
    "Examined",
    "ProbeError",
    "examine",
    "initialised",
    "probe",
    "probe_spec",
    "random_contexts",
]

Size = Literal["small", "full"]
When = Literal["init", "final"]

BASES = {"small": 24, "full": 48}
"""Contexts used; of more, the first ones."""
VARIANTS = {"small": 4, "full": 8}
STRATA_OF = {"small": ("one_edit", "half_edits", "transposition"), "full": STRATA}
DTYPES = (torch.float64, torch.float32)
"""What the layers can tell, and what is left of it in the precision of a training."""
CHUNK_BYTES = 2**28
KEPT_BYTES = 2**29


@dataclass(frozen=True)
class Examined:
    """A reading with what it was read from.

    Attributes:
        reading: the readings; those of the first dtype have plain names, those of the others start
            with the dtype's name (``float32.one_edit.p_sep``): what they lose is lost to precision.
        gaps: dtype -> stratum -> gaps at the last block, one per compared item.
    """

    reading: ProbeReading
    gaps: dict[str, dict[str, Floats]]


def examine(
    encoder: nn.Module,
    contexts: Tensor,
    vocabulary: Tensor,
    *,
    seed: int,
    size: Size = "full",
    dtypes: tuple[torch.dtype, ...] = DTYPES,
    when: When = "final",
    layers: Layers | None = None,
) -> Examined:
    """Probes an encoder in several precisions and keeps the gaps, for a picture of them.

    Args and errors are those of ``probe``; ``dtypes`` has the primary reading's first.
    """
    readings: dict[str, float | None] = {}
    texts, gaps = [], {}
    for dtype in dtypes:
        one, gaps[dtype_name(dtype)] = _examine(
            encoder, contexts, vocabulary, seed, size, dtype, when, None, layers
        )
        prefix = "" if dtype == dtypes[0] else f"{dtype_name(dtype)}."
        readings |= {f"{prefix}{name}": value for name, value in one.readings.items()}
        texts.append(one.text)
    return Examined(ProbeReading(when=when, readings=readings, text="\n\n".join(texts)), gaps)


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
    return _examine(encoder, contexts, vocabulary, seed, size, dtype, when, mask, layers)[0]


def _examine(
    encoder: nn.Module,
    contexts: Tensor,
    vocabulary: Tensor,
    seed: int,
    size: Size,
    dtype: torch.dtype,
    when: When,
    mask: Tensor | None,
    layers: Layers | None,
) -> tuple[ProbeReading, dict[str, Floats]]:
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
    sigma = measured.spread[network.last_point].sigma
    gaps = {
        stratum: gaps_of(measured.compared[network.last_point, stratum], sigma)
        for stratum in STRATA_OF[size]
    }
    text = table(readings, STRATA_OF[size], heading=f"{size}, {dtype_name(dtype)}")
    return ProbeReading(when=when, readings=readings, text=text), gaps


def probe_spec(
    spec: EncoderSpec,
    *,
    seed: int = 0,
    size: Size = "full",
    dtypes: tuple[torch.dtype, ...] = DTYPES,
    contexts: Tensor | None = None,
    vocabulary: Tensor | None = None,
) -> ProbeReading:
    """Probes an architecture as initialised from ``seed``; names of readings as in ``Examined``.

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
    if vocabulary is None:
        vocabulary = torch.arange(spec.vocab_size)
    if contexts is None:
        contexts = random_contexts(vocabulary, n=BASES[size], n_tokens=spec.max_seq_len, seed=seed)
    encoder = initialised(spec, seed)
    return examine(
        encoder, contexts, vocabulary, seed=seed, size=size, dtypes=dtypes, when="init"
    ).reading


def initialised(spec: EncoderSpec, seed: int) -> nn.Module:
    """An architecture with the weights that a seed gives; global random states stay."""
    from mixers import Encoder

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Encoder(spec)


def random_contexts(vocabulary: Tensor, *, n: int, n_tokens: int, seed: int) -> Tensor:
    """Uniform random ids of a vocabulary, (n, n_tokens)."""
    generator = torch.Generator().manual_seed(seed)
    return vocabulary[torch.randint(len(vocabulary), (n, n_tokens), generator=generator)]


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
