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
    rows = [
        dataclasses.replace(
            row(n, stack, 1.0, phase="confirm", seed=1),
            state="completed" if accuracy is not None else state,
            seed_index=1,
            test={} if accuracy is None else {"loss": 1.0, "accuracy": accuracy},
        )
        for n, (stack, accuracy) in enumerate(accuracies.items())
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
        (0.21, 0.99, "fails recall", "fails recall (0.21 against 0.99 of all-attention)"),
        (0.98, 0.99, "solves recall", "solves recall (0.98 against 0.99 of all-attention)"),
        (0.98, 0.20, "solves recall", "solves recall (0.98 against 0.20 of all-attention)"),
        (0.21, 0.30, "inconclusive", "inconclusive (0.21): all-attention fails too (0.30)"),
        (0.21, None, "inconclusive", "inconclusive (0.21): all-attention gave no result"),
        (None, 0.99, "inconclusive", "inconclusive: the training of SSAA gave no result"),
    ],
)
def test__recall_of__pick_and_control__are_put_into_words(pick, control, word, text):
    found = answer({PICK: pick, REFERENCE: control}, state="failed")
    assert (found.recall.word, found.recall.text) == (word, text)
    [line] = section(found, None).lines
    assert line.startswith(f"SSAA {text}")
    assert any(text in caution for caution in cautions(found)) == (word == "fails recall")
    assert found.to_dict()["recall"]["accuracy"] == pick


def test__recall_of__attention_is_the_pick__is_its_own_control():
    assert answer({REFERENCE: 0.99}, pick=REFERENCE).recall.text == "solves recall (0.99)"
    assert answer({REFERENCE: 0.5}, pick=REFERENCE).recall.word == "inconclusive"


def test__recall_of__not_run_still_running_or_of_another_pick__says_nothing():
    assert answer().recall is None
    assert not section(answer(), None)
    assert answer({PICK: None, REFERENCE: 0.9}, state="running").recall is None
    assert answer({(S,) * 4: 0.2, REFERENCE: 0.9}).recall is None
