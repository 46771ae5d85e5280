"""What the recall check says of the pick, with all-attention as the control."""

import dataclasses

import pytest
from simulated import ATTENTION, question, row

from search.answers.answer import make_answer
from search.answers.lengths import Derived
from search.report.cautions import cautions
from search.report.recall import section

A, S = ATTENTION, "sepconv"
PICK, REFERENCE = (S, S, A, A), (A,) * 4
ROLES = {"pick": PICK, "reference": REFERENCE}


def recall_study(accuracies, *, state="completed"):
    runs = [
        (stack, seed, accuracy)
        for stack, of_stack in accuracies.items()
        for seed, accuracy in enumerate(of_stack, 1)
    ]
    rows = [
        dataclasses.replace(
            row(n, stack, 1.0, phase="confirm", seed=seed),
            state="completed" if accuracy is not None else state,
            seed_index=seed,
            test={} if accuracy is None else {"loss": 1.0, "accuracy": accuracy},
        )
        for n, (stack, seed, accuracy) in enumerate(runs)
    ]
    asked = question(is_listed=True, steps=300)
    return Derived("recall", asked, 64, rows, labels_at=lambda labels: labels)


def answer(accuracies=None, *, pick=PICK, **options):
    rows = [row(0, pick, 2.0), row(1, REFERENCE, 2.1)]
    derived = () if accuracies is None else (recall_study(accuracies, **options),)
    chosen = {"pick": pick, "reference": REFERENCE}
    return make_answer(rows, question(), chosen, mixers=[A, S], baselines={}, derived=derived)


@pytest.mark.parametrize(
    ("pick", "control", "word", "text"),
    [
        (
            (0.21, 0.4, 0.3),
            (0.99, 0.2, 0.98),
            "fails recall",
            "fails recall with 0 of 3 seeds (0.21, 0.40, 0.30); "
            "all-attention with 2 of 3 seeds (0.99, 0.20, 0.98)",
        ),
        (
            (0.98, 0.4),
            (0.99, 0.95),
            "solves recall",
            "solves recall with 1 of 2 seeds (0.98, 0.40); "
            "all-attention with 2 of 2 seeds (0.99, 0.95)",
        ),
        (
            (0.98,),
            (0.20,),
            "solves recall",
            "solves recall with 1 of 1 seed (0.98); all-attention with 0 of 1 seed (0.20)",
        ),
        (
            (0.21,),
            (0.30,),
            "inconclusive",
            "inconclusive with 0 of 1 seed (0.21): all-attention fails too with 0 of 1 seed (0.30)",
        ),
        (
            (0.21, None),
            (None, None),
            "inconclusive",
            "inconclusive with 0 of 1 seed (0.21): all-attention gave no result",
        ),
        (
            (None,),
            (0.99,),
            "inconclusive",
            "inconclusive: the training of SSAA gave no result",
        ),
    ],
)
def test__recall_of__pick_and_control__are_put_into_words(pick, control, word, text):
    found = answer({PICK: pick, REFERENCE: control}, state="failed")
    assert (found.recall.word, found.recall.text) == (word, text)
    [line] = section(found, None).lines
    assert line == f"SSAA {text}; accuracy on test, 300 steps"
    assert found.to_dict()["recall"]["accuracies"] == [one for one in pick if one is not None]


@pytest.mark.parametrize(
    ("pick", "control", "warned"),
    [
        ((0.2, 0.2), (0.2, 0.99), True),
        ((0.2, 0.99), (0.99, 0.99), True),
        ((0.99, 0.99), (0.2, 0.99), False),
        ((0.2, 0.2), (0.3, 0.3), False),
    ],
)
def test__cautions__fewer_seeds_than_attention__are_one(pick, control, warned):
    found = answer({PICK: pick, REFERENCE: control})
    assert any("recall" in caution for caution in cautions(found)) == warned


def test__recall_of__attention_is_the_pick__is_its_own_control():
    found = answer({REFERENCE: (0.99,)}, pick=REFERENCE).recall
    assert found.text == "solves recall with 1 of 1 seed (0.99)"
    assert not found.falls_short
    assert answer({REFERENCE: (0.5,)}, pick=REFERENCE).recall.word == "inconclusive"


def test__recall_of__not_run_still_running_or_of_another_pick__says_nothing():
    assert answer().recall is None
    assert not section(answer(), None)
    assert answer({PICK: (None,), REFERENCE: (0.9,)}, state="running").recall is None
    assert answer({(S,) * 4: (0.2,), REFERENCE: (0.9,)}).recall is None
