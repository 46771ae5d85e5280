"""C14: gradients add up over targets, so parts of a batch weigh by how many they have."""

from pathlib import Path

import pytest
import torch
from texts import write_folder

from mixers.spec import EncoderSpec
from search.data.spec import DataSpec
from search.tasks.mlm import MaskedLanguageModelling, MlmConfig

N_TARGETS = (2, 20)


def batch_of(rows: torch.Tensor, counts: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """Rows of tokens in which the first so many of each are to be predicted."""
    width = rows.shape[1]
    places = [row * width + place for row, n in enumerate(counts) for place in range(n)]
    index = torch.tensor(places)
    return {"ids": rows, "target_index": index, "target_ids": rows.reshape(-1)[index]}


@pytest.mark.parametrize("together", [(0, 1), (0, 1, 0)])
def test__C14__unequal_numbers_of_targets__parts_weighted_by_them_give_the_whole_gradient(
    tmp_path: Path, together: tuple[int, ...]
) -> None:
    folder = write_folder(tmp_path / "texts", n_words=400)
    config = MlmConfig(data=DataSpec(source=str(folder)), vocab_size=100, seq_len=32)
    task = MaskedLanguageModelling(config, seed=0, cache_dir=tmp_path / "cache")
    task.prepare()
    torch.manual_seed(0)
    spec = EncoderSpec.of(
        "attention, sepconv", d_ff=16, d_model=16, vocab_size=100, max_seq_len=32, dropout=0.0
    )
    model = task.build_model(spec).double()
    examples = torch.randint(5, 100, (2, 32))
    counts = tuple(N_TARGETS[which] for which in together)

    def gradient(rows: torch.Tensor, n: tuple[int, ...]) -> torch.Tensor:
        model.zero_grad()
        task.loss(model, batch_of(rows, n)).backward()
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    whole = gradient(examples[list(together)], counts)
    parts = [
        gradient(examples[which : which + 1], (N_TARGETS[which],)) * N_TARGETS[which]
        for which in together
    ]
    summed = torch.stack(parts).sum(dim=0) / sum(counts)
    torch.testing.assert_close(summed, whole, rtol=0, atol=1e-6)
    equal_weights = torch.stack(parts).sum(dim=0) * 0
    for which, part in zip(together, parts, strict=True):
        equal_weights += part / N_TARGETS[which] / len(together)
    assert (equal_weights - whole).abs().max() > 1e-4
