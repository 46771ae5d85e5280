"""Until when `search worker` works, and on which devices."""

from types import SimpleNamespace

import pytest

from search.cli import worker
from search.errors import InputError


@pytest.mark.parametrize(
    ("option", "job_ends", "expected"),
    [
        (None, None, float("inf")),
        (None, "5600", 100.0 + 600 - worker.SLURM_MARGIN_S),
        (None, "never", float("inf")),
        ("45m", "5600", 100.0 + 45 * 60),
    ],
)
def test__end_of__option_or_batch_job__the_monotonic_time(monkeypatch, option, job_ends, expected):
    clocks = SimpleNamespace(monotonic=lambda: 100.0, time=lambda: 5000.0)
    monkeypatch.setattr(worker, "time", clocks)
    monkeypatch.delenv(worker.SLURM_END, raising=False)
    if job_ends is not None:
        monkeypatch.setenv(worker.SLURM_END, job_ends)
    assert worker.end_of(option) == expected


def test__options__that_make_no_sense__refused_by_name():
    assert worker.gpu_numbers("0, 2") == [0, 2]
    with pytest.raises(InputError, match="--gpus x"):
        worker.gpu_numbers("x")
    with pytest.raises(InputError, match="--for 20"):
        worker.end_of("20")
