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


@pytest.mark.parametrize("name", ["modernbert", "preset:modernbert"])
def test__route__preset__is_a_whole_encoder_of_its_own_sizes(capsys, name):
    found = json.loads(call(capsys, "mixers", "route", name, "--tokens", "20", "--json").out)
    assert found["code"] == "APPAPPAPPAPPAPPAPPAPPA"
    assert found["full_after"] == 1
    longest = json.loads(call(capsys, "mixers", "route", "preset:bproj", "--json").out)
    assert (longest["code"], longest["n_tokens"]) == ("B" * 12, 384)


def test__route__name_of_a_mixer_and_of_a_preset__is_the_mixer(capsys):
    assert json.loads(call(capsys, "mixers", "route", "bproj", "--json").out)["code"] == "B"


def test__route__sizes_beside_a_preset_or_a_file__are_refused(capsys, tmp_path):
    path = tmp_path / "spec.json"
    spec = EncoderSpec.of("average", d_ff=0, vocab_size=9, d_model=16, max_seq_len=6)
    path.write_text(spec.model_dump_json())
    for named in ("modernbert", str(path)):
        refused = call(capsys, "mixers", "route", named, "--seq-len", "9")
        assert refused.code == 2
        assert f"{named} has its own sizes" in refused.error_line
    unknown = call(capsys, "mixers", "route", "preset:modenbert")
    assert "did you mean 'modernbert'?" in unknown.error_line


def test__route__few_pairs_left__are_not_rounded_to_all(capsys):
    done = call(capsys, "mixers", "route", "sparse_attention(width=21)*9", "--tokens", "64")
    lines = done.out.splitlines()
    # After two layers only those 43 to 63 apart are left: 21 + 20 + ... + 1, both ways; after
    # three none, and the six layers above are not told.
    assert "  after layer 2       3,634   89%" in lines
    assert lines[-1] == "  after layer 3       4,096  100%"
    nearly = call(capsys, "mixers", "route", "sparse_attention(width=21)*2", "--tokens", "45")
    # Tokens 43 and 44 apart: three pairs, both ways.
    assert "  after layer 2       2,019  >99%" in nearly.out.splitlines()


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
