"""Stores filled with made-up trials, through the store's own interface.

    store = Store.open(...)
    study_id = fill(store, "demo", architectures=["attention*2", "sepconv, attention"])

`fill` gives every architecture a result whose loss is `loss_of(spec, seed)`; `claim_and_commit`,
`result` and `failure` are its parts, for tests that need one step alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mixers.notation import parse_architecture
from mixers.spec import EncoderSpec
from search.messages import (
    Costs,
    Message,
    MixerProof,
    ProbeReading,
    Progress,
    Report,
    Timing,
    TrialFailure,
    TrialResult,
)
from search.rows import Claim, Phase
from search.spec.study import StudySpec
from search.store.repo import Store

PLUGINS = dict.fromkeys(
    ("attention", "sepconv", "bproj", "average", "hardmax_shift"), ("mixsearch", "0.1.0")
)
TRAINING_KEY = "k0"


def study_spec(**changes: Any) -> StudySpec:
    """A study of two layers on the default task, with changes to the top level."""
    document: dict[str, Any] = {
        "encoder": {"d_model": 32, "n_layers": 2, "d_ff": 64},
        "space": {"choices": ["attention", "sepconv"]},
    }
    return StudySpec.model_validate(document | changes)


def encoder_spec(notation: str, study: StudySpec | None = None) -> EncoderSpec:
    """The encoder of a study with these mixers."""
    return (study or study_spec()).encoder_spec(parse_architecture(notation))


def default_loss(spec: EncoderSpec, seed: int) -> float:
    """A loss that falls with every sepconv layer, and moves a little with the seed."""
    cheap = sum(block.mixer.kind == "sepconv" for block in spec.blocks)
    return 3.0 - 0.25 * cheap + 0.01 * ((seed * 7919 + cheap) % 5 - 2)


def timing(median: float) -> Timing:
    """A measured time with a spread of a tenth."""
    return Timing(
        median=median,
        low=0.9 * median,
        high=1.1 * median,
        n=20,
        batch_size=1,
        seq_len=64,
        device="cpu",
        dtype="float32",
    )


def result(
    loss: float = 2.5,
    *,
    splits: Sequence[str] = ("selection",),
    outcome: str = "completed",
    reason: str = "trained to the end",
    steps: int = 600,
    params: int = 50_000,
    flops: int = 8_000_000,
    evaluations: Mapping[str, Mapping[str, float]] | None = None,
) -> TrialResult:
    """A result with a loss; the test split reads 0.01 above the selection split."""
    if evaluations is None:
        evaluations = {
            split: {"loss": loss + 0.01 * (split == "test"), "accuracy": 1 / loss}
            for split in splits
        }
    return TrialResult.model_validate(
        {
            "outcome": outcome,
            "reason": reason,
            "steps": steps,
            "sequences": 32 * steps,
            "seconds": 40.0,
            "evaluations": evaluations,
            "costs": Costs(
                params=params,
                flops=flops,
                step_s=timing(0.05),
                latency_s=timing(0.004),
                peak_memory_bytes=300_000_000,
            ),
            "probes": (
                ProbeReading(when="init", readings={"probe": 1e-3, "p_sep": None}),
                ProbeReading(when="final", readings={"probe": 1e-2, "p_sep": 1.0}),
            ),
            "proof": MixerProof(sha256="0" * 64, text="proof", layers=()),
            "environment": {"torch": "2.13.0", "device": "cpu", "threads": "1"},
        }
    )


def failure(message: str = "ValueError: no", cause: str = "error") -> TrialFailure:
    """A failure with a cause."""
    return TrialFailure.model_validate(
        {"cause": cause, "message": message, "traceback": f"Traceback ...\n{message}"}
    )


def reports(loss: float, *, steps: int = 600, validations: int = 3) -> list[Message]:
    """A falling curve that ends at a loss."""
    messages: list[Message] = []
    for index in range(1, validations + 1):
        step = steps * index // validations
        messages.append(Progress(step=step, steps=steps))
        value = loss + 0.2 * (validations - index)
        messages.append(
            Report(step=step, split="selection", metrics={"loss": value, "accuracy": 1 / value})
        )
    return messages


def reserve(store: Store, study_id: int, worker: int, phase: Phase = "search") -> Claim:
    """Reserve the next trial, whatever the budget."""
    claim = store.reserve(study_id, worker, lambda counts: phase)
    assert claim is not None
    return claim


def claim_and_commit(
    store: Store,
    study_id: int,
    worker: int,
    notation: str,
    *,
    phase: Phase = "search",
    role: str | None = None,
    seed: int = 0,
    seed_index: int = 0,
    training_key: str = TRAINING_KEY,
    study: StudySpec | None = None,
) -> Claim:
    """Reserve a trial and give it an architecture."""
    claim = reserve(store, study_id, worker, phase)
    outcome = store.commit(
        claim,
        encoder_spec(notation, study),
        seed=seed,
        seed_index=seed_index,
        training_key=training_key,
        role=role,
        params={"layer_0": notation},
        flops=3 * 8_000_000 * 32 * 600,
    )
    assert outcome == "running", outcome
    return claim


def fill(
    store: Store,
    name: str = "demo",
    *,
    architectures: Sequence[str] = (
        "attention*2",
        "sepconv*2",
        "sepconv, attention",
        "attention, sepconv",
    ),
    seeds: int = 1,
    study: StudySpec | None = None,
    loss_of: Callable[[EncoderSpec, int], float] = default_loss,
    training_key: str = TRAINING_KEY,
) -> int:
    """Fill a study with completed trials; returns its id.

    The first two architectures are baselines, the others of phase search. Repeats (`seeds` above
    one) are of phase confirm and are read on the test split too.
    """
    spec = study or study_spec()
    study_id = store.ensure_study(name, spec, PLUGINS).id
    worker = store.register_worker(devices=("cpu",))
    for seed in range(seeds):
        for index, notation in enumerate(architectures):
            phase: Phase = "confirm" if seed else "baseline" if index < 2 else "search"
            encoder = encoder_spec(notation, spec)
            claim = claim_and_commit(
                store,
                study_id,
                worker,
                notation,
                phase=phase,
                role=f"all-{encoder.blocks[0].mixer.kind}" if phase == "baseline" else None,
                seed=seed,
                seed_index=seed,
                training_key=training_key,
                study=spec,
            )
            loss = loss_of(encoder, seed)
            store.report(claim, reports(loss))
            kinds = [block.mixer.kind for block in encoder.blocks]
            n_attention = kinds.count("attention")
            store.finish(
                claim,
                result(
                    loss,
                    splits=("selection", "test") if phase == "confirm" else ("selection",),
                    params=40_000 + 5_000 * n_attention,
                    flops=6_000_000 + 1_000_000 * n_attention,
                ),
            )
    store.close_worker(worker)
    return study_id
