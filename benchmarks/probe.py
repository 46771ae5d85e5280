"""How long the probe takes: its algorithm on many outputs, and both of its sizes on a network.

    python -m benchmarks.probe [--contexts 10000] [--out benchmarks/results]

Outputs of 10,000 contexts of 64 tokens, 64 features, are clustered in each token's group and over
all; the cases differ in how many outputs are equal or near. On part of them the clusters are
compared with all pairs at once, which must give the same and takes quadratic time. Then a one-layer
network over as many contexts with its noise floor, and the sizes of the probe on a default encoder.
Seconds are processor time (wall time in brackets) of one thread, which other programs disturb less.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from mixers import EncoderSpec
from search.probe import initialised, probe, random_contexts
from search.probe.clusters import Floats, Ints, distinctness
from search.probe.contextual import contextual_readings, keys_and_classes
from search.probe.network import FrozenNetwork, Rows
from search.probe.noise import noise_floor

N_TOKENS, D_MODEL, VOCABULARY = 64, 64, 512
COMPARED = 6_000
DEFAULT = "sepconv*2, attention(rotary=true)*2"


@contextmanager
def timed(into: dict[str, str], name: str) -> Iterator[None]:
    """Notes the seconds of a block."""
    cpu, wall = time.process_time(), time.perf_counter()
    yield
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    into[name] = f"{cpu:.2f} ({wall:.2f})"


def cases(tokens: torch.Tensor) -> dict[str, tuple[Floats, float]]:
    """Outputs and thresholds: all different, different but noisy, and told by the token alone."""
    random = np.random.default_rng(0)
    free = random.standard_normal((tokens.numel(), D_MODEL))
    embedding = random.standard_normal((VOCABULARY, D_MODEL))
    alone = embedding[tokens.numpy().ravel()]
    return {
        "all different, double precision": (free, 1e-12),
        "all different, single precision": (free, 1e-5),
        "equal where the token is": (alone, 1e-12),
        "equal up to rounding": (alone + 1e-13 * free, 1e-11),
    }


def by_all_pairs(outputs: Floats, keys: Ints, tau: float) -> float:
    """d_ctx from all pairs of each group: connected components of "not separated"."""
    spare = told = 0
    for key in np.unique(keys):
        members = outputs[keys == key]
        if len(members) >= 2:
            n_clusters = connected_components(cdist(members, members) <= tau)[0]
            told, spare = told + n_clusters - 1, spare + len(members) - 1
    return told / spare


def algorithm(n_contexts: int) -> list[str]:
    """Times the reading of finished outputs."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(VOCABULARY, (n_contexts, N_TOKENS), generator=generator)
    mask = torch.ones_like(tokens, dtype=torch.bool)
    lines = ["| outputs | keys and classes | clusters | d_ctx |", "|---|---|---|---|"]
    for name, (outputs, tau) in cases(tokens).items():
        seconds: dict[str, str] = {}
        with timed(seconds, "keys"):
            keys, classes = keys_and_classes(tokens, mask, positional=True)
        with timed(seconds, "clusters"):
            found = distinctness(outputs, keys, classes, np.full(len(outputs), tau))
        lines.append(f"| {name} | {seconds['keys']} | {seconds['clusters']} | {found.d_ctx:.3f} |")
    return lines


def against_all_pairs() -> list[str]:
    """The same numbers by comparing all pairs, in one group."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(VOCABULARY, (COMPARED // N_TOKENS, N_TOKENS), generator=generator)
    lines = ["| outputs | sweep | all pairs | d_ctx |", "|---|---|---|---|"]
    for name, (outputs, tau) in cases(tokens).items():
        seconds: dict[str, str] = {}
        keys, classes = np.zeros(len(outputs), dtype=np.int64), np.arange(len(outputs))
        with timed(seconds, "sweep"):
            found = distinctness(outputs, keys, classes, np.full(len(outputs), tau)).d_ctx
        with timed(seconds, "pairs"):
            wanted = by_all_pairs(outputs, keys, tau)
        if found is None or abs(found - wanted) > 1e-12:
            raise SystemExit(f"{name}: the sweep reads {found}, all pairs {wanted}")
        lines.append(f"| {name} | {seconds['sweep']} | {seconds['pairs']} | {wanted:.3f} |")
    return lines


def whole_network(n_contexts: int, mixer: str) -> str:
    """One layer over all contexts: outputs, noise floor and distinctness."""
    spec = EncoderSpec.of(
        mixer, d_ff=0, d_model=D_MODEL, vocab_size=VOCABULARY, max_seq_len=N_TOKENS
    )
    network = FrozenNetwork(initialised(spec, 0), dtype=torch.float64, layers="last")
    contexts = random_contexts(torch.arange(VOCABULARY), n=n_contexts, n_tokens=N_TOKENS, seed=0)
    rows = Rows(contexts, torch.ones_like(contexts, dtype=torch.bool))
    seconds: dict[str, str] = {}
    with timed(seconds, "outputs"):
        outputs = network(rows)
    with timed(seconds, "floor"):
        tau = noise_floor(network, rows, outputs, permute_tokens=False, seed=0)
    last = network.last_point
    with timed(seconds, "read"):
        contextual_readings([(rows, outputs[last], tau[last])], positional=True)
    return f"| {mixer} | {seconds['outputs']} | {seconds['floor']} | {seconds['read']} |"


def sizes() -> list[str]:
    """The probe itself on the default encoder."""
    spec = EncoderSpec.of(
        DEFAULT, d_ff=256, d_model=D_MODEL, vocab_size=VOCABULARY, max_seq_len=N_TOKENS
    )
    encoder, ids = initialised(spec, 0), torch.arange(VOCABULARY)
    contexts = random_contexts(ids, n=48, n_tokens=N_TOKENS, seed=0)
    seconds: dict[str, str] = {}
    calls: dict[str, Callable[[], object]] = {
        "small, last block": lambda: probe(encoder, contexts, ids, seed=0),
        "full, last block": lambda: probe(
            encoder, contexts, ids, seed=0, size="full", layers="last"
        ),
        "full, all layers": lambda: probe(encoder, contexts, ids, seed=0, size="full"),
    }
    calls["small, last block"]()
    for name, call in calls.items():
        with timed(seconds, name):
            call()
    return [f"| {name} | {value} |" for name, value in seconds.items()]


def main() -> None:
    """Times everything and prints the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--contexts", type=int, default=10_000)
    parser.add_argument("--out", type=Path, help="folder for probe.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    parts = [
        "# How long the probe takes",
        "",
        f"`python -m benchmarks.probe`; {platform.machine()}, {os.cpu_count()} cores, load "
        f"{load:.1f}, torch {torch.__version__}. Processor seconds, wall seconds in brackets, one "
        "thread.",
        "",
        f"{options.contexts:,} contexts x {N_TOKENS} tokens x {D_MODEL} features "
        f"({options.contexts * N_TOKENS:,} outputs), positional:",
        "",
        *algorithm(options.contexts),
        "",
        f"{COMPARED // N_TOKENS * N_TOKENS:,} outputs in one group, beside a comparison of all "
        "pairs (SciPy); both must read the same:",
        "",
        *against_all_pairs(),
        "",
        f"One layer without feed-forward over {options.contexts:,} contexts in float64:",
        "",
        "| mixer | outputs | noise floor (3 recomputations) | distinctness |",
        "|---|---|---|---|",
        whole_network(options.contexts, "average"),
        whole_network(options.contexts, "attention"),
        "",
        f"The probe of `{DEFAULT}`, d_model {D_MODEL}, d_ff 256, in float64:",
        "",
        "| size | seconds |",
        "|---|---|",
        *sizes(),
    ]
    text = "\n".join(parts)
    print(text)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "probe.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
