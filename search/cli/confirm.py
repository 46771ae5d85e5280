"""`search confirm`: train a study's finalists again, longer or wider."""

from typing import TYPE_CHECKING, Annotated

import typer

from search.cli.options import DEFAULT_STORE, JsonOption, StoreOption, StudyArgument
from search.cli.output import note, print_json, write

if TYPE_CHECKING:
    from search.followups.derived import Stage
    from search.rows import StudyRow, TrialRow
    from search.spec.study import StudySpec
    from search.store.repo import Store

DEFAULT_SEEDS = 2


def confirm(
    study: StudyArgument = None,
    steps: Annotated[
        str | None,
        typer.Option(
            "--steps",
            metavar="x4|N",
            help="How long to train: x4 is four times the study's steps, which is the default; "
            "lengths on the way double.",
        ),
    ] = None,
    d_model: Annotated[
        int | None,
        typer.Option("--d-model", min=1, metavar="D", help="Another width, at the study's steps."),
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="S", help="Seeds of each architecture.")
    ] = DEFAULT_SEEDS,
    store: StoreOption = DEFAULT_STORE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be trained; start nothing.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Train a study's finalists again, longer or wider: does its answer hold?

    Finalists, all-attention, a shorter model and further architectures of the ranking are trained
    from the start for each length, in studies of their own. The same command continues.
    """
    from search.cli.opening import find_study, open_store, spec_of
    from search.followups.confirm import scales_of, select, steps_of
    from search.followups.derived import refuse_unfit, stages_of

    with open_store(store) as opened:
        base = find_study(opened, study)
        spec = spec_of(base)
        refuse_unfit(base, spec)
        wished = None if steps is None else steps_of(steps, spec.training.steps)
        scales = scales_of(spec, wished, d_model)
        rows = opened.rows(base.name)
        stages = stages_of(opened, base, spec, scales, select(spec, rows), seeds)
        if dry_run:
            print_plan(opened, base, spec, rows, stages, json=json)
            return
        run(opened, base, stages, json=json)


def run(store: "Store", base: "StudyRow", stages: "list[Stage]", *, json: bool) -> None:
    """Run the derived studies and print what the base study's answer makes of them.

    Raises:
        InterruptedRunError: Ctrl-C.
        RunFailedError: All trainings of a derived study failed.
    """
    from search.cli.answering import answer_of
    from search.cli.report import screen_width
    from search.cli.run import make_watcher
    from search.cli.watching import JsonWatcher
    from search.errors import InterruptedRunError, RunFailedError
    from search.followups.derived import run_stages
    from search.report.lengths import section
    from search.report.sections import to_text

    for stage in stages:
        for notation, problem in stage.derived.left_out:
            note(f"left out at {stage.derived.scale.purpose}: {notation}: {problem}")
    with make_watcher(store, json) as watcher:
        outcome = run_stages(store, base, stages, watcher)
    if outcome is not None:
        error = InterruptedRunError if outcome.exit_code == 130 else RunFailedError
        raise error(f"{outcome.study}: {outcome.message}")
    answer = answer_of(store, base)
    if json:
        found = answer.to_dict()["lengths"]
        JsonWatcher(store).say("lengths", study=base.name, lengths=found)
        return
    write(to_text([section(answer, None)], screen_width()))


def print_plan(
    store: "Store",
    base: "StudyRow",
    spec: "StudySpec",
    rows: "list[TrialRow]",
    stages: "list[Stage]",
    *,
    json: bool,
) -> None:
    """Print what would be trained and about how long it takes."""
    from search.followups.confirm_plan import plan_of, plan_words

    planned = [plan_of(store, spec, rows, stage) for stage in stages]
    if json:
        print_json({"study": base.name, "stages": planned})
    else:
        write("\n".join(plan_words(base.name, planned)))
