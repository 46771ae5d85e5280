import json
from pathlib import Path

import pytest
from command import call

from mixers.conformance import CHECKS

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
    assert "source" in done.out
    assert "parameters" in done.out


def test__show__settings__type_default_and_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    fields = json.loads(call(capsys, "mixers", "show", "hardmax_shift", "--json").out)["fields"]
    by_name = {field["name"]: field for field in fields}
    assert by_name["rule"]["type"] == "shift | sign"
    assert by_name["rule"]["default"] == "shift"
    assert by_name["n_heads"]["type"] == "integer >= 1"
    assert all(field["description"] for field in fields)


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
