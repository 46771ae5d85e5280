"""The answer of a study: everything that its rows allow to be said, as plain data.

Pure functions on rows; no SQL, no printing. `search.report` puts it into words, `search.figures`
draws it, the service shows it: none of them computes a number of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from search.answers.arms import arms_of, finalists_of
from search.answers.bounds import Bounds, bounds_of
from search.answers.costs import Cost, Saving, costs_of, savings_of
from search.answers.design import Design, design_of
from search.answers.effects import (
    CountRow,
    LayerEffect,
    Position,
    counts_of,
    layer_effects_of,
    position_of,
)
from search.answers.exploratory import layer_rows
from search.answers.family import CONFIRMATORY, Family
from search.answers.leaders import Leader, at_own_rate, leaders_of
from search.answers.lengths import Derived, Lengths, lengths_of
from search.answers.listing import chosen_of_list, contrasts_of_list
from search.answers.noise import Noise, noise_of
from search.answers.pareto import Front, front_of
from search.answers.predictors import Predictors, predictors_of
from search.answers.question import Question, question_of
from search.answers.ranks import Lead, Ranks, lead_of, ranks_of
from search.answers.recall import Recall, recall_of
from search.answers.recipe import RecipeCheck, at_shared_recipe, check_recipe
from search.answers.shrinkage import Shrinkage, shrinkage_of
from search.answers.speedup import SpeedUp, speed_up_of
from search.answers.spent import WITHOUT_RESULT, Spent, spent_of
from search.answers.verdicts import (
    UNDECIDED,
    Beats,
    Contrast,
    contrasts_of,
    hybrid_beats_all,
    verdict_rows,
)
from search.rows import FINAL_STATES, TrialRow, VerdictRow
from search.spec.space import Labels

if TYPE_CHECKING:
    from search.spec.study import StudySpec


@dataclass(frozen=True, slots=True)
class Reach:
    """What the answer holds for and what it leaves open.

    Attributes:
        n_trained: architectures of the study with a finished run.
        untested: roles of the baselines that the budget left out.
        failed: roles of those whose runs ended without a result.
        unconfirmed: codes of the stacks whose confirmation runs all ended without a result.
        device: where it was measured, None if unknown.
    """

    n_trained: int
    untested: tuple[str, ...]
    failed: tuple[str, ...]
    unconfirmed: tuple[str, ...]
    device: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """All that a study's rows say; see the classes of the parts for units and signs.

    ``pick``, ``reference``, ``shorter`` and ``rival`` are architecture ids; a pure pick has the
    same mixer in every layer. ``route`` is how far the pick's stack carries information (see
    `search.store.routes`). ``reference_at_own_rate`` is all-attention at the best rate of a sweep,
    where that is not the study's own.
    """

    question: Question
    family: Family
    pick: str | None
    reference: str | None
    shorter: str | None
    rival: str | None
    pick_is_pure: bool
    route: Mapping[str, Any] | None
    hybrid_beats_all: Beats
    contrasts: tuple[Contrast, ...]
    leaders: tuple[Leader, ...]
    reference_at_own_rate: Leader | None
    noise: Noise
    counts: tuple[CountRow, ...]
    position: Position | None
    layers: tuple[LayerEffect, ...]
    design: Design | None
    ranks: Ranks
    lead: Lead | None
    shrinkage: Shrinkage | None
    costs: tuple[Cost, ...]
    savings: tuple[Saving, ...]
    bounds: Bounds
    pareto: Front
    speed_up: SpeedUp | None
    recipe: RecipeCheck | None
    predictors: Predictors
    spent: Spent
    reach: Reach
    lengths: Lengths | None = None
    recall: Recall | None = None

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values that strict JSON takes (no NaN, no infinity)."""
        document: dict[str, Any] = _plain(asdict(self))
        for contrast, entry in zip(self.contrasts, document["contrasts"], strict=True):
            entry["verdict"]["text"] = contrast.verdict.text
        return document

    def verdict_rows(self) -> tuple[VerdictRow, ...]:
        """Rows of the table ``verdicts``."""
        confirmatory = verdict_rows(self.contrasts, self.question)
        return (*confirmatory, *layer_rows(self.layers, self.question))


def answer_study(
    rows: Sequence[TrialRow],
    study: StudySpec,
    *,
    device: str | None = None,
    look: int = 1,
    derived: Sequence[Derived] = (),
) -> Answer:
    """Answers a study from its rows.

    Args:
        rows: all trials of the study.
        study: its spec.
        device: where the costs were measured, for the reader.
        look: which answer of this study it is: 1, and one more after each raise of the budget.
        derived: the studies that repeat its finalists elsewhere.
    """
    from search.spec.baselines import baselines
    from search.spec.space import Space

    question = question_of(study)
    listed = () if question.is_listed else baselines(study)
    return make_answer(
        rows,
        question,
        chosen_of(rows, study),
        mixers=tuple(Space.of(study).choices),
        baselines={baseline.role: baseline.labels for baseline in listed},
        device=device,
        look=look,
        derived=derived,
    )


def chosen_of(rows: Sequence[TrialRow], study: StudySpec) -> Mapping[str, Labels]:
    """Returns the layers of the finalists by role: pick, reference, shorter, rival."""
    from search.phases.finalists import finalists
    from search.spec.baselines import baselines
    from search.spec.space import Space

    question = question_of(study)
    if question.is_listed:
        return chosen_of_list(rows, question)
    found = finalists(study, Space.of(study), baselines(study), rows)
    return {finalist.role: finalist.labels for finalist in found}


def make_answer(
    rows: Sequence[TrialRow],
    question: Question,
    chosen: Mapping[str, Labels],
    *,
    mixers: Sequence[str],
    baselines: Mapping[str, Sequence[str]],
    device: str | None = None,
    look: int = 1,
    derived: Sequence[Derived] = (),
) -> Answer:
    """Answers a question from rows; provisional while one of them is not final.

    Args:
        rows: all trials of the study.
        question: the study's facts.
        chosen: notation of the layers of each finalist, by name.
        mixers: notations of the choices, for the effects of single layers.
        baselines: notation of the layers of each listed baseline, by role.
        device: where the costs were measured.
        look: which answer of the study this is, counted from 1.
        derived: the studies that repeat its finalists elsewhere.
    """
    of_list = max(1, (question.space_size or 1) - 1)
    family = Family(
        layer_contrasts=question.n_layers * len(set(mixers) - {question.reference}),
        look=look,
        provisional=any(row.state not in FINAL_STATES for row in rows),
        confirmatory=of_list if question.is_listed else CONFIRMATORY,
    )
    every_row, rows = rows, at_shared_recipe(rows)
    arms = arms_of(rows, question)
    finalists = finalists_of(arms, chosen, question)
    noise = noise_of(arms, question)
    leaders = leaders_of(arms, finalists, question)
    if question.is_listed:
        contrasts = contrasts_of_list(arms, finalists, question, family)
    else:
        contrasts = contrasts_of(finalists, question, family)
    at_shared_rate = contrasts
    contrasts, recipe = check_recipe(every_row, finalists, contrasts, question, family)
    trained = {arm.mixers for arm in arms}
    without_result = {row.mixers for row in rows if row.state in WITHOUT_RESULT} - trained
    missing = {
        role: tuple(layers) for role, layers in baselines.items() if tuple(layers) not in trained
    }
    return Answer(
        question=question,
        family=family,
        pick=finalists.pick.arch_id if finalists.pick else None,
        reference=finalists.reference.arch_id if finalists.reference else None,
        shorter=finalists.shorter.arch_id if finalists.shorter else None,
        rival=finalists.rival.arch_id if finalists.rival else None,
        pick_is_pure=finalists.pick is not None and finalists.pick.is_uniform,
        route=finalists.pick.route if finalists.pick else None,
        hybrid_beats_all=UNDECIDED
        if question.is_listed
        else hybrid_beats_all(finalists, contrasts, question),
        contrasts=contrasts,
        leaders=leaders,
        reference_at_own_rate=at_own_rate(every_row, leaders, question),
        noise=noise,
        counts=counts_of(arms, question),
        position=position_of(rows, question, noise),
        layers=layer_effects_of(rows, question, mixers, family.layer_level),
        design=design_of(rows, question, finalists.pick.mixers if finalists.pick else None, family),
        ranks=ranks_of(arms),
        lead=lead_of(finalists, question),
        shrinkage=shrinkage_of(arms, finalists, noise.typical_sd, question),
        costs=costs_of(finalists),
        savings=savings_of(finalists),
        bounds=bounds_of(arms, finalists.reference, question),
        pareto=front_of(arms, question),
        speed_up=speed_up_of(finalists, contrasts),
        recipe=recipe,
        recall=recall_of(chosen, derived, question),
        predictors=predictors_of(arms, question),
        spent=spent_of(every_row),
        reach=Reach(
            n_trained=len(arms),
            untested=tuple(role for role in missing if missing[role] not in without_result),
            failed=tuple(role for role in missing if missing[role] in without_result),
            unconfirmed=_unconfirmed(rows),
            device=device,
        ),
        lengths=lengths_of(chosen, at_shared_rate, derived, question),
    )


def _unconfirmed(rows: Sequence[TrialRow]) -> tuple[str, ...]:
    repeats = [row for row in rows if row.phase == "confirm" and row.code]
    hopeful = {row.mixers for row in repeats if row.state not in WITHOUT_RESULT}
    return tuple(dict.fromkeys(row.code for row in repeats if row.mixers not in hopeful))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_plain_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _plain_key(key: Any) -> str:
    """A key of JSON; the layers of a stack as its notation, such as ``sepconv*2, attention``."""
    if not isinstance(key, tuple):
        return str(key)
    layers = ((label, len([*same])) for label, same in groupby(key))
    return ", ".join(label if n == 1 else f"{label}*{n}" for label, n in layers)
