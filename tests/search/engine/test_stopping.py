"""Signals come whenever they like, also while something is being written."""

import io
import signal

import pytest

from search.engine.stopping import StopFlag, stop_on_signals


class Interrupted(io.RawIOBase):
    """A stream in the midst of whose first writing a signal comes."""

    def __init__(self):
        self.written = b""

    def writable(self):
        return True

    def write(self, data):
        if not self.written:
            self.written = b"> "
            signal.raise_signal(signal.SIGINT)
        self.written += bytes(data)
        return len(data)


@pytest.fixture
def stream():
    raw = Interrupted()
    return raw, io.TextIOWrapper(io.BufferedWriter(raw), write_through=True)


def test__stop_on_signals__signal_while_a_line_is_written__both_lines_are_whole(stream):
    raw, lines = stream
    flag = StopFlag()

    def say(text):
        lines.write(f"{text}\n")
        lines.flush()

    with stop_on_signals(flag, say):
        say("step 1 of 8")
        assert flag.is_interrupted
    first, second = raw.written.decode().splitlines()
    assert first == "> step 1 of 8"
    assert second.startswith("stopping at the next step")


def test__stop_on_signals__second_signal__ends_the_run_and_former_handlers_come_back():
    before = signal.getsignal(signal.SIGINT)
    said = []
    flag = StopFlag()

    def run():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), stop_on_signals(flag, said.append):
        run()
    assert len(said) == 1
    assert signal.getsignal(signal.SIGINT) is before


def test__stop_on_signals__nobody_reads_what_is_announced__stops_all_the_same():
    def say(text):
        raise BrokenPipeError

    flag = StopFlag()
    with stop_on_signals(flag, say):
        signal.raise_signal(signal.SIGINT)
    assert flag.reason == "interrupted"
