"""Can the pick look things up? Its accuracy on associative recall, beside all-attention's.

Loss on text cannot rank mixers by this: few of its tokens call for it, and on them attention is at
home. All-attention is the control: where it fails too, the training was too short to tell. One seed
may solve what another does not, so the best of the seeds says whether a stack can.
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
        accuracies: of the pick on test, by seed; empty where it has no result.
        controls: of all-attention; empty where it has none.
        solved: accuracy from which on the task counts as solved.
        steps: training steps.
        word: the finding; ``inconclusive`` where all-attention fails too, or a result is missing.
    """

    pick: str
    reference: str
    accuracies: tuple[float, ...]
    controls: tuple[float, ...]
    solved: float
    steps: int
    word: Word

    @property
    def text(self) -> str:
        """The finding as printed."""
        if not self.accuracies:
            return f"{self.word}: the training of {self.pick} gave no result"
        if self.pick == self.reference:
            return f"{self.word} {self._seeds(self.accuracies)}"
        if self.word == "inconclusive":
            of_attention = f"fails too {self._seeds(self.controls)}"
            why = of_attention if self.controls else "gave no result"
            return f"inconclusive {self._seeds(self.accuracies)}: all-attention {why}"
        control = f"; all-attention {self._seeds(self.controls)}" if self.controls else ""
        return f"{self.word} {self._seeds(self.accuracies)}{control}"

    @property
    def falls_short(self) -> bool:
        """Whether the pick solves it with fewer seeds than all-attention."""
        return self._n_solved(self.accuracies) < self._n_solved(self.controls)

    def _n_solved(self, accuracies: Sequence[float]) -> int:
        return sum(accuracy >= self.solved for accuracy in accuracies)

    def _seeds(self, accuracies: Sequence[float]) -> str:
        """How many seeds solve it, and their accuracies."""
        seeds = "seed" if len(accuracies) == 1 else "seeds"
        listed = ", ".join(f"{accuracy:.2f}" for accuracy in accuracies)
        return f"with {self._n_solved(accuracies)} of {len(accuracies)} {seeds} ({listed})"


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
    accuracies, controls = (_accuracies(arms.get(labels)) for labels in (pick, reference))
    return Recall(
        pick=ended[pick].code,
        reference=ended[reference].code if reference in ended else "all-attention",
        accuracies=accuracies,
        controls=controls,
        solved=solved,
        steps=found.question.steps or 0,
        word=_word(accuracies, controls, solved, is_control=pick == reference),
    )


def _accuracies(arm: Arm | None) -> tuple[float, ...]:
    found = [value_of(row.test, METRIC) for row in arm.rows] if arm else []
    return tuple(accuracy for accuracy in found if accuracy is not None)


def _word(
    accuracies: Sequence[float], controls: Sequence[float], solved: float, *, is_control: bool
) -> Word:
    if max(accuracies, default=0.0) >= solved:
        return "solves recall"
    control_solves = max(controls, default=0.0) >= solved
    if not accuracies or not control_solves or is_control:
        return "inconclusive"
    return "fails recall"
