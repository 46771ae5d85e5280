"""Lightning as a trial uses it: nothing printed, no signal taken, no file written."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytorch_lightning as pl
import torch
from lightning_fabric.plugins.environments.lightning import LightningEnvironment

if TYPE_CHECKING:
    from search.devices import Precision


def trainer(device: str, precision: Precision) -> pl.Trainer:
    """One epoch on one device, with everything off that a trial does not need."""
    target = torch.device(device)
    made = pl.Trainer(
        accelerator="gpu" if target.type == "cuda" else "cpu",
        devices=[target.index or 0] if target.type == "cuda" else 1,
        precision="bf16-mixed" if precision == "bf16" else "32-true",
        # Inside a SLURM job Lightning would otherwise check and use the job's settings.
        plugins=[LightningEnvironment()],
        max_epochs=1,
        use_distributed_sampler=False,
        barebones=True,
    )
    # Signals belong to whoever owns the process. Lightning would turn SIGTERM into an exit, and
    # its restoring of all handlers would undo those that Python does not know, as faulthandler's.
    made._signal_connector.register_signal_handlers = lambda: None  # type: ignore[method-assign]
    return made


@contextlib.contextmanager
def quiet_lightning() -> Iterator[None]:
    """Silences Lightning's remarks on how it was set up, and restores the loggers."""
    names = (
        "pytorch_lightning",
        "pytorch_lightning.utilities.rank_zero",
        "lightning_fabric",
        "lightning_fabric.utilities.rank_zero",
    )
    levels = {name: logging.getLogger(name).level for name in names}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"pytorch_lightning\..*|lightning_fabric\..*")
        for name in names:
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            yield
        finally:
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)


@contextlib.contextmanager
def kept_interrupt_handler() -> Iterator[None]:
    """Gives back the handler of Ctrl-C, which Lightning replaces for good when it sees one.

    Raises:
        KeyboardInterrupt: in place of the ``sys.exit(1)`` into which Lightning turns it.
    """
    on_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as exit_:
        if isinstance(exit_.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
    finally:
        if on_main and handler is not None:
            signal.signal(signal.SIGINT, handler)
