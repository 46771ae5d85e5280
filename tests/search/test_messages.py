import math
import subprocess
import sys

import numpy as np
import pytest
from pydantic import ValidationError

from search.messages import (
    Costs,
    ProbeReading,
    Progress,
    Report,
    Timing,
    TrialFailure,
    TrialResult,
)

SHAPE = {"batch_size": 1, "seq_len": 8, "device": "cpu", "dtype": "float32"}


def result() -> TrialResult:
    timing = Timing.of([0.1, 0.2], **SHAPE)
    return TrialResult(
        outcome="completed",
        reason="",
        steps=2,
        sequences=4,
        seconds=1.5,
        evaluations={"test": {"loss": 1.25}},
        costs=Costs(params=3, flops=4, step_s=timing, latency_s=None, peak_memory_bytes=5),
        probes=(ProbeReading(readings={"probe": 0.1, "D_ctx": None}),),
        proof=None,
        environment={"python": "3"},
    )


@pytest.mark.parametrize("n", [1, 2, 3, 10, 101])
def test__timing_of__samples__equals_numpys_quantiles(n):
    samples = np.random.default_rng(n).exponential(size=n)
    timing = Timing.of(samples.tolist(), **SHAPE)
    expected = np.quantile(samples, [0.1, 0.5, 0.9])
    np.testing.assert_allclose([timing.low, timing.median, timing.high], expected, rtol=1e-12)
    assert timing.n == n


def test__timing_of__no_samples__refused():
    with pytest.raises(ValueError, match="at least one sample"):
        Timing.of([], **SHAPE)


def test__result__json_round_trip__equal():
    assert TrialResult.model_validate_json(result().model_dump_json()) == result()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test__C41__messages__non_finite_number__refused(bad):
    with pytest.raises(ValidationError, match="finite"):
        Report(step=1, split="selection", metrics={"loss": bad})
    with pytest.raises(ValidationError, match="finite"):
        ProbeReading(readings={"probe": bad})
    with pytest.raises(ValidationError, match="finite"):
        TrialResult.model_validate(result().model_dump() | {"evaluations": {"test": {"loss": bad}}})


def test__messages__unknown_field__refused():
    with pytest.raises(ValidationError, match="stepz"):
        Progress(step=1, steps=2, stepz=3)


def test__trial_failure__message_of_two_lines__refused():
    with pytest.raises(ValidationError, match="match"):
        TrialFailure(cause="error", message="one\ntwo")


def test__messages__import__leaves_torch_out():
    code = "import sys, search.messages; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
