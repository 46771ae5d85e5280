"""What `search probe` is asked about: an architecture, a saved model, or a stored trial.

Each gives an encoder with the contexts and the vocabulary that fit it. A stored trial keeps its
readings, not its weights: it is trained again from its seed, which repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from search.errors import InputError
from search.probe import initialised, random_contexts

if TYPE_CHECKING:
    from mixers import EncoderSpec
    from search.messages import Message
    from search.rows import TrialRow
    from search.spec.study import StudySpec
    from search.training.prepared import Prepared

MOST_RANDOM_TOKENS = 64
"""Tokens of a saved model's contexts unless asked otherwise: the cost grows with them."""
RESERVED = 1000
"""First ids, which BERT's vocabularies keep for special tokens; small vocabularies have none."""


@dataclass(frozen=True)
class Subject:
    """An encoder and what it is probed with.

    Attributes:
        title: what it is, in one line.
        spec: its architecture.
        encoder: the encoder, with its weights.
        contexts: ids (contexts, N).
        vocabulary: ids that edits draw from.
        seed: of edits and noise floor.
        when: whether it was trained.
        source: where the contexts come from, in words.
    """

    title: str
    spec: EncoderSpec
    encoder: nn.Module
    contexts: Tensor
    vocabulary: Tensor
    seed: int
    when: Literal["init", "final"]
    source: str


def architecture(
    spec: EncoderSpec, n_contexts: int, *, seed: int, n_tokens: int | None = None
) -> Subject:
    """An architecture as initialised from a seed, on random ids.

    Args:
        spec: the architecture.
        n_contexts: how many contexts.
        seed: of weights, contexts and edits.
        n_tokens: tokens of a context; the longest input by default.

    Raises:
        InputError: the architecture takes fewer tokens.
    """
    vocabulary = torch.arange(spec.vocab_size)
    length = n_tokens or spec.max_seq_len
    contexts, source = random_ids(spec, vocabulary, n_contexts, seed, length)
    title = f"{spec.code}  {spec.notation}, as initialised from seed {seed}"
    encoder = initialised(spec, seed)
    return Subject(title, spec, encoder, contexts, vocabulary, seed, "init", source)


def saved_model(
    folder: Path,
    n_contexts: int,
    *,
    seed: int,
    n_tokens: int | None = None,
    text: str | None = None,
    cache_dir: Path | None = None,
) -> Subject:
    """A model of a folder: `mixers.save`'s, or a BERT model that `save_pretrained` wrote.

    Args:
        folder: with `spec.json`, or with `config.json`; nothing is downloaded.
        n_contexts: how many contexts.
        seed: of contexts and edits.
        n_tokens: tokens of a context; the longest input, at most 64, by default.
        text: source of text (see `DataSpec`) that is read with the folder's tokenizer; None =
            random ids.
        cache_dir: where the tokenised text is kept.

    Raises:
        InputError: the folder holds neither, or its files, or the text, cannot be used.
        MixerError: the saved encoder is damaged.
    """
    from mixers.folder import SPEC, load
    from search.bert_folder import read_bert

    if (folder / SPEC).is_file():
        encoder = load(folder)
    elif (folder / "config.json").is_file():
        encoder = read_bert(folder)
    else:
        raise InputError(
            f"{folder}: neither {SPEC} (a saved encoder) nor config.json (a BERT model of Hugging "
            "Face); name a folder that holds one"
        )
    spec = encoder.spec
    length = n_tokens or min(spec.max_seq_len, MOST_RANDOM_TOKENS)
    if text is None:
        ids = torch.arange(spec.vocab_size)
        vocabulary = ids[RESERVED:] if spec.vocab_size > 2 * RESERVED else ids
        contexts, source = random_ids(spec, vocabulary, n_contexts, seed, length)
    else:
        prepared = read_text(folder, spec, text, seed, length, cache_dir)
        contexts = prepared.task.probe_contexts(n_contexts)
        vocabulary = prepared.vocabulary
        source = f"{n_contexts} windows of {length} tokens of {text}"
    title = f"{spec.code}  {spec.notation}, weights of {folder}"
    return Subject(title, spec, encoder, contexts, vocabulary, seed, "final", source)


def random_ids(
    spec: EncoderSpec, vocabulary: Tensor, n_contexts: int, seed: int, n_tokens: int
) -> tuple[Tensor, str]:
    """Random contexts and their description.

    Raises:
        InputError: the architecture takes fewer tokens, or has fewer than two ids.
    """
    if n_tokens > spec.max_seq_len:
        raise InputError(f"--seq-len {n_tokens}: the longest input is {spec.max_seq_len} tokens")
    if len(vocabulary) < 2:
        raise InputError(
            f"edits need at least 2 token ids to draw from; this architecture has {len(vocabulary)}"
        )
    contexts = random_contexts(vocabulary, n=n_contexts, n_tokens=n_tokens, seed=seed)
    return contexts, f"{n_contexts} random contexts of {n_tokens} tokens, seed {seed}"


def read_text(
    folder: Path,
    spec: EncoderSpec,
    text: str,
    seed: int,
    n_tokens: int,
    cache_dir: Path | None,
) -> Prepared:
    """A text in a model's own tokens.

    Raises:
        InputError: text or tokenizer cannot be read, or do not fit the model.
    """
    from search.settings import settings
    from search.spec.study_file import study_from
    from search.training.prepared import prepared_task

    if n_tokens > spec.max_seq_len:
        raise InputError(f"--seq-len {n_tokens}: the longest input is {spec.max_seq_len} tokens")
    task = {
        "kind": "mlm",
        "data": {"source": text},
        "tokenizer": str(folder),
        "vocab_size": spec.vocab_size,
        "seq_len": n_tokens,
    }
    study = study_from({"task": task}, source="--text")
    return prepared_task(study.task, seed, str(cache_dir or settings().cache_dir))


def stored_trial(
    study: StudySpec,
    row: TrialRow,
    document: Mapping[str, Any],
    n_contexts: int,
    *,
    when: Literal["init", "final"],
    cache_dir: Path,
    report: Callable[[Message], None] = lambda message: None,
) -> Subject:
    """A stored trial, on the contexts of its study.

    After training: it is trained again, on this machine's processor and with as many threads as it
    had; where it was first trained the same way, to the same weights.

    Args:
        study: the trial's study.
        row: the trial.
        document: the same as the store gives it in full (`Store.trial`).
        n_contexts: how many contexts.
        when: as initialised, or after training.
        cache_dir: where the study's prepared data lies.
        report: told of the training's progress.

    Raises:
        InputError: the trial has no architecture, or no result, or this training diverged; or the
            split is too short for so many contexts.
    """
    from mixers import EncoderSpec
    from mixers.explain import load
    from search.messages import TrialConfig
    from search.training.environment import COMPILED
    from search.training.random_states import process_settings
    from search.training.trial import Trial

    if not document["spec"]:
        raise InputError(f"trial {row.number} has no architecture yet")
    if when == "final" and row.state != "completed":
        raise InputError(
            f"trial {row.number} is {row.state}: only a completed one has trained weights; "
            "--at init probes it as initialised"
        )
    config = TrialConfig(
        study=study.with_recipe(row.recipe),
        spec=load(EncoderSpec, document["spec"]),
        seed=row.seed,
        threads=int(document["environment"].get("threads", 1)),
        compile=COMPILED in document["environment"],
        cache_dir=str(cache_dir),
    )
    trial = Trial(config, report)
    age = "as initialised"
    with process_settings(config):
        trial.prepare()
        if when == "final":
            training = trial.train(lambda: None)
            if training.diverged:
                raise InputError(f"trial {row.number} diverged when trained again")
            age = f"trained again: {compared(row, training.selection, study.objective)}"
    encoder = trial.model.encoder
    assert isinstance(encoder, nn.Module)
    return Subject(
        title=f"{row.code}  {row.notation}, trial {row.number} of {row.study}, {age}",
        spec=config.spec,
        encoder=encoder,
        contexts=trial.task.probe_contexts(n_contexts),
        vocabulary=trial.task.probe_vocabulary(),
        seed=study.seed,
        when=when,
        source=f"{n_contexts} windows of the study's selection split",
    )


def compared(row: TrialRow, found: Mapping[str, float], objective: str) -> str:
    """The objective that a second training came to, beside the stored one."""
    stored, again = row.selection.get(objective), found.get(objective)
    if stored == again:
        return f"{objective} {again:.6g} as stored"
    return f"{objective} {again:.6g}, stored {stored:.6g}"
