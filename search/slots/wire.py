"""The lines between a slot and its training process: one JSON message per line, both ways."""

from __future__ import annotations

import socket
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from mixers.config import FrozenModel
from search.messages import Message, PlanTiming, TrialConfig, TrialFailure, TrialResult


class Run(FrozenModel):
    """Slot to child: run a trial; with ``plan_steps``, only time that many of its steps."""

    type: Literal["run"] = "run"
    config: TrialConfig
    plan_steps: int | None = None


class Stop(FrozenModel):
    """Slot to child: end the running trial at its next step boundary."""

    type: Literal["stop"] = "stop"
    reason: str


class Ready(FrozenModel):
    """Child to slot: everything is imported; what the process takes when idle."""

    type: Literal["ready"] = "ready"
    resident_bytes: int


class Told(FrozenModel):
    """Child to slot: what a trial says while it runs."""

    type: Literal["told"] = "told"
    message: Message


class Done(FrozenModel):
    """Child to slot: how the job ended, and what the process takes afterwards."""

    type: Literal["done"] = "done"
    outcome: TrialResult | TrialFailure | PlanTiming
    resident_bytes: int


ANSWERS: TypeAdapter[Ready | Told | Done] = TypeAdapter(
    Annotated[Ready | Told | Done, Field(discriminator="type")]
)


class Lines:
    """Whole lines out of a stream socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._rest = b""

    def receive(self) -> list[bytes] | None:
        """The lines that one read completes; None when the other side is gone."""
        try:
            data = self.connection.recv(1 << 16)
        except OSError:
            return None
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines

    def send(self, message: FrozenModel) -> None:
        """Writes one message.

        Raises:
            OSError: the other side is gone.
        """
        self.connection.sendall(message.model_dump_json().encode() + b"\n")
