"""The store: the only code that opens transactions, and all that other code may ask of it.

One class, long because it is the whole contract in one place; its methods do no work of their own.
"""

import os
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Connection, Engine

from search.errors import StoreError
from search.rows import (
    Claim,
    CommitOutcome,
    Counts,
    FailOutcome,
    Offer,
    Phase,
    StudyRow,
    StudyState,
    TrialRow,
    TrialState,
    VerdictRow,
)
from search.store import (
    artifacts,
    committing,
    leases,
    merging,
    operations,
    query,
    reading,
    reaping,
    reporting,
    reserving,
    results,
    studies,
    workers,
)
from search.store.address import Address, parse_address
from search.store.codes import distinct_codes
from search.store.engine import database_time, make_engine
from search.store.engine import reading as read_transaction
from search.store.engine import writing as write_transaction
from search.store.known import KnownRows
from search.store.opening import WAYS_OUT, check_file
from search.store.schema import inspect_schema, migrate, require_current
from search.store.views import find_view

if TYPE_CHECKING:
    from mixers.spec import EncoderSpec
    from search.engine.terms import Terms
    from search.messages import Message, TrialFailure, TrialResult
    from search.spec.study import StudySpec

LEASE_S = 90.0
ROW_LIMIT = 1000
TIMEOUT_S = 10.0
STUDIES_LOCK = 0  # ids of studies start at 1


class Store:
    """Studies, trials and all that was measured, in SQLite or PostgreSQL.

    Every method is one short transaction; no connection is held between calls. A `study` is named
    by its name or its id. Database errors are `StoreError`s of one line.
    """

    def __init__(self, engine: Engine, address: Address, lease_s: float) -> None:
        self.engine = engine
        self.address = address
        self.lease_s = lease_s
        self.known = KnownRows()

    @classmethod
    def open(
        cls, url: str = "sqlite:///search.db", create: bool = True, *, lease_s: float = LEASE_S
    ) -> Self:
        """Open a store; an empty database is filled with the tables if `create`.

        Args:
            url: An SQLAlchemy URL of SQLite or PostgreSQL, or the path of an SQLite file.
            create: Whether to make what is not there.
            lease_s: Seconds after which a worker that gave no sign of life loses its trial.

        Raises:
            InputError: The URL is wrong.
            NothingThereError: There is no store, and none is to be made.
            StoreError: It is unreadable, of another program, older or newer, or on a network file
                system. It is then left as it was.
        """
        address = parse_address(url)
        check_file(address, create=create)
        engine = make_engine(address)
        try:
            with read_transaction(engine, address) as connection:
                schema = inspect_schema(connection)
            if schema.kind == "empty" and create:
                migrate(engine, address)
            else:
                require_current(schema, address)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, address, lease_s)

    @property
    def url(self) -> str:
        """The store's place without its password, for messages."""
        return self.address.label

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view of the store."""
        with read_transaction(self.engine, self.address) as connection:
            yield connection

    @contextmanager
    def writing(self, lock: int | None = None) -> Iterator[Connection]:
        """One short transaction that writes; those with one lock take turns."""
        with write_transaction(self.engine, self.address, lock=lock) as connection:
            yield connection

    # Studies

    def ensure_study(
        self,
        name: str,
        spec: "StudySpec",
        plugins: Mapping[str, tuple[str, str]],
        *,
        derived_from: tuple[int, str] | None = None,
    ) -> StudyRow:
        """Create a study, or continue the one of that name.

        Args:
            name: A study is its name.
            spec: Its spec; the budget is not part of it.
            plugins: Distribution and version of every mixer kind of its space. Other versions than
                last time give a new space revision.
            derived_from: Id of the study that a new one is made from, and what for, in one word.

        Raises:
            InputError: The name is bound to another spec; names the paths that differ.
        """
        with self.writing(STUDIES_LOCK) as connection:
            return studies.ensure_study(connection, name, spec, plugins, derived_from=derived_from)

    def study(self, study: str | int) -> StudyRow:
        """Return a study.

        Raises:
            NothingThereError: There is none; suggests the nearest names.
        """
        with self.reading() as connection:
            return studies.study_row(connection, studies.find_study(connection, study))

    def studies(self) -> list[StudyRow]:
        """Return all studies, oldest first."""
        with self.reading() as connection:
            return studies.all_studies(connection)

    def open_studies(self, only: str | None = None) -> list[StudyRow]:
        """Return the studies that hand out trials and have a budget, oldest first.

        Args:
            only: Name of the one study to look at.

        Raises:
            NothingThereError: There is no such study.
        """
        rows = [self.study(only)] if only else self.studies()
        return [row for row in rows if row.state == "running" and row.budget is not None]

    def counts(self, study: str | int) -> Counts:
        """Return what a budget is compared with, as a claim would see it now."""
        with self.reading() as connection:
            row = studies.find_row(connection, study)
            return reserving.count(connection, row.id, studies.busy_seconds(connection, row))

    def set_study_state(self, study_id: int, state: StudyState, reason: str | None) -> None:
        """Set a study's state and why.

        `paused` and `stopped` keep it from handing out trials; after any other state the next
        claim sets it to `running`.
        """
        with self.writing(study_id) as connection:
            studies.set_study_state(connection, study_id, state, reason)

    def change_state(self, study_id: int, wish: operations.Wish) -> operations.Change:
        """Let a study rest (`paused`, `stopped`) or go on (`running`), where that changes anything.

        Workers learn of it with their next sign of life.
        """
        with self.writing(study_id) as connection:
            return operations.change_state(connection, study_id, wish)

    def retry(
        self,
        study_id: int,
        *,
        states: Collection[TrialState] = operations.RETRIABLE[:1],
        causes: Collection[str] = (),
        numbers: Collection[int] = (),
    ) -> list[operations.Retried]:
        """Queue ended trials for another attempt; they keep their places in the budget.

        Args:
            study_id: The study.
            states: Only trials that ended so.
            causes: Only trials whose last attempt ended for one of these causes; any by default.
            numbers: Only these trials; every one of them must fit.

        Raises:
            InputError: A trial that was named did not end so.
            NothingThereError: A trial that was named is not there.
        """
        with self.writing(study_id) as connection:
            return operations.retry(
                connection, study_id, states=states, causes=causes, numbers=numbers
            )

    def merge(
        self,
        other: "Store",
        *,
        study: str | None = None,
        name: str | None = None,
        must_agree: Collection[str] = (),
    ) -> list[merging.Merged]:
        """Take the studies of another store in, in one transaction.

        Ended trials get new ids here; what is here already by architecture, training key and seed
        is skipped, and what has not ended there is left out.

        Args:
            other: The other store; it is only read.
            study: Only this one, with those derived from it.
            name: Its name here, instead of its own.
            must_agree: Notes about a study that have to be equal where both stores have it.

        Raises:
            InputError: A study of that name is here with another spec or other data.
            NothingThereError: The other store has no such study.
        """
        with other.reading() as source, self.writing(STUDIES_LOCK) as target:
            return merging.Merging(source, target, must_agree).run(study, name, other.url)

    def ask_budget(self, study_id: int, budget: str) -> None:
        """Note the budget that a study is to have, for workers that are given none.

        Another budget than the last one asked for sets an ended study running again.
        """
        with self.writing(study_id) as connection:
            studies.ask_budget(connection, study_id, budget)

    def save_verdicts(self, study_id: int, rows: Sequence[VerdictRow | Mapping[str, Any]]) -> None:
        """Replace a study's verdicts by those of a new answer, in their order."""
        with self.writing(study_id) as connection:
            studies.save_verdicts(connection, study_id, rows)

    def looks(self, study: str | int) -> tuple[int, ...]:
        """Return how many confirmation trials had ended at each answer that read them."""
        with self.reading() as connection:
            return studies.looks(connection, studies.find_study(connection, study))

    def record_look(self, study_id: int, confirm_trials: int) -> int:
        """Count an answer that read the confirmation; returns its number, from 1.

        An answer over no more trials than the last one is the same look.
        """
        with self.writing(study_id) as connection:
            return studies.record_look(connection, study_id, confirm_trials)

    # Workers

    def register_worker(
        self,
        *,
        host: str | None = None,
        pid: int | None = None,
        devices: Sequence[str] = (),
        slots: int = 1,
        is_served: bool = False,
    ) -> int:
        """Register a process that will claim trials; returns its id.

        Args:
            host: Its machine; this one by default.
            pid: Its process id there; this one's by default.
            devices: What it trains on.
            slots: Trials it can have in hand at once.
            is_served: Whether a service writes for it. Then it may be on any machine, and nothing
                is concluded from its process id: only its lease tells that it is gone.

        Raises:
            StoreError: An SQLite store is in use by a worker on another machine.
        """
        host = host or socket.gethostname()
        with self.writing(STUDIES_LOCK) as connection:
            is_beside = self.address.is_sqlite and not is_served
            other = workers.busy_elsewhere(connection, host) if is_beside else None
            if other is not None:  # SQLite's locks do not reach another machine.
                raise StoreError(
                    f"{self.url}: a worker on {other} uses this SQLite file, and it cannot be "
                    f"shared between machines; {WAYS_OUT}"
                )
            number = pid or os.getpid()
            return workers.register(connection, host, number, devices, slots, is_served=is_served)

    def see_worker(self, worker_id: int) -> None:
        """Note that a worker without a trial is there."""
        with self.writing() as connection:
            workers.see(connection, worker_id)

    def close_worker(self, worker_id: int) -> None:
        """Note that a worker ended in good order."""
        with self.writing() as connection:
            workers.close(connection, worker_id)

    # Claims

    def reserve(
        self,
        study_id: int,
        worker: int,
        choose: reserving.Choose,
        resume: reserving.Resume | None = None,
        promote: reserving.Promote | None = None,
    ) -> Claim | None:
        """Claim work: a queued trial, one to promote, or the next number for a phase.

        Expired leases are taken back first. A claim with `spec` is a trial that has one already,
        and runs at once; one without needs `commit`.

        Args:
            study_id: The study.
            worker: Id of the worker.
            choose: Pure and quick; gets the counts, returns the phase of the next trial, or None
                when the budget is used up.
            resume: Whether a queued trial may go on (it is in the counts already); always, by
                default. A used-up time budget says no.
            promote: Which trial that ended at a rung is to go on, for the counts; none by default.

        Returns:
            None when the budget is used up, or the study is `paused` or `stopped`.
        """
        with self.writing(study_id) as connection:
            return reserving.reserve(
                connection, study_id, worker, choose, resume, promote, self.lease_s
            )

    def claim(self, study_id: int, worker: int, terms: "Terms") -> Offer:
        """Reserve on a worker's terms, which are judged by the counts of this transaction."""
        seen: list[Counts] = []

        def choose(counts: Counts) -> Phase | None:
            seen.append(counts)
            return terms.phase(counts)

        claim = self.reserve(study_id, worker, choose, terms.may_resume, terms.promotion)
        return Offer(claim=claim, counts=seen[-1] if seen else None)

    def commit(
        self,
        claim: Claim,
        spec: "EncoderSpec",
        *,
        seed: int,
        seed_index: int,
        training_key: str,
        role: str | None = None,
        params: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        study_attrs: Mapping[str, Any] | None = None,
        recipe: Mapping[str, float] | None = None,
        flops: int = 0,
        most_flops: float | None = None,
        splits: Sequence[str] = ("selection",),
        until: int | None = None,
    ) -> CommitOutcome:
        """Give a reservation its architecture.

        Args:
            claim: From `reserve`.
            spec: The architecture.
            seed: Training seed.
            seed_index: Which of the architecture's seeds that is.
            training_key: Hash of all that a result depends on besides the two.
            role: Name of the baseline or finalist.
            params: The sampler's own parameters.
            attrs: The sampler's notes about the trial.
            study_attrs: The sampler's notes about the study; those of other names stay.
            recipe: What the training changes of the study's recipe.
            flops: Training FLOPs to reserve.
            most_flops: What the study may spend and reserve in all; unlimited by default.
            splits: What the result of another study must have been read on to be taken over.
            until: The rung at which the training ends at first; `flops` are those up to there.

        Returns:
            "running": go on and train. "reused": the row is complete, taken over from another
            study. "duplicate": this study has that row already; the claim stays a reservation and
            may be committed with another architecture. "no room": it would exceed `most_flops`;
            the claim stays a reservation. "lost": the lease was lost; drop the claim.

        Raises:
            InputError: A NaN or an infinity among params or attrs.
        """
        described = committing.describe(spec)
        with self.writing(claim.study_id) as connection:
            return committing.commit(
                connection,
                claim,
                described,
                seed=seed,
                seed_index=seed_index,
                training_key=training_key,
                role=role,
                params=params or {},
                attrs=attrs or {},
                study_attrs=study_attrs or {},
                recipe=recipe or {},
                flops=flops,
                most_flops=most_flops,
                splits=splits,
                until=until,
            )

    def release(self, claim: Claim, returned: bool, reason: str) -> None:
        """Give a claim back before its end.

        Args:
            claim: A reservation without an architecture is deleted and frees its number; a
                committed trial is queued, and its attempt was preempted. No data is ever deleted.
            returned: True when nothing was left to train, False after an interruption.
            reason: In words.
        """
        with self.writing(claim.study_id) as connection:
            leases.release(connection, claim, returned, reason)

    def heartbeat(self, claim: Claim) -> StudyState | None:
        """Renew a lease; returns the state of the study, by which a worker learns of a pause.

        None when the trial was taken over and its work is in vain.
        """
        with self.writing() as connection:
            return leases.heartbeat(connection, claim)

    def reap(self) -> int:
        """Take back the trials of workers that died; returns how many."""
        with self.reading() as connection:
            waiting = reaping.studies_to_reap(connection, database_time(connection))
        taken = 0
        for study_id in sorted(waiting):
            with self.writing(study_id) as connection:
                taken += reaping.reap(connection, study_id, database_time(connection))
        return taken

    # Results

    def report(self, claim: Claim, reports: "Sequence[Message]") -> bool:
        """Store reports of a running trial; False when its lease was lost.

        A non-finite value is not stored and makes the trial end as diverged.
        """
        with self.writing() as connection:
            return reporting.report(connection, claim, reports)

    def finish(self, claim: Claim, result: "TrialResult") -> bool:
        """End a trial with its result; False when its lease was lost.

        A result that comes too late is kept with its attempt; one that is sent a second time
        changes nothing. Non-finite evaluations make the trial diverged.
        """
        with self.writing(claim.study_id) as connection:
            return results.finish(connection, claim, result)

    def fail(self, claim: Claim, failure: "TrialFailure") -> FailOutcome:
        """End an attempt that failed.

        Returns:
            "queued": the trial gets another attempt, as `search.store.retries` has it. "failed":
            it has had all that it gets for this cause. "lost": the lease was lost; nothing changed.
        """
        with self.writing(claim.study_id) as connection:
            return results.fail(connection, claim, failure)

    def add_artifact(
        self,
        trial_id: int,
        kind: str,
        uri: str,
        *,
        sha256: str | None = None,
        size_bytes: int | None = None,
    ) -> int:
        """Note a file that belongs to a trial; returns its id.

        Args:
            trial_id: The trial.
            kind: What it is: `checkpoint`, `log` or `export`.
            uri: Where it lies, by its path below the folder of the store's files. What lay there
                before is no artifact any more.
            sha256: Hash of its content.
            size_bytes: Its size.

        Raises:
            NothingThereError: There is no such trial.
        """
        with self.writing() as connection:
            return artifacts.add(
                connection, trial_id, kind, uri, sha256=sha256, size_bytes=size_bytes
            )

    # Reading

    def rows(
        self, study: str | int, *, curves: bool = True, documents: bool = False
    ) -> list[TrialRow]:
        """Return every trial of a study by number, with codes that tell its stacks apart.

        Args:
            study: The study.
            curves: Whether to read the curves; they stay empty otherwise.
            documents: Whether to read the objective's sums by document. Without both, only what
                changed since the last call is read.
        """
        with self.reading() as connection:
            study_id = studies.find_study(connection, study)
            if not curves and not documents:
                return self.known.rows(connection, study_id)
            return distinct_codes(
                reading.trial_rows(connection, study_id, curves=curves, documents=documents)
            )

    def trial(self, trial_id: int) -> dict[str, Any]:
        """Return all that is known about a trial, as JSON values.

        These are the columns of `trials_flat`, then spec, plugins, blocks, attempts, curves,
        evaluations, costs, probes, proof, environment, artifacts.

        Raises:
            NothingThereError: There is no such trial.
        """
        with self.reading() as connection:
            return reading.trial_document(connection, trial_id)

    def leaderboard(self, study: str | int, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the rows of the view `pareto` of a study, best first."""
        with self.reading() as connection:
            name = studies.find_row(connection, study).name
            return reading.leaderboard(connection, name, limit)

    def view(self, name: str, study: str | None = None) -> list[dict[str, Any]]:
        """Return all rows of a public view, or those of one study, in the view's order.

        Raises:
            InputError: There is no such view.
            NothingThereError: There is no such study.
        """
        view = find_view(name)
        with self.reading() as connection:
            if study is None or "study" not in view.columns:
                return reading.view_rows(connection, view)
            studies.find_study(connection, study)
            return reading.view_rows(connection, view, "study = :study", study=study)

    def events(
        self, after_id: int = 0, *, study: str | int | None = None, limit: int = ROW_LIMIT
    ) -> list[dict[str, Any]]:
        """Return events with an id above `after_id`, by rising id."""
        with self.reading() as connection:
            study_id = studies.find_study(connection, study) if study is not None else None
            return reading.events_after(connection, after_id, study_id, limit)

    def query(
        self, sql: str, limit: int = ROW_LIMIT, timeout_s: float = TIMEOUT_S
    ) -> query.QueryResult:
        """Run one SELECT of a user on a connection that cannot write.

        Raises:
            InputError: It is wrong, it writes, or it takes longer than `timeout_s`.
        """
        return query.run_query(self.engine, self.address, sql, limit, timeout_s)
