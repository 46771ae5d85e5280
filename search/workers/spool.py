"""Results that could not be delivered: kept on disk until the store is back.

A file is written only when the store does not answer, or answers that it cannot. The worker goes on
trying; should it be killed meanwhile, the next worker of the same store delivers the file. A result
that comes after its lease was lost is kept by the store as a late one, so a delivery twice or too
late does no harm.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from mixers.config import FrozenModel
from search.errors import AccessError, StoreAwayError, StoreError
from search.messages import Message, TrialFailure, TrialResult
from search.rows import Claim
from search.workers.contract import WorkerStore
from search.workers.patience import Patience

ENDING = ".delivery.json"


class Delivery(FrozenModel):
    """How an attempt ended, as the store is to be told.

    ``result`` or ``failure`` end the trial; with neither it goes back to the queue for ``reason``.
    ``reports`` are what the trial told while the store was away.
    """

    claim: Claim
    result: TrialResult | None = None
    failure: TrialFailure | None = None
    reason: Annotated[str, Field(max_length=1000)] = ""
    reports: tuple[Message, ...] = ()

    def send(self, store: WorkerStore) -> bool:
        """Tells the store; returns whether the trial has ended by it."""
        if self.reports:
            store.report(self.claim, self.reports)
        if self.result is not None:
            return store.finish(self.claim, self.result)
        if self.failure is not None:
            return store.fail(self.claim, self.failure) == "failed"
        store.release(self.claim, False, self.reason)
        return False


DELIVERY = TypeAdapter(Delivery)


class Spool:
    """A folder of deliveries that wait for the store.

    Args:
        folder: Made when it is first needed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def deliver(self, delivery: Delivery, store: WorkerStore, patience: Patience) -> bool:
        """Tells the store, however long it is away; returns whether the trial has ended by it.

        Raises:
            StoreAwayError: A stop was asked for while the store was away; the delivery is on disk.
            AccessError: The service refuses the token; the delivery is on disk.
            StoreError: The store cannot be used; the delivery is on disk.
        """
        try:
            return delivery.send(store)
        except StoreAwayError as error:
            path = self.keep(delivery)
            patience.tell(f"{error}; what came of trial {delivery.claim.number} is in {path}")
            has_ended = patience(lambda: delivery.send(store))
            path.unlink(missing_ok=True)
            return has_ended
        except (AccessError, StoreError):
            self.keep(delivery)
            raise

    def keep(self, delivery: Delivery) -> Path:
        """Writes a delivery to disk, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        claim = delivery.claim
        path = self.folder / f"trial-{claim.trial_id}-attempt-{claim.token}{ENDING}"
        beside = path.with_suffix(".part")
        with beside.open("wb") as file:
            file.write(DELIVERY.dump_json(delivery))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        return path

    def send_all(self, store: WorkerStore) -> int:
        """Delivers what earlier workers left; returns how many deliveries that were.

        Raises:
            StoreAwayError: The store does not answer.
        """
        sent = 0
        for path in sorted(self.folder.glob(f"*{ENDING}")):
            try:
                delivery = DELIVERY.validate_json(path.read_bytes())
            except FileNotFoundError:
                continue  # Another worker was quicker.
            except ValidationError:
                path.replace(path.with_suffix(".unreadable"))
                continue
            delivery.send(store)
            path.unlink(missing_ok=True)
            sent += 1
        return sent
