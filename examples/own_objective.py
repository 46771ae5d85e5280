"""Search with your own training code: a function of the architecture takes its place."""

import torch

import mixers
import search


def objective(architecture, seed, report):
    """How alike are neighbours in an untrained encoder? A toy: your function would train it."""
    torch.manual_seed(seed)
    encoder = mixers.Encoder(architecture)
    hidden = encoder(torch.randint(architecture.vocab_size, (8, architecture.max_seq_len)))
    return {"loss": torch.cosine_similarity(hidden[:, 1:], hidden[:, :-1], dim=-1).mean().item()}


choices = ["attention(rotary=true)", "sepconv", "average"]
outcome = search.run(objective=objective, n_layers=2, choices=choices, budget="12")
print(f"{outcome.study}: {outcome.n_trials} trials; {outcome.message}")
print(*(row["notation"] for row in search.open().leaderboard(outcome.study, 3)), sep="\n")
