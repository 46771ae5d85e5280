"""Rows of trials that were read before: of a study that grows, only what changed is read again.

A trial in a final state does not change any more, unless it gets another attempt. So one small
query tells what is new, whoever wrote it, and what it costs to claim a trial does not grow with
every trial's metrics and notes.
"""

from dataclasses import replace

from sqlalchemy import Connection, bindparam, select

from search.rows import FINAL_STATES, TrialRow
from search.store.codes import codes_of
from search.store.reading import trial_rows
from search.store.tables import Trial

Stamp = tuple[str, int]
"""State and newest attempt."""
Known = tuple[Stamp, TrialRow, TrialRow]
"""A row as it is stored, and with the code that tells it from the others of its study."""

MOST_STUDIES = 8
MOST_READ_SINGLY = 500
STAMPS = (
    select(Trial.id, Trial.state, Trial.attempt)
    .where(Trial.study_id == bindparam("study"))
    .order_by(Trial.number)
)


class KnownRows:
    """The rows of the studies that were read last, without curves and sums by document.

    Threads may share it: what one of them knows is replaced as a whole.
    """

    def __init__(self) -> None:
        self.studies: dict[int, dict[int, Known]] = {}

    def rows(self, connection: Connection, study_id: int) -> list[TrialRow]:
        """Return every trial of a study by number, as the connection's snapshot has it.

        What did not change is the very object of the last time, by which others know it again.
        """
        known = self.studies.get(study_id, {})
        stamps = {
            trial_id: (state, attempt)
            for trial_id, state, attempt in connection.execute(STAMPS, {"study": study_id})
        }
        settled = {
            trial_id: known[trial_id]
            for trial_id, stamp in stamps.items()
            if stamp[0] in FINAL_STATES and trial_id in known and known[trial_id][0] == stamp
        }
        unknown = stamps.keys() - settled.keys()
        only = unknown if len(unknown) <= MOST_READ_SINGLY else None
        read = trial_rows(connection, study_id, curves=False, only=only) if unknown else []
        now = settled | {row.id: (stamps[row.id], row, row) for row in read}
        stored = [now[trial_id][1] for trial_id in stamps]
        for row, code in zip(stored, codes_of(stored), strict=True):
            stamp, _, shown = now[row.id]
            if shown.code != code:
                now[row.id] = stamp, row, replace(row, code=code)
        self.keep(study_id, now)
        return [now[trial_id][2] for trial_id in stamps]

    def keep(self, study_id: int, rows: dict[int, Known]) -> None:
        """Remember a study's rows, and forget those of the study that was read longest ago."""
        studies = {key: value for key, value in self.studies.items() if key != study_id}
        oldest = list(studies)[: max(0, len(studies) + 1 - MOST_STUDIES)]
        for key in oldest:
            del studies[key]
        self.studies = {**studies, study_id: rows}
