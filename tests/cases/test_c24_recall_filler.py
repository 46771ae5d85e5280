"""C24: a recall task whose filler contradicts the facts."""

import random
from pathlib import Path

import numpy as np
import torch

from search.tasks import SPLITS, build_task
from search.tasks.mqar import MqarConfig

SEED = 5
EXAMPLES = 1000


def drawn() -> dict[str, dict[str, np.ndarray]]:
    """All examples of a fresh task; "train" has the first batch of a training."""
    config = MqarConfig(
        vocab_size=512,
        seq_len=256,
        n_pairs=16,
        evaluation_examples=EXAMPLES,
        test_examples=EXAMPLES,
    )
    task = build_task(config, seed=SEED, cache_dir=Path("unused"))
    task.prepare()
    batches = {split: next(iter(task.evaluation_batches(split, EXAMPLES))) for split in SPLITS}
    batches |= {"train": task.train_batch(0, seed=SEED, batch_size=EXAMPLES)}
    return {
        split: {name: tensor.numpy() for name, tensor in batch.items()}
        for split, batch in batches.items()
    }


def test__C24__drawn_twice_and_looked_up_from_both_ends__same_bytes_and_all_right() -> None:
    first = drawn()
    for scramble in (random.seed, np.random.seed, torch.manual_seed):
        scramble(123)
    second = drawn()
    seen: list[set[bytes]] = []
    for split, batch in first.items():
        for name, values in batch.items():
            assert values.tobytes() == second[split][name].tobytes()
        ids = batch["ids"]
        assert ids.shape == (EXAMPLES, 256)
        rows, places = np.divmod(batch["target_index"], ids.shape[1])
        assert np.array_equal(np.bincount(rows), np.full(EXAMPLES, 16))
        for row, place, value in zip(rows, places, batch["target_ids"], strict=True):
            earlier = np.flatnonzero(ids[row, :place] == ids[row, place])
            # The first and the latest earlier occurrence of the key are followed by its value.
            assert ids[row, earlier[0] + 1] == ids[row, earlier[-1] + 1] == value
            assert np.count_nonzero(ids[row] == value) == 1
        seen.append({row.tobytes() for row in ids})
    assert len(set().union(*seen)) == sum(map(len, seen)) == 3 * EXAMPLES
