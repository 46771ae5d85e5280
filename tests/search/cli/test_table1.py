"""`search mixers table1` against counts of BERT's form by hand, and what a wrong one does."""

import json

import pytest
from command import call

from search.cli import mixers_table1

D, D_FF, LAYERS, VOCAB = 768, 3072, 12, 30_522
NORM, PROJECTION = 2 * D, D * D + D
SHARED = {
    "token embeddings": VOCAB * D,
    "position embeddings": 512 * D,
    "segment embeddings": 2 * D,
    "norm of embeddings": NORM,
    "feed-forward": LAYERS * (D * D_FF + D_FF + D_FF * D + D),
    "norms of blocks": LAYERS * 2 * NORM,
    "masked-token head": PROJECTION + NORM + VOCAB,
    "next-sentence head": 2 * D + 2,
}
MIXERS = {
    "average": PROJECTION,
    "bproj": PROJECTION + 384**2,
    "sepconv": 3 * PROJECTION + 16 * 128,  # its gate is twice as wide
    "bert-base": 4 * PROJECTION,
}
MILLIONS = {"average": "88.255", "bproj": "90.024", "sepconv": "102.453", "bert-base": "109.516"}


def test__table1__json__every_part_is_as_counted_by_hand(capsys):
    done = call(capsys, "mixers", "table1", "--json")
    assert done.code == 0
    found = json.loads(done.out)
    assert list(found) == list(MIXERS)
    for name, mixer in MIXERS.items():
        assert found[name]["parts"] == SHARED | {"mixers": LAYERS * mixer}
        assert found[name]["total"] == sum(SHARED.values()) + LAYERS * mixer
        assert f"{found[name]['total'] / 1e6:.3f}" == MILLIONS[name]
        assert found[name]["equal"]


def test__table1__text__ends_with_the_papers_figures(capsys):
    done = call(capsys, "mixers", "table1")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["parameters", "average", "bproj", "sepconv", "bert-base"]
    assert lines[-3] == ["in", "millions", *MILLIONS.values()]
    assert lines[-2] == ["rounded", "88.3", "90", "102.5", "110"]
    assert lines[-1] == ["paper", "88.3", "90", "102.5", "110"]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test__table1__other_figure__ends_with_code_1_and_names_the_encoder(
    capsys, monkeypatch, options
):
    monkeypatch.setitem(mixers_table1.PAPER, "sepconv", "102.4")
    done = call(capsys, "mixers", "table1", *options)
    assert done.code == 1
    assert done.error_line.endswith("sepconv: 102,453,308 parameters are not the paper's 102.4 M")
    if options:
        found = json.loads(done.out)
        assert [name for name in found if not found[name]["equal"]] == ["sepconv"]


@pytest.mark.parametrize(
    ("figure", "parameters", "expected"),
    [
        ("88.3", 88_250_000, "88.3"),
        ("88.3", 88_249_999, "88.2"),
        ("90", 90_500_000, "91"),
        ("110", 109_499_999, "109"),
    ],
)
def test__rounded_as__figure__has_its_digits_and_halves_go_up(figure, parameters, expected):
    assert mixers_table1.rounded_as(figure, parameters) == expected
