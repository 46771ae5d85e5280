import json

import pytest
from command import call

SMALL = ("theory", "verify", "--d", "1", "--n", "2", "--delta", "1/4", "--sample", "300")


def test__verify__everything_holds__table_and_code_0(capsys):
    done = call(capsys, *SMALL)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "Theorem 2: d = 1, n = 2, delta = 1/4, B = 4 different columns"
    assert lines[1] == "inputs: all 25; run: the network, all its layers in float64"
    rows = [line for line in lines if line.endswith("yes")]
    assert f"all {len(rows)} claims hold" in lines
    # q_1 = 4, q_2 = 13, to each 4^3 * 13: the smallest gap is (B - 1)((n - 1) B - 1) = 9.
    cells = [" ".join(line.split()) for line in rows]
    assert "smallest gap of ids that must differ 9 9 yes" in cells


def test__verify__json_and_out__have_claims_and_tightness(capsys, tmp_path):
    path = tmp_path / "certificate.json"
    done = call(capsys, *SMALL, "--theorem", "3", "--json", "--out", str(path))
    found = json.loads(done.out)
    assert found == json.loads(path.read_text())
    assert found["theorem"] == 3
    assert found["holds"] is True
    assert found["inputs"] == {"total": "16", "sampled": None, "seed": 0}
    assert {"name": "layers: value", "expected": "32", "measured": "32", "holds": True} in (
        found["claims"]
    )
    assert found["tightness"][0]["residual_layers"] == "16"


def test__verify__claim_fails__code_1_and_its_name(capsys, monkeypatch):
    monkeypatch.setattr("mixers.theory.expected.smallest_gap", lambda d, n, k: 10)
    done = call(capsys, *SMALL)
    assert done.code == 1
    assert done.error_line == ("search: does not hold: smallest gap of ids that must differ")
    assert "1 of " in done.out


def test__verify__takes_long__says_how_far_it_is_on_standard_error(capsys, monkeypatch):
    monkeypatch.setattr("mixers.theory.certificate.PROGRESS_EVERY", 10)
    quiet = call(capsys, *SMALL)
    monkeypatch.setattr("search.cli.pace.Ticker.EVERY_S", 0.0)

    told = call(capsys, *SMALL)

    lines = [line.partition(", about")[0] for line in told.err.splitlines()]
    assert lines == ["10 of 25 inputs checked", "20 of 25 inputs checked"]
    assert (quiet.err, quiet.out) == ("", told.out)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--delta", "x"), "--delta 'x' is no fraction; write it as 1/4 or 0.25"),
        (("--delta", "2/5"), "delta = 2/5 does not divide [0, 1] into equal cubes"),
        (("--n", "5", "--delta", "1/4"), "n = 5 tokens cannot all differ"),
    ],
)
def test__verify__sizes_that_do_not_exist__one_line_and_code_2(capsys, arguments, words):
    done = call(capsys, "theory", "verify", "--d", "1", *arguments)
    assert done.code == 2
    assert words in done.error_line


def test__verify__more_layers_than_memory__still_answers(capsys):
    done = call(capsys, "theory", "verify", "--d", "8", "--delta", "1/16", "--sample", "150")
    assert done.code == 0
    assert "note: no network was run" in done.out


@pytest.mark.parametrize(
    ("d", "n", "delta", "word"),
    [
        # 9^420 inputs are more than the largest float, 8^21 columns more than a list can count.
        ("21", "20", "1/8", "a sample of 100 out of 6.051374e+400"),
        ("1", "2", "1/1000000000", "the quantizer was not run: 1,000,000,001 layers"),
    ],
)
def test__verify__numbers_beyond_floats_and_lists__still_answers(capsys, d, n, delta, word):
    arguments = ("--d", d, "--n", n, "--delta", delta, "--sample", "100")
    done = call(capsys, "theory", "verify", *arguments)
    assert done.code == 0
    assert word in done.out


def test__build__export__folder_that_loads(capsys, tmp_path):
    import mixers

    folder = tmp_path / "network"
    done = call(
        capsys, "theory", "build", "--theorem", "3", "--target", "previous", "--delta", "1/4",
        "--json", "--export", str(folder),
    )  # fmt: skip
    found = json.loads(done.out)
    assert done.code == 0
    # 1 x 2 x 4 quantizer layers, 8 shifts, 1 global, 2 x 16 values
    assert found["blocks"] == len(mixers.load(folder).blocks) == 49
    assert found["share_of_points_off_the_cubes"] == 0.0
    assert found["distance_function_cubes"] == pytest.approx(found["distance_function_network"])


def test__build__own_function__by_module(capsys):
    done = call(capsys, "theory", "build", "--target", "mixers.theory.cubes:centred", "--eps", "1")
    assert done.code == 0
    assert done.out.startswith("Theorem 2 for mixers.theory.cubes:centred: d = 1, n = 2, delta")


def test__build__eps_out_of_reach__says_so_with_code_1_and_what_would_do(capsys):
    done = call(capsys, "theory", "build", "--eps", "1e-3")

    assert done.code == 1
    assert "with delta = 1/256, the finest that is tried, d_2(f, cubes) = 0.00208" in (
        done.error_line
    )
    enough = float(done.error_line.partition("ask for --eps ")[2].split()[0])
    assert enough / 3 > 0.00208
    assert done.out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--n", "300"), "n = 300 tokens cannot all differ"),
        (("--target", "nope"), "--target 'nope' is none of mean, centred, previous"),
        (("--target", "mixers.theory.cubes:nope"), "has no attribute 'nope'"),
        (("--target", "previous"), "not permutation-equivariant, which Theorem 2 asks for"),
        (("--target", "math:pi"), "the target fails: TypeError: 'float' object is not callable"),
        (("--target", "torch:sum"), "the target returns [] for vectors [200, 2, 1]"),
        (("--delta", "1/3"), "the grid points k/3 are not exact in floats"),
        (("--d", "2", "--n", "4", "--delta", "1/8"), "needs 60 bits, float64 has 53"),
    ],
)
def test__build__what_cannot_be__one_line_and_code_2(capsys, arguments, words):
    done = call(capsys, "theory", "build", *arguments)
    assert done.code == 2
    assert words in done.error_line


def test__soften__hotter__ids_come_within_the_tolerance(capsys):
    found = json.loads(call(capsys, "theory", "soften", "--json").out)
    *_, last = [row for row in found["rows"] if row["quantizer_eps"] == 2**-10]
    assert last["inverse_temperature"] == found["sufficient_inverse_temperature"]
    errors = [row["ids"] for row in found["rows"][:7]]
    assert errors[-1] <= found["tolerance"] < errors[0]
    text = call(capsys, "theory", "soften", "--tolerance", "0.1").out
    assert "suffices for ids within 0.1" in text.splitlines()[0]
    assert len(text.splitlines()) == 2 + 1 + 7 + 3
