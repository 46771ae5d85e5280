"""`search ls` and `search show`: what a store holds."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from search.cli.numbers import decimals
from search.cli.options import (
    DEFAULT_STORE,
    JsonOption,
    ServerOption,
    StoreOption,
    StudyArgument,
)
from search.cli.output import LEFT, RIGHT, note, print_json, table, write

if TYPE_CHECKING:
    from search.rows import StudyRow, TrialRow

SHOWN_TRIALS = 50


def ls(
    store: StoreOption = DEFAULT_STORE, server: ServerOption = None, json: JsonOption = False
) -> None:
    """List the studies of a store."""
    from search.cli.opening import open_reader
    from search.errors import NothingThereError

    with open_reader(store, server) as opened:
        studies = opened.studies()
        place = opened.url
    if json:
        print_json(studies)
        return
    if not studies:
        raise NothingThereError(f"{place}: holds no study yet; 'search run' starts one")
    columns = (
        ("study", LEFT),
        ("state", LEFT),
        ("trials", RIGHT),
        ("completed", RIGHT),
        ("running", RIGHT),
        ("busy", RIGHT),
        ("objective", LEFT),
        ("created", LEFT),
    )
    write(table(columns, [_study_cells(study) for study in under_their_base(studies)]))


def under_their_base(studies: "Sequence[StudyRow]") -> "list[StudyRow]":
    """Studies, oldest first, each followed by those that are derived from it."""
    return [
        one
        for study in studies
        if study.base is None
        for one in (study, *(other for other in studies if other.base == study.name))
    ]


def show(
    study: StudyArgument = None,
    trial: Annotated[
        int | None,
        typer.Argument(
            metavar="[TRIAL]", min=0, help="Number of one trial, to see all that is known of it."
        ),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    server: ServerOption = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, metavar="N", help="Show the last N trials.")
    ] = SHOWN_TRIALS,
    json: JsonOption = False,
) -> None:
    """Show a study with its trials, or one trial in full."""
    from search.cli.opening import find_study, find_trial, open_reader
    from search.cli.trial import trial_text

    name, number = study_and_trial(study, trial)
    with open_reader(store, server) as opened:
        found = find_study(opened, name)
        if number is not None:
            document = opened.trial(find_trial(opened, found, number).id)
            if json:
                print_json(document)
            else:
                write(trial_text(document))
            return
        rows = opened.rows(found.name, curves=False)
    if json:
        print_json({"study": found, "trials": rows})
        return
    write(study_text(found, rows))
    if not rows:
        return
    write("\n" + trials_table(rows[-limit:], found))
    if len(rows) > limit:
        note(f"the last {limit} of {len(rows)} trials; --limit shows more")
    note(f"`search show {found.name} {rows[-1].number}` shows one trial in full")


def study_and_trial(study: str | None, trial: int | None) -> tuple[str | None, int | None]:
    """A lone number is a trial of the only study: names made by us never are numbers."""
    if study is not None and trial is None and study.isdigit():
        return None, int(study)
    return study, trial


def study_text(study: "StudyRow", rows: "Sequence[TrialRow]") -> str:
    """The head of a study's page: its state, its counts and what it searches."""
    from collections import Counter

    from search.spec.budget import duration_words

    states = Counter(row.state for row in rows)
    phases = Counter(row.phase for row in rows)
    lines = [
        ("study", study.name),
        ("derived", f"from {study.base}, for {study.purpose}" if study.base else ""),
        ("state", _state(study)),
        ("objective", f"{study.direction} {study.objective} on the selection split"),
        ("beside it", ", ".join(study.spec.get("objectives", ())[1:])),
        ("limits", _limits(study)),
        ("trials", _counted(states) or "none yet"),
        ("phases", _counted(phases)),
        ("busy", duration_words(study.busy_s)),
        ("space", f"revision {study.space_revision}: {', '.join(_owners(study))}"),
        ("created", study.created_at.strftime("%Y-%m-%d %H:%M UTC")),
    ]
    return "\n".join(f"{label:<12}{value}" for label, value in lines if value)


def _limits(study: "StudyRow") -> str:
    limits = study.spec.get("limits") or {}
    return ", ".join(f"{name} {bound:g}" for name, bound in limits.items() if bound is not None)


def trials_table(rows: "Sequence[TrialRow]", study: "StudyRow") -> str:
    """Trials as aligned rows."""
    from search.wording import scaled, time_text

    others = sorted({name for row in rows for name in row.selection} - {study.objective})
    columns = (
        ("#", RIGHT),
        ("phase", LEFT),
        ("state", LEFT),
        ("layers", LEFT),
        ("seed", RIGHT),
        (study.objective, RIGHT),
        *((name, RIGHT) for name in others),
        (f"test {study.objective}", RIGHT),
        ("params", RIGHT),
        ("FLOPs", RIGHT),
        ("latency", RIGHT),
        ("took", RIGHT),
        ("note", LEFT),
    )
    return table(
        columns,
        [
            (
                str(row.number),
                row.phase,
                row.state,
                row.code or "-",
                str(row.seed),
                decimals(row.selection.get(study.objective)),
                *(decimals(row.selection.get(name)) for name in others),
                decimals(row.test.get(study.objective)),
                scaled(row.params),
                scaled(row.flops),
                time_text(row.latency_s),
                time_text(row.seconds),
                _remark(row),
            )
            for row in rows
        ],
        flexible=("note",),
    )


def _study_cells(study: "StudyRow") -> tuple[str, ...]:
    from search.spec.budget import duration_words

    return (
        study.name if study.base is None else f"  {study.name}",
        _state(study),
        str(study.n_trials),
        str(study.n_completed),
        str(study.n_running),
        duration_words(study.busy_s),
        f"{study.direction} {study.objective}",
        study.created_at.strftime("%Y-%m-%d %H:%M UTC"),
    )


def _state(study: "StudyRow") -> str:
    """A study's state and why; one that nobody works on now is idle."""
    if study.state == "running":
        return "running" if study.n_running else "idle"
    return f"{study.state} ({study.reason})" if study.reason else study.state


def _remark(row: "TrialRow") -> str:
    """Why a trial failed, what it stands for, or where its result came from."""
    from search.wording import role_words

    if row.state == "completed":
        known = role_words(row.role or "")
        return f"{known} (reused)".strip() if row.reused_from is not None else known
    return row.error or row.reason or ""


def _owners(study: "StudyRow") -> list[str]:
    return [
        kind if distribution == "mixsearch" else f"{kind} ({distribution} {version})"
        for kind, (distribution, version) in sorted(study.plugins.items())
    ]


def _counted(counts: "Mapping[Any, int]") -> str:
    return ", ".join(f"{n} {what}" for what, n in counts.items())
