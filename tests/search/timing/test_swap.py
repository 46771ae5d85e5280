"""Timing in turn, and from which length on a swap pays."""

import pytest
import torch

from search.timing.stopwatch import Stopwatch, interleaved, pass_of
from search.timing.swap import Swap, lengths_up_to, pays_from


def test__interleaved__several_calls__takes_them_in_turn_there_and_back_after_a_warm_up():
    order = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}

    def stopwatch(call):
        call()
        return float(len(order))

    seconds = interleaved(calls, stopwatch, rounds=2, warm_up=1)
    assert order == ["b", "a", "a", "b", "b", "a"]
    assert seconds == {"a": [3.0, 6.0], "b": [4.0, 5.0]}


@pytest.mark.parametrize("clock", ["wall", "processor"])
def test__stopwatch__busy_call__counts_its_seconds(clock):
    stopwatch = Stopwatch(torch.device("cpu"), clock)
    assert stopwatch(lambda: sum(range(100_000))) > 0.0


def test__pass_of__training__takes_gradients_of_input_and_parameters():
    seen = []

    class Spy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            return x * weight

        @staticmethod
        def backward(ctx, gradient):
            seen.append(ctx.needs_input_grad)
            return gradient, gradient

    weight = torch.ones(3, requires_grad=True)
    x = torch.ones(3)
    pass_of(lambda x: Spy.apply(x, weight), x, [weight], "training")()
    pass_of(lambda x: Spy.apply(x, weight), x, [weight], "forward")()
    assert seen == [(True, True)]
    assert weight.grad is None


def swap(seq_len, ratio, kind="training"):
    return Swap("sepconv", seq_len, 1, kind, 1.5, ratio, ratio, ratio, 1.0, ratio)


@pytest.mark.parametrize(
    ("ratios", "wanted"),
    [
        ({64: 0.5, 128: 1.1, 256: 1.3}, 128),
        ({64: 1.2, 128: 0.9, 256: 1.3}, 256),
        ({64: 1.2, 128: 1.1, 256: 0.9}, None),
        ({64: 1.0}, 64),
    ],
)
def test__pays_from__ratios_by_length__is_where_no_longer_one_is_slower(ratios, wanted):
    swaps = [swap(n, ratio) for n, ratio in ratios.items()]
    swaps.append(swap(512, 0.1, kind="forward"))
    assert pays_from(swaps, "training") == wanted


@pytest.mark.parametrize(
    ("seq_len", "wanted"), [(1, [1]), (64, [64]), (65, [64, 65]), (300, [64, 128, 256, 300])]
)
def test__lengths_up_to__a_length__are_powers_of_two_and_itself(seq_len, wanted):
    assert lengths_up_to(seq_len) == wanted
