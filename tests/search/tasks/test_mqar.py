import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from mixers.spec import EncoderSpec
from search.tasks import SPLITS, Split, build_task, task_registry
from search.tasks.base import PROBE_CONTEXTS, Batch
from search.tasks.evaluation import collect_records, compute_metrics, document_sums, evaluate
from search.tasks.mqar import AssociativeRecall, MqarConfig
from search.tasks.mqar_examples import RecallSizes, draw_gaps

Ids = NDArray[np.int64]

SMALL = {"vocab_size": 20, "seq_len": 18, "n_pairs": 4}


def make_task(seed: int = 3, **fields: object) -> AssociativeRecall:
    document = {**SMALL, "evaluation_examples": 40, "test_examples": 70, **fields}
    task = build_task(MqarConfig.model_validate(document), seed=seed, cache_dir=Path("unused"))
    assert isinstance(task, AssociativeRecall)
    task.prepare()
    return task


def batches(task: AssociativeRecall) -> Iterator[tuple[Split, Batch]]:
    for step in range(3):
        yield "train", task.train_batch(step, seed=7, batch_size=16)
    for split in SPLITS:
        for batch in task.evaluation_batches(split, 16):
            yield split, batch


def look_up(row: list[int], place: int) -> int:
    """The answer at a query, read from the input alone: what followed its key before."""
    return row[row.index(row[place]) + 1]


class Oracle(torch.nn.Module):
    """Answers by looking up, sure of itself."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.vocab_size = vocab_size

    def forward(
        self, ids: torch.Tensor, places: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        rows, n = ids.tolist(), ids.shape[1]
        answers = [look_up(rows[i // n], i % n) for i in places.tolist()]
        return 50.0 * torch.nn.functional.one_hot(torch.tensor(answers), self.vocab_size).float()


def test__task_registry__entry_points__mqar_is_built_in() -> None:
    assert task_registry().get("mqar").plugin is AssociativeRecall


@pytest.mark.parametrize(
    "sizes",
    [
        SMALL,
        {},
        {"vocab_size": 6, "seq_len": 3, "n_pairs": 1},
        {"vocab_size": 11, "seq_len": 30, "n_pairs": 4, "gap_power": 1.0},
        {"vocab_size": 16, "seq_len": 24, "n_pairs": 3, "spread": 9},
    ],
)
def test__every_split__oracle_that_looks_up__answers_all(sizes: dict[str, float]) -> None:
    task = make_task(**sizes)
    oracle = Oracle(task.config.vocab_size)
    for split in SPLITS:
        metrics = evaluate(task, oracle, split, 16, "cpu", ["loss", "accuracy"])
        assert metrics["accuracy"] == 1.0
        assert metrics["loss"] < 1e-6


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test__example__any_sizes__pairs_then_queries_in_filler_without_keys_and_values(
    data: st.DataObject,
) -> None:
    n_pairs = data.draw(st.integers(1, 6))
    spread = data.draw(st.integers(0, 8))
    least = 3 * n_pairs + spread
    sizes = {
        "n_pairs": n_pairs,
        "spread": spread,
        "seq_len": data.draw(st.integers(least, least + 12)),
        "vocab_size": data.draw(st.integers(max(6, 2 * n_pairs + 2) + (spread > 0), 40)),
    }
    task = make_task(seed=data.draw(st.integers(0, 99)), evaluation_examples=5, **sizes)
    n_keys = task.config.vocab_size // 2
    for _, batch in batches(task):
        seq_len = batch["ids"].shape[1]
        targets = dict(
            zip(batch["target_index"].tolist(), batch["target_ids"].tolist(), strict=True)
        )
        assert batch["target_index"].tolist() == sorted(targets)
        assert len(targets) == n_pairs * len(batch["ids"])
        for number, row in enumerate(batch["ids"].tolist()):
            asked = {p % seq_len: v for p, v in targets.items() if p // seq_len == number}
            keys, values = [row[place] for place in asked], list(asked.values())
            assert len(set(keys)) == n_pairs == len(set(values))
            assert max(keys) < n_keys <= min(values)
            assert max(row) < task.config.vocab_size
            assert row.count(task.config.vocab_size - 1) == spread or not spread
            assert asked == {place: look_up(row, place) for place in asked}
            # A value stands in its pair alone, so no token near a query gives its answer away;
            # each key stands in its pair and in its query alone, so the filler is free of both.
            assert all(row.count(key) == 2 for key in keys)
            assert all(row.count(value) == 1 for value in values)
            starts = [row.index(key) for key in keys]
            assert max(starts) + 1 < 2 * n_pairs + spread <= min(asked)


def test__spread__many_draws__every_arrangement_of_the_pairs_alike() -> None:
    """2 pairs among 2 fillers: choose 2 of 4 units, 6 arrangements; no place is a pair's own."""
    task = make_task(n_pairs=2, spread=2, seq_len=8, vocab_size=7, evaluation_examples=6000)
    found: dict[tuple[int, ...], int] = {}
    for batch in task.evaluation_batches("selection", 6000):
        places = batch["target_index"].reshape(-1, 2).tolist()
        for row, asked in zip(batch["ids"].tolist(), places, strict=True):
            starts = tuple(sorted(row.index(row[place % 8]) for place in asked))
            found[starts] = found.get(starts, 0) + 1
    assert sorted(found) == [(0, 2), (0, 3), (0, 4), (1, 3), (1, 4), (2, 4)]
    # 1,000 each, standard deviation about 29.
    assert all(abs(count - 1000) < 5 * 29 for count in found.values())


def test__splits__many_draws_of_a_small_space__never_share_a_sequence_or_a_set_of_values() -> None:
    # 3 keys, 3 values, 1 pair, 1 filler: so few sequences that each split draws all of its own.
    sizes = {"vocab_size": 6, "seq_len": 4, "n_pairs": 1}
    sequences: dict[Split, set[tuple[int, ...]]] = {split: set() for split in SPLITS}
    for seed in range(3):
        task = make_task(seed, **sizes, evaluation_examples=500, test_examples=500)
        sequences["train"] |= rows_of(task.train_batch(seed, seed=seed, batch_size=500)["ids"])
        for split in SPLITS:
            for batch in task.evaluation_batches(split, 500):
                sequences[split] |= rows_of(batch["ids"])
    # One value each, 3 keys, the query in either place, the filler one of 4 other ids.
    assert [len(found) for found in sequences.values()] == [3 * 2 * 4] * 3
    for one, other in itertools.combinations(SPLITS, 2):
        assert not sequences[one] & sequences[other]


def rows_of(ids: torch.Tensor) -> set[tuple[int, ...]]:
    return {tuple(row) for row in ids.tolist()}


def test__splits__20_000_draws__sets_of_values_are_disjoint() -> None:
    sets: dict[Split, set[frozenset[int]]] = {split: set() for split in SPLITS}
    task = make_task(evaluation_examples=5000, test_examples=5000)
    drawn = [("train", task.train_batch(0, seed=11, batch_size=5000))]
    drawn += [(s, batch) for s in SPLITS for batch in task.evaluation_batches(s, 5000)]
    for split, batch in drawn:
        sets[split] |= {frozenset(row[1:8:2]) for row in batch["ids"].tolist()}
    # 10 values of which 4: all 210 sets occur, each in one split.
    assert sum(len(found) for found in sets.values()) == 210
    assert len(set().union(*sets.values())) == 210


def test__splits__key_of_a_value__as_often_in_each() -> None:
    """A key and a value are paired alike in every split, so none is easier by its pairs."""
    task = make_task(evaluation_examples=6000, test_examples=6000)
    for split in SPLITS:
        counts = np.zeros((10, 10))
        for batch in task.evaluation_batches(split, 6000):
            ids = batch["ids"].numpy()
            np.add.at(counts, (ids[:, 0:8:2], ids[:, 1:8:2] - 10), 1)
        # 24,000 pairs over 100 cells: 240 each, standard deviation about 15.
        assert np.all(np.abs(counts - 240) < 5 * 15.5)


def test__train_batch__seed_and_step__decide_alone() -> None:
    one, other = make_task(seed=0), make_task(seed=1)
    first = one.train_batch(5, seed=2, batch_size=8)["ids"]
    one.train_batch(6, seed=2, batch_size=8)
    assert torch.equal(first, one.train_batch(5, seed=2, batch_size=8)["ids"])
    # Training data is common to studies; what they are evaluated on is their own.
    assert torch.equal(first, other.train_batch(5, seed=2, batch_size=8)["ids"])
    for step, seed in ((6, 2), (5, 3)):
        assert not torch.equal(first, one.train_batch(step, seed=seed, batch_size=8)["ids"])


def test__fingerprint__seed_and_fields__change_it() -> None:
    same = make_task().fingerprint
    assert same == make_task().fingerprint
    others = [
        make_task(seed=4),
        make_task(seq_len=19),
        make_task(vocab_size=21),
        make_task(n_pairs=3),
        make_task(gap_power=0.5),
        make_task(spread=1),
        make_task(test_examples=71),
    ]
    assert len({same, *(task.fingerprint for task in others)}) == 8


@pytest.mark.parametrize("gap_power", [0.01, 0.5, 1.0])
def test__gaps__many_draws__first_follows_the_power_law(gap_power: float) -> None:
    sizes = RecallSizes(vocab_size=8, seq_len=14, n_pairs=2, gap_power=gap_power)
    n, room = 40_000, 10
    gaps = draw_gaps(n, room, sizes, np.random.default_rng(0))
    assert np.all(gaps[:, 0] != gaps[:, 1])
    law = np.array([g ** (gap_power - 1) for g in range(1, room + 1)])
    law /= law.sum()
    found = np.bincount(gaps[:, 0], minlength=room) / n
    assert np.all(np.abs(found - law) < 5 * np.sqrt(law * (1 - law) / n))
    # The second is drawn from what is left: P(j) = sum over i != j of p_i p_j / (1 - p_i).
    second = [
        sum(law[i] * law[j] / (1 - law[i]) for i in range(room) if i != j) for j in range(room)
    ]
    found = np.bincount(gaps[:, 1], minlength=room) / n
    assert np.all(np.abs(found - second) < 5 * np.sqrt(0.25 / n))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"seq_len": 11}, "4 pairs and a query of each need seq_len 12 or more; it is 11"),
        ({"spread": 7}, "4 pairs and 7 blanks among them and a query of each need seq_len 19"),
        ({"vocab_size": 9}, "4 pairs need vocab_size 10 or more"),
        ({"vocab_size": 6, "n_pairs": 1, "spread": 1}, "1 pairs need vocab_size 7 or more"),
        ({"n_pairs": 0}, "greater than or equal to 1"),
        ({"vocab_size": 5, "n_pairs": 1}, "greater than or equal to 6"),
        ({"gap_power": 0.0}, "greater than 0"),
        ({"n_keys": 3}, "Extra inputs"),
        ({"n_pairs": "4"}, "valid integer"),
    ],
)
def test__config__impossible_sizes__one_clear_line(fields: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        MqarConfig.model_validate({**SMALL, **fields})
    [error] = caught.value.errors()
    assert words in error["msg"]
    assert "\n" not in error["msg"]


def test__records__model__are_by_example_and_do_not_depend_on_the_batch_size() -> None:
    task = make_task()
    torch.manual_seed(0)
    sizes = task.config.sizes
    spec = EncoderSpec.of(
        "attention, bproj",
        d_model=16,
        d_ff=16,
        vocab_size=sizes.vocab_size,
        max_seq_len=sizes.max_seq_len,
    )
    model = task.build_model(spec)
    small = collect_records(task, model, "test", 7, "cpu")
    large = collect_records(task, model, "test", 70, "cpu")
    assert small["document"].tolist() == [i // 4 for i in range(70 * 4)]
    np.testing.assert_allclose(small["nll"], large["nll"], rtol=1e-5)
    np.testing.assert_array_equal(small["document"], large["document"])
    sums = document_sums(small, "accuracy")
    assert sums is not None
    assert (len(sums.n), sum(sums.n)) == (64, 280)
    assert sum(sums.sums) / 280 == pytest.approx(compute_metrics(small, ["accuracy"])["accuracy"])


def test__loss__fresh_batch__is_the_mean_over_the_queries_alone() -> None:
    task = make_task()

    class Indifferent(torch.nn.Module):
        """Takes each of the ten values for as probable, whatever it reads."""

        def forward(
            self, ids: torch.Tensor, places: torch.Tensor, mask: torch.Tensor | None = None
        ) -> torch.Tensor:
            assert len(places) == 4 * len(ids)
            scores = torch.full((len(places), 20), -torch.inf)
            scores[:, 10:] = 0.0
            return scores

    batch = task.train_batch(0, seed=0, batch_size=8)
    assert task.loss(Indifferent(), batch).item() == pytest.approx(np.log(10))


def test__probe__contexts_and_vocabulary__are_selection_examples_of_all_ids() -> None:
    task = make_task(evaluation_examples=1)
    contexts = task.probe_contexts(PROBE_CONTEXTS)
    assert contexts.shape == (PROBE_CONTEXTS, 18)
    assert contexts.dtype == torch.int64
    for row in contexts.tolist():
        assert sum(row[1:8:2]) % 3 == SPLITS.index("selection")
    assert task.probe_vocabulary().tolist() == list(range(20))
    assert torch.equal(contexts, make_task(evaluation_examples=1).probe_contexts(PROBE_CONTEXTS))


def test__describe__facts__count_examples_and_targets() -> None:
    facts = make_task().describe()
    assert facts["splits"]["test"]["evaluation_examples"] == 70
    assert facts["splits"]["selection"]["evaluation_targets"] == 160
