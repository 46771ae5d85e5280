"""Keeping the lease of a trial alive while it is trained."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from search.errors import AccessError
from search.rows import Claim, StudyState
from search.workers.contract import WorkerStore

BEATS_PER_LEASE = 4
RESTING: dict[StudyState, str] = {
    "paused": "the study was paused",
    "stopped": "the study was stopped",
}
LOST = "another worker took the trial over"


class Lease:
    """Beats from a thread of its own for as long as the block runs.

    Args:
        store: The store.
        claim: The trial.
        every_s: Seconds between two beats; a quarter of the lease at most.
    """

    def __init__(self, store: WorkerStore, claim: Claim, every_s: float) -> None:
        self.store = store
        self.claim = claim
        self.every_s = min(every_s, claim.lease_s / BEATS_PER_LEASE)
        self.reason: str | None = None
        """Why the trial should end: it was taken over, its study rests, or the token is refused."""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    @property
    def is_lost(self) -> bool:
        """Whether another worker has the trial."""
        return self.reason == LOST

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._done.wait(self.every_s):
            try:
                state = self.store.heartbeat(self.claim)
            except AccessError as error:
                self.reason = str(error)
                return
            except Exception:
                continue  # Whatever it was, the next beat may come through.
            if state is None:
                self.reason = LOST
                return
            self.reason = RESTING.get(state)
