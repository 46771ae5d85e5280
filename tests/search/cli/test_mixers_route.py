import json

import pytest
from command import call

from mixers import EncoderSpec, route
from search.figures.route import route_figure

WINDOWS = ("mixers", "route", "sparse_attention(width=4)*3", "--seq-len", "32")


def test__route__text__conditions_counts_and_who_never_meets(capsys):
    done = call(capsys, *WINDOWS)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "PPP  sparse_attention(width=4)*3, 32 tokens"
    assert (
        "all reach all   holds for the stack repeated, after 8 layers; this one ends at 3" in lines
    )
    # 32 tokens, 12 to each side: 32 + 2 (31 + 30 + ... + 20) pairs.
    assert "  after layer 3         644   63%" in lines
    assert lines[-1] == "not within this stack: 380 pairs, all that are 13 or more apart"


def test__route__json__has_every_pair(capsys):
    found = json.loads(call(capsys, *WINDOWS, "--json").out)
    assert found["conditions"] == {"self_loop": True, "chain": True, "all_reach_all": True}
    assert found["seen_after"] == [32, 268, 472, 644]
    assert found["layers_until"][0][31] == 8
    assert len(found["unseen_in_stack"]) == 380
    assert found["never_seen"] == []


def test__route__some_pairs_never_meet__says_which(capsys):
    done = call(capsys, "mixers", "route", "sepconv(kernel_size=1)*2", "--tokens", "5")
    assert "chain           fails: neither of tokens 0 and 1 can reach the other" in done.out
    assert "all reach all   fails: some pairs never meet" in done.out
    assert (
        "never, however often the stack is repeated: 20 pairs, all that are 1 or more" in done.out
    )


def test__route__causal__counts_what_lies_before(capsys):
    done = call(capsys, "mixers", "route", "average", "--causal", "--tokens", "4")
    assert "pairs (output, token) that have met, of 10:" in done.out
    refused = call(capsys, "mixers", "route", "average, fourier", "--causal")
    assert refused.code == 2
    assert "blocks.1.mixer.fourier" in refused.error_line


def test__route__file__is_read_like_any_spec(capsys, tmp_path):
    path = tmp_path / "spec.json"
    spec = EncoderSpec.of("bproj", d_ff=0, vocab_size=9, d_model=16, max_seq_len=6)
    path.write_text(spec.model_dump_json())
    assert "holds: after 1 layer" in call(capsys, "mixers", "route", str(path)).out
    refused = call(capsys, "mixers", "route", str(path), "--tokens", "7")
    assert refused.code == 2
    assert "bound to max_seq_len 6, got 7 tokens" in refused.error_line


def test__route__out__draws_a_page_that_needs_no_network(capsys, tmp_path):
    page = tmp_path / "route.html"
    done = call(capsys, *WINDOWS, "--out", str(page))
    assert f"wrote {page}" in done.err
    assert "http" not in page.read_text().split("<body>")[1].split("Plotly.newPlot")[0]
    refused = call(capsys, *WINDOWS, "--out", str(tmp_path / "route.txt"))
    assert refused.code == 2
    assert "no picture ends so" in refused.error_line


@pytest.mark.parametrize("architecture", ["identity", "attention", "sparse_attention*2"])
def test__route_figure__cells__are_the_layers(architecture):
    spec = EncoderSpec.of(architecture, d_ff=0, vocab_size=9, d_model=16, max_seq_len=12)
    found = route(spec)
    document = json.loads(route_figure(found).to_json())
    cells = document["data"][0]["z"]
    assert [tuple(row) for row in cells] == list(found.layers_until)
    json.dumps(document, allow_nan=False)
