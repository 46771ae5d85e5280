"""Can the pick look things up? Its accuracy on associative recall, beside all-attention's.

Loss on text cannot rank mixers by this: few of its tokens call for it, and on them attention is at
home. All-attention is the control: where it fails too, the training was too short to tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from search.answers.arms import Arm, arms_of, value_of
from search.answers.lengths import Derived
from search.answers.question import Question
from search.rows import FINAL_STATES
from search.spec.recall import SOLVED
from search.spec.space import Labels

PURPOSE = "recall"
METRIC = "accuracy"

Word = Literal["solves recall", "fails recall", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Recall:
    """What the short recall task says of the pick.

    Attributes:
        pick: the pick's code.
        reference: all-attention's code.
        accuracy: of the pick on test; None where it has no result.
        control: of all-attention; None where it has none.
        solved: accuracy from which on the task counts as solved.
        steps: training steps.
        word: the finding; ``inconclusive`` where all-attention fails too, or a result is missing.
    """

    pick: str
    reference: str
    accuracy: float | None
    control: float | None
    solved: float
    steps: int
    word: Word

    @property
    def text(self) -> str:
        """The finding as printed."""
        if self.accuracy is None:
            return f"{self.word}: the training of {self.pick} gave no result"
        if self.pick == self.reference:
            return f"{self.word} ({self.accuracy:.2f})"
        if self.word == "inconclusive":
            why = "gave no result" if self.control is None else f"fails too ({self.control:.2f})"
            return f"inconclusive ({self.accuracy:.2f}): all-attention {why}"
        control = "" if self.control is None else f" against {self.control:.2f} of all-attention"
        return f"{self.word} ({self.accuracy:.2f}{control})"


def recall_of(
    roles: Mapping[str, Labels],
    derived: Sequence[Derived],
    question: Question,
    solved: float = SOLVED,
) -> Recall | None:
    """Reads the newest recall study; None where the present pick was not trained on it.

    Args:
        roles: layers of the finalists, as the base study has them.
        derived: the derived studies.
        question: the base study's facts.
        solved: accuracy from which on the task counts as solved.
    """
    found = next((one for one in derived if one.purpose == PURPOSE), None)
    if found is None or "pick" not in roles:
        return None
    pick = found.labels_at(roles["pick"])
    reference = found.labels_at((question.reference,) * question.n_layers)
    ended = {row.mixers: row for row in found.rows if row.state in FINAL_STATES}
    if pick not in ended:
        return None
    arms = {arm.mixers: arm for arm in arms_of(found.rows, found.question)}
    accuracy, control = (_accuracy(arms.get(labels)) for labels in (pick, reference))
    return Recall(
        pick=ended[pick].code,
        reference=ended[reference].code if reference in ended else "all-attention",
        accuracy=accuracy,
        control=control,
        solved=solved,
        steps=found.question.steps or 0,
        word=_word(accuracy, control, solved, is_control=pick == reference),
    )


def _accuracy(arm: Arm | None) -> float | None:
    return value_of(arm.rows[0].test, METRIC) if arm else None


def _word(
    accuracy: float | None, control: float | None, solved: float, *, is_control: bool
) -> Word:
    if accuracy is not None and accuracy >= solved:
        return "solves recall"
    control_solves = control is not None and control >= solved
    if accuracy is None or not control_solves or is_control:
        return "inconclusive"
    return "fails recall"
