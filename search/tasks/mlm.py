"""Masked language modelling on text: predict hidden tokens from both sides.

The paper's pre-training task (BERT's, without next-sentence prediction). Windows are plain runs of
tokens without [CLS] and [SEP], since nothing here reads a sequence as a whole.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from search.data.prepare import prepare_corpus
from search.data.seeding import generator
from search.data.spec import DataSpec
from search.data.splits import SPLITS, Split
from search.data.streams import Longs, TokenisedCorpus
from search.data.windows import TrainingWindows, Windows, even_sample, read_windows, tile
from search.errors import InputError
from search.tasks.base import PROBE_CONTEXTS, Batch, TaskConfig, TaskSizes
from search.tasks.masking import Masked, mask_tokens
from search.tasks.prediction import TokenPrediction

if TYPE_CHECKING:
    from torch import LongTensor
    from transformers import PreTrainedTokenizerFast


class MlmConfig(TaskConfig):
    """Masked language modelling."""

    reads_both_sides: ClassVar[bool] = True

    kind: Literal["mlm"] = "mlm"
    data: DataSpec = DataSpec()
    """The text."""
    tokenizer: Annotated[str, Field(min_length=1)] | None = None
    """Folder, tokenizer.json or Hub id of a tokenizer; none = train a WordPiece on the text."""
    vocab_size: Annotated[int, Field(ge=64, le=2**31 - 1)] = 512
    """Number of token ids; with a given tokenizer at least its size."""
    seq_len: Annotated[int, Field(ge=2)] = 64
    """Tokens in a window."""
    mask_probability: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.15
    """Share of a window's tokens to predict; at least one token is."""
    head: Literal["tied", "bert"] = "tied"
    """What scores the tokens from a hidden vector: "tied" multiplies it by the token embeddings,
    "bert" puts a dense layer, gelu and LayerNorm before that."""
    evaluation_windows: Annotated[int, Field(ge=1)] = 512
    """Most windows to read of the selection split at every validation: an even sample over its
    documents, drawn once per study."""
    test_windows: Annotated[int, Field(ge=1)] = 2048
    """Most windows to read of the test split. It is read once per confirmed architecture, and its
    sampling error does not shrink with more seeds, so it is larger."""

    @property
    def sizes(self) -> TaskSizes:
        """The encoder sizes that follow from this config alone."""
        return TaskSizes(vocab_size=self.vocab_size, max_seq_len=self.seq_len)


class MaskedLanguageModelling(TokenPrediction[MlmConfig]):
    """Masked language modelling; see `MlmConfig`, the module's text and `TokenPrediction`."""

    config_type: ClassVar[type[TaskConfig]] = MlmConfig

    def prepare(self) -> None:
        """Read the text, train or load the tokenizer, tokenise; cached, idempotent.

        Raises:
            InputError: The data is missing, unreadable, too little or all the same, or the
                tokenizer does not fit.
        """
        if len(self.ordinary_ids) < 2:
            raise InputError(
                f"{self.corpus.facts['source']}: the training split holds fewer than two different "
                "tokens, so there is nothing to learn; give other text"
            )
        self.probe_windows(PROBE_CONTEXTS)

    @functools.cached_property
    def corpus(self) -> TokenisedCorpus:
        """The tokenised splits."""
        config = self.config
        return prepare_corpus(
            config.data,
            tokenizer=config.tokenizer,
            vocab_size=config.vocab_size,
            seq_len=config.seq_len,
            cache_dir=self.cache_dir,
        )

    @functools.cached_property
    def training_windows(self) -> TrainingWindows:
        """Which windows each step reads."""
        return TrainingWindows(self.corpus.streams["train"], self.config.seq_len)

    @functools.cached_property
    def ordinary_ids(self) -> Longs:
        """Ids that occur in the training split and are not special."""
        seen = np.flatnonzero(np.bincount(self.corpus.streams["train"].tokens))
        return np.setdiff1d(seen, self.corpus.facts["special_ids"]).astype(np.int64)

    @functools.cached_property
    def is_special(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Per id, whether it is a special token, which is never a target."""
        flags = np.zeros(self.config.vocab_size, dtype=np.bool_)
        flags[self.corpus.facts["special_ids"]] = True
        return flags

    @functools.cached_property
    def evaluation(self) -> dict[Split, tuple[Windows, Masked]]:
        """Each split's fixed windows and masks."""
        return {split: self.draw_evaluation(split) for split in SPLITS}

    def draw_evaluation(self, split: Split) -> tuple[Windows, Masked]:
        """Draw a split's windows and masks from the study seed."""
        rng = generator(f"mlm evaluation {split}", self.seed)
        windows = tile(self.corpus.streams[split], self.config.seq_len)
        config = self.config
        most = config.test_windows if split == "test" else config.evaluation_windows
        windows = even_sample(windows, most, rng)
        return windows, self.hide(split, windows, rng)[0]

    def hide(
        self, split: Split, windows: Windows, rng: np.random.Generator
    ) -> tuple[Masked, np.ndarray[Any, np.dtype[np.bool_]] | None]:
        """Return windows of a split with their targets hidden, and the padding mask."""
        facts = self.corpus.facts
        tokens = self.corpus.streams[split].tokens
        ids, mask = read_windows(tokens, windows, self.config.seq_len, facts["pad_id"])
        maskable = ~self.is_special[ids] if mask is None else mask & ~self.is_special[ids]
        masked = mask_tokens(
            ids,
            maskable,
            windows.lengths,
            probability=self.config.mask_probability,
            mask_id=facts["mask_id"],
            random_ids=self.ordinary_ids,
            rng=rng,
        )
        return masked, mask

    @functools.cached_property
    def fingerprint(self) -> str:
        """sha256 over the tokens of all splits, the tokenizer, the windows and the masks."""
        total = hashlib.sha256()
        facts, config = self.corpus.facts, self.config
        head = (facts["tokenizer_sha256"], config.seq_len, config.vocab_size)
        total.update(repr((*head, config.mask_probability)).encode())
        for split in SPLITS:
            stream = self.corpus.streams[split]
            windows, masked = self.evaluation[split]
            for array in (
                *(stream.tokens, stream.offsets),
                *(windows.starts, windows.lengths),
                *(masked.inputs, masked.places, masked.targets),
            ):
                total.update(str((array.dtype, array.shape)).encode())
                total.update(np.ascontiguousarray(array).data)
        return total.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Return JSON facts: source, split rule, and per split documents, tokens and windows."""
        facts = self.corpus.facts
        splits = {}
        for split in SPLITS:
            stream = self.corpus.streams[split]
            windows, masked = self.evaluation[split]
            splits[split] = {
                "documents": len(np.unique(stream.documents)),
                "tokens": len(stream.tokens),
                "unknown_tokens": int(np.sum(stream.tokens == facts["unk_id"])),
                "evaluation_windows": len(windows),
                "evaluation_targets": len(masked.targets),
                "evaluation_documents": len(np.unique(windows.documents)),
            }
        return {
            "task": self.config.kind,
            "source": facts["source"],
            "split_by": facts["rule"],
            "dropped_documents": facts["n_dropped"],
            "vocabulary": facts["vocabulary"],
            "windows_per_epoch": self.training_windows.per_epoch,
            "splits": splits,
        }

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The tokenizer, as transformers has it."""
        from transformers import PreTrainedTokenizerFast

        fast: PreTrainedTokenizerFast = PreTrainedTokenizerFast.from_pretrained(self.corpus.folder)
        return fast

    @property
    def head(self) -> Literal["tied", "bert"]:
        """What scores the tokens."""
        return self.config.head

    def train_batch(self, step: int, *, seed: int, batch_size: int) -> Batch:
        """Return the batch of one step: a pure function of the arguments.

        See `TrainingWindows` for the order of windows and `mask_tokens` for the masking, drawn
        anew at every step.
        """
        windows = self.training_windows.batch(step, seed=seed, batch_size=batch_size)
        rng = generator("mlm training masks", seed, step)
        masked, mask = self.hide("train", windows, rng)
        if mask is None and self.training_windows.padded:
            # All batches of a run have the same keys, so a compiled step is compiled once.
            mask = np.ones(masked.inputs.shape, dtype=np.bool_)
        return tensors(masked, mask)

    def evaluation_batches(self, split: Split, batch_size: int) -> Iterator[Batch]:
        """Yield a split's fixed windows in order; windows and masks depend on the study seed."""
        import torch

        windows, masked = self.evaluation[split]
        seq_len = self.config.seq_len
        padded = bool(np.any(windows.lengths < seq_len))
        for start in range(0, len(windows), batch_size):
            rows = slice(start, min(start + batch_size, len(windows)))
            ends = np.searchsorted(masked.places, [rows.start * seq_len, rows.stop * seq_len])
            places = masked.places[slice(*ends)] - rows.start * seq_len
            part = Masked(masked.inputs[rows], places, masked.targets[slice(*ends)])
            mask = np.arange(seq_len) < windows.lengths[rows, None] if padded else None
            documents = windows.documents[rows][places // seq_len]
            yield {**tensors(part, mask), "target_document": torch.from_numpy(documents)}

    def probe_contexts(self, n: int) -> LongTensor:
        """Return n windows of the selection split without masking, (n, seq_len) int64.

        The first n full-length windows at even distances over the split; where the documents are
        too short for that, runs of the split's tokens across document ends.

        Raises:
            InputError: The split has fewer than n * seq_len tokens.
        """
        import torch

        tokens = self.corpus.streams["selection"].tokens
        ids, _ = read_windows(tokens, self.probe_windows(n), self.config.seq_len, pad_id=0)
        return torch.from_numpy(ids)  # type: ignore[return-value]

    def probe_windows(self, n: int) -> Windows:
        """Return the n windows that `probe_contexts` reads.

        Raises:
            InputError: The split has fewer than n * seq_len tokens.
        """
        seq_len = self.config.seq_len
        stream = self.corpus.streams["selection"]
        windows = tile(stream, seq_len)
        full = windows.take(np.flatnonzero(windows.lengths == seq_len))
        if len(full) < n:
            starts = np.arange(len(stream.tokens) // seq_len) * seq_len
            full = Windows(starts, np.full_like(starts, seq_len), np.zeros_like(starts))
        if len(full) < n:
            raise InputError(
                f"{self.corpus.facts['source']}: the selection split has {len(stream.tokens)} "
                f"tokens, {n} probe contexts of {seq_len} need {n * seq_len}; give more text"
            )
        return full.take(np.arange(n) * len(full) // n)

    def probe_vocabulary(self) -> LongTensor:
        """Return the ids that occur in the training split and are not special, ascending."""
        import torch

        return torch.from_numpy(self.ordinary_ids)  # type: ignore[return-value]


def tensors(masked: Masked, mask: np.ndarray[Any, np.dtype[np.bool_]] | None) -> Batch:
    """Return a masked batch as tensors."""
    import torch

    batch = {
        "ids": torch.from_numpy(masked.inputs),
        "target_index": torch.from_numpy(masked.places),
        "target_ids": torch.from_numpy(masked.targets),
    }
    return batch if mask is None else {**batch, "mask": torch.from_numpy(mask)}
