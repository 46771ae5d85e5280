"""The answer of a listed study: every architecture of the list held against all-attention.

All of them have the same seeds and are read on the same splits. The pick is the best mean on the
selection split; its test reading is of the same runs, so luck of its seeds is not gone. What makes
its verdict hold all the same is the family: all contrasts of the list are corrected together,
whichever of them one looks at.
"""

from __future__ import annotations

from collections.abc import Sequence

from search.answers.arms import Arm, Finalists, arms_of
from search.answers.family import Family
from search.answers.question import Question
from search.answers.verdicts import Contrast, compare, judged
from search.rows import TrialRow
from search.spec.limits import are_within
from search.spec.space import Labels


def chosen_of_list(rows: Sequence[TrialRow], question: Question) -> dict[str, Labels]:
    """Returns pick, reference, shorter model and rival of a listed study, those that there are.

    The rival is the best of full depth beside pick and reference. Where nothing listed has full
    depth, the pick is the best of any. Where the study has limits, all but the reference keep them.
    """
    trained = _ranked(arms_of(rows, question), question)
    ranked = [arm for arm in trained if are_within(arm.rows, question.limits)]
    full = [arm.mixers for arm in ranked if arm.n_layers == question.n_layers]
    shorter = [arm.mixers for arm in ranked if arm.n_layers < question.n_layers]
    reference = (question.reference,) * question.n_layers
    pick = next(iter(full or (arm.mixers for arm in ranked)), None)
    found = {
        "pick": pick,
        "reference": reference if any(arm.mixers == reference for arm in trained) else None,
        "shorter": next((labels for labels in shorter if labels != pick), None),
        "rival": next((labels for labels in full if labels not in (pick, reference)), None),
    }
    return {name: labels for name, labels in found.items() if labels is not None}


def contrasts_of_list(
    arms: Sequence[Arm], finalists: Finalists, question: Question, family: Family
) -> tuple[Contrast, ...]:
    """Holds every architecture against all-attention; the candidate first, then by selection."""
    reference = finalists.reference
    if reference is None:
        return ()
    others = [arm for arm in _ranked(arms, question) if arm.arch_id != reference.arch_id]
    others.sort(key=lambda arm: arm is not finalists.candidate)
    return judged([compare("reference", arm, reference) for arm in others], question, family)


def _ranked(arms: Sequence[Arm], question: Question) -> list[Arm]:
    scored = [
        (question.sign * mean, arm) for arm in arms if (mean := arm.selection_mean) is not None
    ]
    return [arm for _, arm in sorted(scored, key=lambda pair: pair[0])]
