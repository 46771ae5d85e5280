"""Taking the studies of another store in: new ids, no training twice, all or nothing.

Everything happens in one transaction of the target, so an interruption leaves it as it was.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from search.errors import InputError, NothingThereError
from search.store.copying import Copying, Ids, Taken, columns_of, insert_rows
from search.store.engine import database_time, take_lock
from search.store.events import record
from search.store.measurements import Look, StudyVerdict
from search.store.studies import differences, looks, spelled_out
from search.store.summary import summarise
from search.store.tables import Architecture, DerivedStudy, Study, Trial
from search.store.types import AnyRow

SHOWN_DIFFERENCES = 3


@dataclass(frozen=True, kw_only=True)
class Merged:
    """What became of one study of the other store.

    Attributes:
        study: Its name there.
        name: Its name here.
        created: Whether it was not here yet.
        added: Trials taken in.
        duplicates: Trials that stand here already.
        left_out: Trials that have not ended there: reserved, queued or running.
    """

    study: str
    name: str
    created: bool
    added: int
    duplicates: int
    left_out: int


class Merging:
    """One merge, inside a reading transaction of the source and a writing one of the target.

    Args:
        source: Where the studies come from.
        target: Where they go.
        must_agree: Notes about a study that have to be equal where both stores have it.
    """

    def __init__(
        self, source: Connection, target: Connection, must_agree: Collection[str] = ()
    ) -> None:
        self.source = source
        self.target = target
        self.must_agree = must_agree
        self.studies: Ids = {}
        self.copying = Copying(source, target)

    def run(self, name: str | None, new_name: str | None, label: str) -> list[Merged]:
        """Merge all studies, or one with those derived from it.

        Raises:
            InputError: A study of that name is here with another spec or other data.
            NothingThereError: The source has no such study.
        """
        chosen = list(self.chosen(name))
        names = {row.id: renamed(row.name, name, new_name) for row in chosen}
        # All locks first and the events last: whoever holds a study's lock may wait for the events.
        for row in chosen:
            found = self.find(names[row.id])
            if found is not None:
                take_lock(self.target, found.id)
        done = [self.study(row, names[row.id]) for row in chosen]
        self.link(chosen)
        now = database_time(self.target)
        for row, merged in zip(chosen, done, strict=True):
            counts = {"added": merged.added, "duplicates": merged.duplicates}
            record(self.target, self.studies[row.id], "study_merged", now, source=label, **counts)
        return done

    def chosen(self, name: str | None) -> Iterator[AnyRow]:
        """Yield the studies to merge, oldest first."""
        rows = self.source.execute(select(Study).order_by(Study.id)).all()
        wanted = {row.id for row in rows if name is None or row.name == name}
        if not wanted:
            there = ", ".join(row.name for row in rows) or "none"
            which = f"no study {name!r}" if name is not None else "no study yet"
            raise NothingThereError(f"the other store has {which}; it has: {there}")
        derived = self.source.execute(select(DerivedStudy.study_id, DerivedStudy.base_id)).all()
        wanted |= {row.study_id for row in derived if row.base_id in wanted}
        return (row for row in rows if row.id in wanted)

    def find(self, name: str) -> AnyRow | None:
        """Return the target's study of a name."""
        return self.target.execute(select(Study).where(Study.name == name)).one_or_none()

    def study(self, row: AnyRow, name: str) -> Merged:
        """Merge one study."""
        found = self.find(name)
        if found is None:
            self.studies[row.id] = self.create(row, name)
        else:
            self.refuse_another(found, row)
            self.studies[row.id] = found.id
        taken = self.copying.take(row.id, self.studies[row.id])
        self.add_up(row, taken)
        if found is None:
            self.copy_summary(row.id)
        else:
            architectures = {trial.arch_id for trial in taken.added if trial.state == "completed"}
            for arch_id in sorted(architectures):
                summarise(self.target, found.id, arch_id)
        return Merged(
            study=row.name,
            name=name,
            created=found is None,
            added=len(taken.added),
            duplicates=len(taken.duplicates),
            left_out=taken.left_out,
        )

    def create(self, row: AnyRow, name: str) -> int:
        """Insert a study that is not here yet, without its trials."""
        values = columns_of(row, Study) | {"name": name, "busy_s": 0.0, "busy_since": None}
        created: int = self.target.execute(
            insert(Study).values(**values).returning(Study.id)
        ).scalar_one()
        lines = self.source.execute(select(StudyVerdict).where(StudyVerdict.study_id == row.id))
        verdicts = [columns_of(line, StudyVerdict) | {"study_id": created} for line in lines]
        insert_rows(self.target, StudyVerdict, verdicts)
        return created

    def add_up(self, row: AnyRow, taken: Taken) -> None:
        """Add what was spent on the trials that were taken in: time, and looks at the test split.

        A look at either store's confirmation has spent its part of the error rate, so both count.
        """
        study_id = self.studies[row.id]
        here = self.target.execute(select(Study).where(Study.id == study_id)).one()
        self.target.execute(
            update(Study)
            .where(Study.id == study_id)
            .values(attrs={**row.attrs, **here.attrs}, busy_s=here.busy_s + taken.busy_s)
        )
        known = sum(r.phase == "confirm" and r.state == "completed" for r in taken.duplicates)
        before = looks(self.target, study_id)
        most = before[-1] if before else 0
        now = database_time(self.target)
        lines = []
        # A look that read no more than what was here already was counted when that was taken in.
        fresh = [trials for trials in looks(self.source, row.id) if trials > known]
        for number, trials in enumerate(fresh, start=len(before) + 1):
            most = max(most, trials)
            lines.append(
                {"study_id": study_id, "number": number, "confirm_trials": most, "made_at": now}
            )
        insert_rows(self.target, Look, lines)

    def refuse_another(self, found: AnyRow, row: AnyRow) -> None:
        """Refuse to mix two studies.

        Raises:
            InputError: Their specs or their data differ.
        """
        from search.spec.study import StudySpec

        way_out = f"take it in under another name: --study {row.name} --name NEW"
        if found.spec != row.spec:
            here, there = (spelled_out(spec, StudySpec) for spec in (found.spec, row.spec))
            lines = list(differences(here, there))
            shown = "; ".join(lines[:SHOWN_DIFFERENCES])
            if lines:
                raise InputError(
                    f"study {found.name!r} is here with another spec ({shown}); {way_out}"
                )
        for note in self.must_agree:
            if note in found.attrs and found.attrs[note] != row.attrs.get(note, found.attrs[note]):
                raise InputError(f"study {found.name!r} was made here with other data; {way_out}")

    def copy_summary(self, study_id: int) -> None:
        """Copy the rows of a new study's architectures: all their trials are here."""
        insert_rows(
            self.target,
            Architecture,
            [
                columns_of(row, Architecture)
                | {
                    "study_id": self.studies[study_id],
                    "best_trial_id": self.copying.trials[row.best_trial_id],
                }
                for row in self.source.execute(
                    select(Architecture).where(Architecture.study_id == study_id)
                )
            ],
        )

    def link(self, chosen: Sequence[AnyRow]) -> None:
        """Point trials and studies at those they came from, now that all are here."""
        trials = self.copying.trials
        merged = [row.id for row in chosen]
        for row in self.source.execute(
            select(Trial.id, Trial.reused_from).where(
                Trial.study_id.in_(merged), Trial.reused_from.is_not(None)
            )
        ):
            if row.id in self.copying.added and row.reused_from in trials:
                self.target.execute(
                    update(Trial)
                    .where(Trial.id == trials[row.id])
                    .values(reused_from=trials[row.reused_from])
                )
        here = set(self.target.execute(select(DerivedStudy.study_id)).scalars())
        for derived in self.source.execute(
            select(DerivedStudy).where(DerivedStudy.study_id.in_(merged))
        ):
            study_id = self.studies[derived.study_id]
            if derived.base_id in self.studies and study_id not in here:
                values = {"study_id": study_id, "base_id": self.studies[derived.base_id]}
                insert_rows(self.target, DerivedStudy, [{**values, "purpose": derived.purpose}])


def renamed(name: str, chosen: str | None, new_name: str | None) -> str:
    """Return a study's name in the target; a derived study follows its base."""
    if chosen is None or new_name is None:
        return name
    return new_name + name.removeprefix(chosen) if name.startswith(chosen) else name
