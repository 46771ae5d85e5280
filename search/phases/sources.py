"""The phases of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.phases.base import PhaseSource
from search.phases.baseline import BaselinePhase
from search.phases.confirm import ConfirmPhase
from search.phases.exploration import SearchPhase
from search.phases.listed import ListedPhase
from search.phases.recipe import RecipePhase
from search.phases.screen import ScreenPhase
from search.spec.baselines import baselines
from search.spec.listed import is_listed
from search.spec.space import Space
from search.spec.sweep import Sweep
from search.strategies.base import DesignStrategy, Strategy

if TYPE_CHECKING:
    from search.spec.study import StudySpec


def phase_sources(study: StudySpec, strategy: Strategy) -> tuple[PhaseSource, ...]:
    """Returns the phases of a study, in the order in which a budget gets to them."""
    if is_listed(study):
        return (ListedPhase(study),)
    space, listed = Space.of(study), baselines(study)
    screen = (ScreenPhase(study, space, strategy),) if isinstance(strategy, DesignStrategy) else ()
    sweep = Sweep.of(study)
    recipe = (RecipePhase(sweep),) if sweep is not None else ()
    return (
        BaselinePhase(listed),
        *recipe,
        *screen,
        SearchPhase(study, space, strategy),
        ConfirmPhase(study, space, listed),
    )
