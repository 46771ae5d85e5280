"""The tables of the page on mixers, and the layouts it shows."""

from pathlib import Path

import pytest

import mixers
from mixers.errors import MixerError, SpecError
from mixers.layouts import modernbert, sequential
from mixers.reference import built_in, main, rewritten, rounded
from mixers.spec import EncoderSpec

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "mixers.md"
GUIDE = DOCS / "writing-a-mixer.md"
SIZES = {"d_ff": 0, "vocab_size": 9, "d_model": 64, "max_seq_len": 64}


@pytest.mark.parametrize("path", [PAGE, GUIDE], ids=lambda path: path.name)
def test__page__tables__are_what_the_code_says(path):
    # If not: python -m mixers.reference docs/mixers.md
    page = path.read_text(encoding="utf-8")
    assert rewritten(page) == page


def test__page__every_built_in_kind__has_a_section():
    page = PAGE.read_text(encoding="utf-8")
    assert {kind for kind in built_in() if f"\n## {kind}\n" not in page} == set()


def test__page__table_of_nothing__is_an_error_in_one_line(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- table: atention -->\n<!-- end -->\n")
    assert main(str(page)) == 2
    assert "did you mean 'attention'?" in capsys.readouterr().err
    with pytest.raises(SpecError):
        rewritten(page.read_text())


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (999, "999"), (590_592, "591 k"), (22_548_578_304, "22.5 G")]
)
def test__rounded__number__has_three_digits_and_a_unit(number, text):
    assert rounded(number) == text


def test__modernbert__every_third_layer__sees_all():
    layers = mixers.parse_architecture(modernbert(7, width=5))
    assert [layer.kind == "attention" for layer in layers] == [True, False, False] * 2 + [True]
    assert {layer.width for layer in layers if layer.kind != "attention"} == {5}
    assert all(layer.rotary for layer in layers)
    assert EncoderSpec.of(modernbert(4), **SIZES).code == "APPA"


def test__sequential__layers__take_turns():
    layers = mixers.parse_architecture(sequential("fixed", 5, width=4))
    assert [layer.combination for layer in layers] == [
        "first", "second", "first", "second", "first",
    ]  # fmt: skip
    assert {(layer.pattern, layer.width) for layer in layers} == {("fixed", 4)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sequential("star", 4), "pattern 'star' has one part only"),
        (lambda: sequential("fixed", 0), "n_layers must be at least 1, not 0"),
        (lambda: modernbert(4, every=0), "every must be at least 1, not 0"),
    ],
)
def test__layouts__nonsense__is_refused_by_name(call, message):
    with pytest.raises(MixerError, match=message):
        call()
