import os
import subprocess
import sys

import pytest


@pytest.mark.slow
def test__trial_benchmark__few_steps__curves_equal_and_a_breakdown(tmp_path):
    command = [sys.executable, "-m", "benchmarks.trial", "--steps", "6", "--pairs", "1"]
    done = subprocess.run(
        [*command, "--cache", str(tmp_path)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "curves equal" in done.stdout
    for stage in ("train", "evaluate", "probe", "proof", "latency", "whole"):
        assert f"\n  {stage} " in done.stdout
