import json
from pathlib import Path

import pytest
import store_factory
from command import call

from mixers import EncoderSpec
from search.store.repo import Store

Capture = pytest.CaptureFixture[str]


def test__best__text__pick_with_numbers_and_rivals(capsys: Capture, filled_store: str) -> None:
    done = call(capsys, "best", "--store", filled_store)
    assert done.code == 0
    lines = {line.split()[0]: line for line in done.out.splitlines()}
    assert lines["pick"].split()[1:] == ["SS", "sepconv*2"]
    assert "on test (2 runs)" in done.out
    assert "40 k" in lines["parameters"]
    assert lines["trials"].split(maxsplit=1)[1] == "1, 5, 9"


def test__best__json__spec_that_validates(capsys: Capture, filled_store: str) -> None:
    document = json.loads(call(capsys, "best", "--store", filled_store, "--json").out)
    spec = EncoderSpec.model_validate_json(json.dumps(document["spec"]))
    assert spec.arch_id == document["arch_id"]
    assert document["trials"] == [1, 5, 9]
    assert {contrast["against"] for contrast in document["contrasts"]} >= {"reference"}


def test__best__spec__read_by_probe(capsys: Capture, filled_store: str, tmp_path: Path) -> None:
    place = tmp_path / "best.json"
    place.write_text(call(capsys, "best", "--store", filled_store, "--spec").out)
    done = call(capsys, "probe", str(place), "--size", "small", "--json")
    reading = json.loads(done.out)
    assert done.code == 0
    assert reading["notation"] == "sepconv*2"
    assert reading["readings"]["probe"] > 0


def test__report__text__fits_one_screen_and_says_what_next(
    capsys: Capture, filled_store: str
) -> None:
    done = call(capsys, "report", "demo", "--store", filled_store)
    lines = done.out.splitlines()
    assert done.code == 0
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert "search show demo" in done.out


def test__report__keeps_its_verdicts_in_the_store(capsys: Capture, filled_store: str) -> None:
    call(capsys, "report", "--store", filled_store)
    rows = json.loads(
        call(capsys, "query", "SELECT * FROM verdicts", "--store", filled_store, "--json").out
    )
    assert rows
    assert {row["study"] for row in rows} == {"demo"}


@pytest.mark.parametrize(
    ("ending", "begins"),
    [(".md", "# Answer of demo"), (".json", "{"), (".txt", "Answer"), (".html", "<!doctype html>")],
)
def test__report__file__form_by_its_ending(
    capsys: Capture, filled_store: str, tmp_path: Path, ending: str, begins: str
) -> None:
    place = tmp_path / f"report{ending}"
    done = call(capsys, "report", "--store", filled_store, "-o", str(place))
    assert (done.code, done.out) == (0, "")
    assert place.read_text().startswith(begins)


def test__plot__no_kind__one_page_with_every_figure(
    capsys: Capture, filled_store: str, tmp_path: Path
) -> None:
    from search.cli.plot import KINDS
    from search.figures.plots import FIGURES

    place = tmp_path / "page.html"
    done = call(capsys, "plot", "demo", "--store", filled_store, "-o", str(place))
    assert done.code == 0
    page = place.read_text()
    assert page.count("Plotly.newPlot(") == len(FIGURES)
    assert tuple(FIGURES) == KINDS
    assert "<script src=" not in page


@pytest.mark.parametrize(
    ("words", "says"),
    [(["parto", "demo"], "did you mean 'pareto'?"), (["demo"], "a picture holds one figure")],
)
def test__plot__wrong_words__code_2(
    capsys: Capture, filled_store: str, tmp_path: Path, words: list[str], says: str
) -> None:
    done = call(capsys, "plot", *words, "--store", filled_store, "-o", str(tmp_path / "x.png"))
    assert done.code == 2
    assert says in done.error_line


@pytest.mark.parametrize("command", [["best"], ["plot", "pareto"]])
@pytest.mark.parametrize("study", ["empty", "hopeless"])
def test__C57__no_trial_or_all_failed__says_so_with_the_first_cause(
    capsys: Capture, two_studies: str, command: list[str], study: str
) -> None:
    done = call(capsys, *command, study, "--store", two_studies)
    assert done.code == 4
    assert "no finished trial yet" in done.error_line
    assert ("ValueError: something went wrong in forward" in done.error_line) == (
        study == "hopeless"
    )


def test__report__file_of_an_unknown_ending__refused_before_anything_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "answer.pdf"
    refused = call(capsys, "report", "--store", str(tmp_path / "absent.db"), "-o", str(target))
    assert refused.code == 2
    assert "answer.pdf: a report is written as .txt, .md, .html, .htm, .json" in refused.error_line
    assert not target.exists()


def repeat(store: Store, seeds: range) -> None:
    """Confirm all-attention and all-sepconv with more seeds."""
    study_id = store.study("demo").id
    worker = store.register_worker()
    for seed in seeds:
        for notation in ("attention*2", "sepconv*2"):
            claim = store_factory.claim_and_commit(
                store, study_id, worker, notation, phase="confirm", seed=seed, seed_index=seed
            )
            loss = store_factory.default_loss(store_factory.encoder_spec(notation), seed)
            store.finish(claim, store_factory.result(loss=loss, splits=("selection", "test")))


def test__report__after_more_confirmation__is_the_next_look_and_spends_less(
    capsys: Capture, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'looks.db'}"
    with Store.open(url) as store:
        store_factory.fill(store, seeds=4)

    def families(*commands: str) -> list[dict[str, object]]:
        told = [call(capsys, command, "--json", "--store", url) for command in commands]
        assert all(done.code == 0 for done in told)
        return [json.loads(done.out)["answer"]["family"] for done in told if "answer" in done.out]

    first, again = families("report", "report")
    assert first["look"] == again["look"] == 1
    with Store.open(url) as store:
        assert store.looks("demo") == (12,)
        repeat(store, range(4, 6))
    families("best")
    [second] = families("report")
    assert second["look"] == 2
    assert "verdicts 99.2 % sure together (answer 2 of this study)" in " ".join(
        call(capsys, "report", "--store", url).out.split()
    )
    with Store.open(url) as store:
        assert store.looks("demo") == (12, 16)


def test__report__while_trials_are_under_way__is_no_look(
    capsys: Capture, filled_store: str
) -> None:
    call(capsys, "report", "--store", filled_store)
    with Store.open(filled_store) as store:
        assert store.looks("demo") == ()
