import json
from pathlib import Path

import pytest
from command import call

import mixers
from mixers.conformance import CHECKS
from search.cli.mixers_card import heat_map

BUILT_IN = {
    "attention",
    "average",
    "bproj",
    "dynamicconv",
    "fourier",
    "hardmax_shift",
    "identity",
    "lightconv",
    "sepconv",
    "sparse_attention",
}


def test__list__json__every_built_in_with_its_claims(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "mixers", "list", "--json")
    found = json.loads(done.out)
    assert set(found) >= BUILT_IN
    assert found["sepconv"]["symbol"] == "S"
    assert found["sepconv"]["traits"]["reach"] == 15
    assert found["attention"]["broken"] is None


def test__list__text__one_row_each(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "mixers", "list")
    assert done.code == 0
    first_words = {line.split()[0] for line in done.out.splitlines()[1:]}
    assert first_words >= BUILT_IN


@pytest.mark.parametrize("kind", sorted(BUILT_IN))
def test__show__each_built_in__claims_settings_and_source(
    capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    done = call(capsys, "mixers", "show", kind)
    assert done.code == 0
    assert done.out.startswith(kind)
    assert (
        {"yes", "no"}
        >= {
            line.split()[1]
            for line in done.out.splitlines()
            if line.startswith("surrogate_gradient ")
        }
        != set()
    )
    assert "source" in done.out
    assert "parameters" in done.out


def test__show__settings__type_default_and_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    fields = json.loads(call(capsys, "mixers", "show", "hardmax_shift", "--json").out)["fields"]
    by_name = {field["name"]: field for field in fields}
    assert by_name["rule"]["type"] == "shift | sign"
    assert by_name["rule"]["default"] == "shift"
    assert by_name["n_heads"]["type"] == "integer >= 1"
    assert all(field["description"] for field in fields)
    sparse = json.loads(call(capsys, "mixers", "show", "sparse_attention", "--json").out)["fields"]
    combination = next(field for field in sparse if field["name"] == "combination")
    assert combination["type"] == "union | multihead | first | second"


def test__show__mixer_without_weights__counts_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert "0 parameters, 0 FLOPs forward" in call(capsys, "mixers", "show", "identity").out


def test__show__notation__claims_and_cost_of_that_config(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = json.loads(call(capsys, "mixers", "show", "sepconv(kernel_size=5)", "--json").out)
    assert (shown["kind"], shown["traits"]["reach"]) == ("sepconv", 2)
    two = call(capsys, "mixers", "show", "sepconv, sepconv(kernel_size=5)")
    assert two.code == 2
    assert "has 2 layers; name one" in two.error_line
    assert "has 2 layers; name one" in call(capsys, "mixers", "show", "sepconv*2").error_line


def test__show__preset__layers_sizes_and_source(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "mixers", "show", "modernbert")
    lines = done.out.splitlines()
    assert lines[0] == "modernbert  (preset of 22 layers, code APPAPPAPPAPPAPPAPPAPPA)"
    assert lines[2].split(": ") == [
        "layers            0, 3, 6, 9, 12, 15, 18, 21", "attention(n_heads=12, rotary=true)",
    ]  # fmt: skip
    assert (
        "0 to 11: sepconv(kernel_size=128" in call(capsys, "mixers", "show", "preset:sepconv").out
    )
    document = json.loads(call(capsys, "mixers", "show", "preset:bert-base", "--json").out)
    assert mixers.EncoderSpec.model_validate(document["spec"]).notation == document["notation"]
    refused = call(capsys, "mixers", "show", "modernbert", "--measure")
    assert refused.code == 2
    assert "a whole encoder" in refused.error_line


def test__heat_map__window__is_drawn_in_marks_of_its_strength() -> None:
    strength = {0: 1.0, 1: 0.2, 2: 0.02, 3: 1e-5}
    influence = [[strength.get(abs(j - i), 0.0) for i in range(6)] for j in range(6)]
    assert heat_map(influence)[0] == "  ##++--.."
    assert heat_map(influence)[5] == "      ..--++##"
    # 40 tokens in cells of three; each holds its strongest.
    wide = [[strength.get(abs(j - i), 0.0) for i in range(40)] for j in range(40)]
    assert len(heat_map(wide)) == 14
    assert heat_map(wide)[0] == "  ##++"


def test__show__misspelt_kind__nearest_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "mixers", "show", "atention")
    assert done.code == 2
    assert "did you mean 'attention'?" in done.error_line


def test__check__two_kinds__every_claim_of_both_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = call(capsys, "mixers", "check", "average", "identity", "--json")
    results = json.loads(done.out)
    assert done.code == 0
    assert {result["kind"] for result in results} == {"average", "identity"}
    assert all(result["holds"] for result in results)


def test__check__false_claim__counterexample_and_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mixers.builtin.average import AverageAttention

    honest = AverageAttention.traits
    monkeypatch.setattr(
        AverageAttention,
        "traits",
        classmethod(lambda _, config: honest(config).model_copy(update={"reach": 1})),
    )
    done = call(capsys, "mixers", "check", "average")
    assert done.code == 1
    assert "counterexample" in done.out
    assert "do not hold" in done.error_line


def test__show__measured__claims_cost_errors_and_sizes_beside_attention(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "bproj.html"
    done = call(
        capsys, "mixers", "show", "bproj", "--measure", "--seq-len", "16", "--out", str(page)
    )
    assert done.code == 0
    assert "measured at d_model 64, 16 tokens" in done.out
    assert f"{len(CHECKS)} of {len(CHECKS)} checks hold" in done.out
    assert "of the largest output in float32, against float64" in done.out
    # W_P mixes 16 unit tokens into one of unit size, W halves it; attention takes a mean of 16.
    assert "warning: update at initialisation is" in done.out
    assert f"wrote {page}" in done.err
    assert "who moves whom" in page.read_text()


def test__show__measured__json_has_the_card(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "mixers", "show", "identity", "--measure", "--seq-len", "8", "--json")
    measured = json.loads(done.out)["measured"]
    assert measured["sizes"] == {"update": 0.0, "gradient": 0.0}
    assert measured["warnings"] == []
    assert len(measured["influence"]) == 8


def test__show__out_without_measure__is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "mixers", "show", "bproj", "--out", "x.png")
    assert done.code == 2
    assert "--measure" in done.error_line


OWN = """
from typing import ClassVar, Literal
from faulty_mixers import ClaimsNonLinear, HonestConfig

class OwnConfig(HonestConfig):
    kind: Literal["local.own"] = "local.own"

class Own(ClaimsNonLinear):
    config_type: ClassVar = OwnConfig

class NeedyConfig(HonestConfig):
    kind: Literal["local.needy"] = "local.needy"
    size: int

class Needy(ClaimsNonLinear):
    config_type: ClassVar = NeedyConfig
"""


def test__check__class_of_a_file__is_measured_without_a_package(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_mixers_of_a_test.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    done = call(capsys, "mixers", "check", "own_mixers_of_a_test:Own")
    assert done.code == 1
    assert f"{len(CHECKS) - 1} of {len(CHECKS)} checks hold" in done.out
    assert "  linear: local.own: claim: linear=False" in done.out
    needy = call(capsys, "mixers", "check", "own_mixers_of_a_test:Needy")
    assert needy.code == 2
    assert "cannot be built from its kind alone: size: missing" in needy.error_line
    other = call(capsys, "mixers", "check", "own_mixers_of_a_test:Onw")
    assert "no mixer class 'Onw'" in other.error_line
    assert "Own, " in other.error_line
    missing = call(capsys, "mixers", "check", "no_such_module_here:Own")
    assert missing.code == 2
    assert "ModuleNotFoundError" in missing.error_line
    ending = call(capsys, "mixers", "check", "own_mixers_of_a_test.py:Own")
    assert "name the module, without .py" in ending.error_line
    contract = call(capsys, "mixers", "check", "mixers:TokenMixer")
    assert contract.code == 2
    assert "TokenMixer lacks flops, forward, traits" in contract.error_line


def test__check__notation__measures_that_config(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "mixers", "check", "identity, sepconv(kernel_size=2)", "--json")
    assert done.code == 0
    kinds = [row["kind"] for row in json.loads(done.out)]
    assert kinds == ["identity"] * len(CHECKS) + ["sepconv"] * len(CHECKS)


def test__check__settings_that_no_usual_width_suits__are_measured_at_one_that_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = call(capsys, "mixers", "check", "average, attention(n_heads=3)*2")
    assert done.code == 0
    assert f"{2 * len(CHECKS)} of {2 * len(CHECKS)} checks hold" in done.out
    refused = call(capsys, "mixers", "check", "attention(n_heads=1000)")
    assert refused.code == 2
    assert "n_heads: 1000 must divide d_model 16" in refused.error_line
