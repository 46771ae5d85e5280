"""`search compare`: two studies of a store side by side."""

from typing import TYPE_CHECKING, Annotated

import typer

from search.cli.options import DEFAULT_STORE, JsonOption, ServerOption, StoreOption
from search.cli.output import print_json, write

if TYPE_CHECKING:
    from search.rows import StudyRow


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="Name of a study.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Name of another one.")],
    store: StoreOption = DEFAULT_STORE,
    server: ServerOption = None,
    json: JsonOption = False,
) -> None:
    """Set two studies side by side: picks, verdicts, best by kind, what both trained.

    They must have the same task, data, splits and recipe; else it says in what they differ.
    """
    from search.answers.side_by_side import side_by_side
    from search.cli.answering import answer_of, require_finished
    from search.cli.opening import open_reader
    from search.cli.report import screen_width
    from search.report.compare import render_comparison

    with open_reader(store, server) as opened:
        studies = (opened.study(first), opened.study(second))
        differing = allowed_differences(*studies)
        rows = [opened.rows(study.name, documents=True) for study in studies]
        answers = (
            answer_of(opened, studies[0], rows[0]),
            answer_of(opened, studies[1], rows[1]),
        )
    for answer, study in zip(answers, studies, strict=True):
        require_finished(answer, study)
    sides = side_by_side((studies[0].name, studies[1].name), answers, (rows[0], rows[1]), differing)
    if json:
        print_json(sides.to_dict())
    else:
        write(render_comparison(sides, width=screen_width()))


def allowed_differences(first: "StudyRow", second: "StudyRow") -> list[str]:
    """The settings that differ and may.

    Raises:
        InputError: It is one study twice, or task, splits or recipe differ; names the fields.
    """
    from search.answers.side_by_side import split_differences
    from search.engine.claims import FINGERPRINT
    from search.errors import InputError
    from search.spec.study import StudySpec
    from search.store.studies import differences, spelled_out

    if first.id == second.id:
        raise InputError(f"{first.name!r} is one study; name two")
    specs = [spelled_out(study.spec, StudySpec) for study in (first, second)]
    forbidding, allowed = split_differences(list(differences(*specs)))
    data = [str(study.attrs.get(FINGERPRINT, "unknown"))[:8] for study in (first, second)]
    if not forbidding and first.attrs.get(FINGERPRINT) != second.attrs.get(FINGERPRINT):
        forbidding = [f"data and splits: {data[0]} -> {data[1]}", *_of_seed(allowed)]
    if forbidding:
        raise InputError(
            f"{first.name!r} and {second.name!r} cannot be compared, they differ in "
            + "; ".join(forbidding)
        )
    return allowed


def _of_seed(allowed: list[str]) -> list[str]:
    """The seed, where it is why the evaluation windows differ."""
    return [f"{line} (draws the evaluation windows)" for line in allowed if line[:5] == "seed:"]
