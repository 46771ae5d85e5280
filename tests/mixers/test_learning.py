"""Every global mixer learns what needs the whole sequence, in seconds; the control does not."""

import pytest
import torch

import mixers
from mixers.spec import EncoderSpec

SEQ_LEN, VOCAB, WANTED = 12, 8, 7


def accuracy_after_training(kind: str, steps: int = 120) -> float:
    """Share of tokens that say rightly whether the wanted token is anywhere in the sequence."""
    torch.manual_seed(0)
    spec = EncoderSpec.of(f"{kind}*2", d_ff=32, vocab_size=VOCAB, d_model=32, max_seq_len=SEQ_LEN)
    model = torch.nn.Sequential(mixers.Encoder(spec), torch.nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

    def batch(size: int) -> tuple[torch.Tensor, torch.Tensor]:
        ids = torch.randint(VOCAB - 1, (size, SEQ_LEN))
        present = torch.rand(size) < 0.5
        places = torch.randint(SEQ_LEN, (size,))
        ids[present, places[present]] = WANTED
        return ids, present[:, None].expand(-1, SEQ_LEN).float()

    for _ in range(steps):
        ids, target = batch(64)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(ids)[..., 0], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ids, target = batch(512)
    with torch.no_grad():
        return ((model(ids)[..., 0] > 0) == (target > 0)).float().mean().item()


@pytest.mark.parametrize("kind", ["attention", "average", "bproj", "hardmax_shift", "sepconv"])
def test__global_mixer__learns_whether_a_token_is_present(kind):
    # Chance is 0.5; the control below shows what a token can say of itself alone.
    assert accuracy_after_training(kind) > 0.95


def test__identity__knows_no_more_than_each_token_says_of_itself():
    # Only the wanted token itself gives it away: 0.5 + 0.5 / 12 of the answers.
    assert accuracy_after_training("identity") < 0.6
