"""`search worker`: takes trials of whatever study of a store has work, until told to end."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from search.engine.assembly import make_worker
from search.engine.needs import refuse_other_plugins, uses_local_classes
from search.engine.observer import OneAtATime, RunObserver
from search.engine.preparing import Prepared, prepare, refuse_other_data
from search.engine.run_end import settle_study
from search.engine.stopping import StopFlag, stop_on_signals
from search.errors import (
    AccessError,
    InputError,
    NothingThereError,
    RunFailedError,
    StoreAwayError,
)
from search.files import Files
from search.rows import StudyRow
from search.slots.runners import make_slots, slot_runner
from search.spec.budget import Budget
from search.spec.study_file import study_from
from search.tasks.objective import ObjectiveConfig
from search.workers.patience import Patience
from search.workers.team import work_together

if TYPE_CHECKING:
    from search.settings import Settings
    from search.slots.slot import Slot
    from search.spec.study import StudySpec
    from search.workers.contract import PullStore

SEEN_EVERY_S = 15.0


@dataclass(frozen=True)
class Opened:
    """A study that this process can work on."""

    study: StudySpec
    prepared: Prepared


@dataclass
class Desk:
    """What the slots of one process share.

    Attributes:
        store: The store.
        local: Settings of the machine.
        only: The one study to work on; all of the store if None.
        worker_id: This process in the store.
        observer: Told what happens.
        stop: Ends the work.
        until_idle: Whether to end when no study has work.
    """

    store: PullStore
    local: Settings
    only: str | None
    worker_id: int
    observer: RunObserver
    stop: StopFlag
    until_idle: bool = False
    opened: dict[int, Opened] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def candidates(self) -> Sequence[StudyRow]:
        """Returns the studies that hand out trials and have a budget, oldest first."""
        return self.store.open_studies(self.only)

    def open(self, row: StudyRow) -> Opened | None:
        """Reads a study and its data once per process; None where it cannot be worked on here."""
        with self.lock:
            if row.id in self.refused:
                return None
            if row.id not in self.opened:
                try:
                    self.opened[row.id] = self._opened(row)
                except InputError as error:
                    self.refuse(row, error)
                    return None
            return self.opened[row.id]

    def refuse(self, row: StudyRow, error: InputError) -> None:
        """Leaves a study to workers elsewhere, and says so once."""
        self.refused[row.id] = str(error)
        self.observer.message(f"study {row.name} is left to other workers: {error}")

    def _opened(self, row: StudyRow) -> Opened:
        study = study_from(row.spec, source=f"study {row.name}")
        if isinstance(study.task, ObjectiveConfig) or uses_local_classes(study):
            raise InputError("its code is in a script; run it from there")
        prepared = prepare(study, self.local.cache_dir)
        refuse_other_data(row, prepared)
        refuse_other_plugins(row, study)
        return Opened(study, prepared)


def pull(
    store: PullStore,
    local: Settings,
    *,
    study: str | None = None,
    slots: int | None = None,
    gpus: Sequence[int] | None = None,
    slots_per_gpu: int = 1,
    until_idle: bool = False,
    observer: RunObserver | None = None,
    stop: StopFlag | None = None,
) -> int:
    """Works until it is told to end; returns how many trials were started.

    Args:
        store: The store.
        local: Settings of the machine.
        study: Work on this study only.
        slots: Trials to train at once; by default one, or one on each GPU.
        gpus: Numbers of the GPUs to use; by default all.
        slots_per_gpu: How many small trainings share one GPU.
        until_idle: End when no study has work.
        observer: Told what happens.
        stop: Ends the work from outside or at a time: the trials in hand are saved and go back to
            the queue. Ctrl-C, SIGTERM and SIGUSR1 set it too.

    Raises:
        InputError: There are not so many devices.
        NothingThereError: There is no such study.
        StoreError: The store cannot be used.
    """
    if study is not None:
        store.study(study)
    stop = stop or StopFlag()
    watched = OneAtATime(observer or RunObserver())
    seats = make_slots(local, slots, slots_per_gpu=slots_per_gpu, gpus=gpus)
    worker_id = store.register_worker(slots=len(seats), devices=[seat.device for seat in seats])
    desk = Desk(store, local, study, worker_id, watched, stop, until_idle=until_idle)
    pullers = [Puller(desk, seat) for seat in seats]
    try:
        with stop_on_signals(stop, watched.message):
            work_together([puller.work for puller in pullers], stop)
    finally:
        for seat in seats:
            seat.close()
        with suppress(StoreAwayError):
            store.close_worker(worker_id)
    return sum(puller.started for puller in pullers)


class Puller:
    """One slot's share of the work: a study after the other, as long as there is work."""

    def __init__(self, desk: Desk, slot: Slot) -> None:
        self.desk = desk
        self.slot = slot
        self.started = 0
        self.patience = Patience(desk.stop, desk.observer.message)

    def work(self) -> None:
        """Claims and trains until told to end, out of time, or (if so asked) idle."""
        desk = self.desk
        seen_at = time.monotonic()
        while desk.stop.check() is None:
            try:
                busy = self.patience(self._one_round)
            except StoreAwayError:
                break  # Told to end while the store is away.
            if busy:
                continue
            if desk.until_idle:
                break
            desk.stop.sleep(desk.local.poll_s)
            if time.monotonic() - seen_at >= SEEN_EVERY_S:
                seen_at = time.monotonic()
                self.patience(lambda: desk.store.see_worker(desk.worker_id))

    def _one_round(self) -> bool:
        """Goes over the studies once; says whether a trial was started."""
        self.desk.store.reap()
        before = self.started
        for row in self.desk.candidates():
            if self.desk.stop.reason is not None:
                break
            opened = self.desk.open(row)
            if opened is not None:
                self._work_on(row, opened)
        return self.started > before

    def _work_on(self, row: StudyRow, opened: Opened) -> None:
        desk = self.desk
        assert row.budget is not None
        files = Files.of(desk.store.address, desk.local)
        worker = make_worker(
            desk.store,
            row,
            opened.study,
            Budget.parse(row.budget),
            desk.worker_id,
            opened.prepared,
            slot_runner(self.slot, opened.study, desk.local, files),
            desk.observer,
            desk.stop,
            desk.local,
        )
        try:
            tally = worker.work()
        except AccessError:
            raise
        except InputError as error:
            # A trial that cannot be built here must not keep this worker from other studies.
            desk.refuse(row, error)
            return
        except (NothingThereError, RunFailedError) as error:
            desk.observer.message(f"study {row.name}: {error}")  # Deleted, or a race was lost.
            return
        finally:
            self.started += worker.tally.started
        if tally.ended is not None and tally.ended.reason != "stopped":
            settle_study(desk.store, row.id, tally.ended)
