import pytest

from search.errors import InputError
from search.rows import Counts
from search.spec.budget import Budget, duration_words, training_flops


def counts(started=0, busy_s=0.0, flops=0):
    return Counts(by_phase={"search": started}, started=started, busy_s=busy_s, flops=flops)


@pytest.mark.parametrize(
    ("text", "unit", "amount"),
    [
        ("20", "trials", 20),
        (20, "trials", 20),
        (" 7 ", "trials", 7),
        ("90s", "seconds", 90),
        ("30m", "seconds", 1800),
        ("2h", "seconds", 7200),
        ("1.5H", "seconds", 5400),
        ("1h30m", "seconds", 5400),
        ("1d", "seconds", 86400),
        ("3e15flop", "flops", 3e15),
        ("3E+9 FLOPs", "flops", 3e9),
        ("250flop", "flops", 250),
    ],
)
def test__budget__what_people_write__is_read(text, unit, amount):
    assert Budget.parse(text) == Budget(unit, amount)


@pytest.mark.parametrize(
    "text",
    [
        *("0", "banana", "", "-3", "0m", "0flop", "3.5", "2 hours", "1e3", "h", "nan", "1e999flop"),
        "9" * 5000,
        *(True, 1.5, None),
    ],
)
def test__budget__nonsense_or_nothing__is_refused_with_examples(text):
    with pytest.raises(InputError, match=r"20 \(trials\)") as caught:
        Budget.parse(text)
    assert caught.value.exit_code == 2
    assert len(str(caught.value).splitlines()) == 1


def test__budget__spending__is_counted_in_its_own_unit():
    used = counts(started=5, busy_s=70.0, flops=900)
    for text, spent in (("6", 5), ("2m", 70.0), ("1e3flop", 900)):
        assert Budget.parse(text).spent(used) == spent
        assert not Budget.parse(text).is_used_up(used)
    for text in ("5", "3", "70s", "900flop"):
        assert Budget.parse(text).is_used_up(used)


def test__training_flops__small_numbers__are_three_times_forward():
    assert training_flops(10, steps=4, batch_size=5) == 3 * 10 * 4 * 5


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3.14159, "3.14 s"), (89, "89 s"), (120, "2 min"), (5400, "1 h 30 min"), (7200, "2 h")],
)
def test__duration_words__spans__read_naturally(seconds, text):
    assert duration_words(seconds) == text


def test__budget__in_words__names_amount_and_unit():
    assert [str(Budget.parse(t)) for t in ("20", "1", "30m", "3e15flop")] == [
        "20 trials",
        "1 trial",
        "30 min",
        "3e+15 FLOPs",
    ]
