import json

import pytest
import torch
from command import call

SMALL = ("--d-model", "16", "--seq-len", "70", "--rounds", "1", "--device", "cpu")


def test__bench__json__counts_the_flops_of_the_formulas_at_every_length(capsys):
    done = call(capsys, "mixers", "bench", "average", *SMALL, "--batch", "2", "--json")
    assert done.code == 0
    swaps = json.loads(done.out)
    assert [(s["seq_len"], s["kind"]) for s in swaps] == [
        (64, "forward"), (64, "training"), (70, "forward"), (70, "training"),
    ]  # fmt: skip
    for swap in swaps:
        n, d = swap["seq_len"], 16
        feed_forward = 16 * n * d**2
        attention = 8 * n * d**2 + 4 * n**2 * d
        wanted = (attention + feed_forward) / (2 * n * d**2 + feed_forward)
        assert swap["flops_ratio"] == pytest.approx(wanted)
        assert swap["batch"] == 2
        assert swap["least"] <= swap["ratio"] <= swap["most"]
        assert swap["attention_seconds"] == pytest.approx(swap["ratio"] * swap["seconds"])


def test__bench__text__one_line_a_mixer(capsys):
    done = call(capsys, "mixers", "bench", "sepconv(kernel_size=5)", "identity", *SMALL)
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["sepconv(kernel_size=5)", "identity"]
    # Beside a feed-forward layer of 16 N D^2, attention is 8 N D^2 + 4 N^2 D: 1 + 1/2 + 70/64.
    assert "  2.59  " in lines[2]


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a CUDA device")
def test__bench__cuda_where_there_is_none__is_one_line_and_code_2(capsys):
    done = call(capsys, "mixers", "bench", "average", "--device", "cuda")
    assert done.code == 2
    assert "no CUDA device here" in done.error_line


def test__bench__unknown_mixer__is_one_line_and_code_2(capsys):
    done = call(capsys, "mixers", "bench", "avrage", *SMALL[:-2])
    assert done.code == 2
    assert "average" in done.error_line


def test__bench__several_layers__is_one_line_and_code_2(capsys):
    done = call(capsys, "mixers", "bench", "attention, sepconv", *SMALL[:-2])
    assert done.code == 2
    assert "'attention, sepconv' is 2 layers; one block is timed, so name one" in done.error_line
