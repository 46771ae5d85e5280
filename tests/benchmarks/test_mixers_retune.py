"""The table of back ends changes where another is clearly faster, and nowhere else."""

import random

from benchmarks.mixers_retune import settled

ROUNDS = 21


def noisy(generator, milliseconds):
    return [milliseconds * generator.uniform(0.93, 1.07) for _ in range(ROUNDS)]


def test__settled__back_ends_within_noise__keeps_the_one_that_stands_every_time():
    generator = random.Random(0)
    for stands in ("direct", "blocks", "fft"):
        for _ in range(50):
            seconds = {name: noisy(generator, 5.0) for name in ("direct", "blocks", "fft")}
            assert settled(stands, seconds, "cell") == stands


def test__settled__another_takes_seven_tenths__replaces_it_and_stays(capsys):
    generator = random.Random(0)
    for _ in range(50):
        seconds = {"direct": noisy(generator, 10.0), "blocks": noisy(generator, 7.0)}
        assert settled("direct", seconds, "cell") == "blocks"
        assert settled("blocks", seconds, "cell") == "blocks"
    assert "cell: blocks, was direct" in capsys.readouterr().out


def test__settled__faster_in_some_rounds_only__keeps_the_one_that_stands():
    seconds = {"direct": [10.0] * ROUNDS, "fft": [5.0] * 14 + [12.0] * 7}
    assert settled("direct", seconds, "cell") == "direct"
