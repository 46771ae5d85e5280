"""The only place that joins strategies and store: reserve, propose, commit.

A claim is two short transactions with the thinking between them. *Reserve* checks the budget and
takes a number; *propose* asks the strategy over the rows, in no transaction; *commit* writes the
architecture under a unique constraint. On a conflict the phase is asked again, without the choices
that were refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mixers.config import MixerConfig
from search.engine.assignments import (
    Assignment,
    ClaimStore,
    Ended,
    LostClaimError,
    Reused,
    splits_of,
)
from search.engine.terms import Terms
from search.errors import InputError, RunFailedError
from search.phases import Agenda, Ask, Choice, phase_sources
from search.phases.rungs import first_stop, promotions
from search.rows import Claim, Counts, StudyRow, TrialRow
from search.spec.baselines import baselines
from search.spec.budget import Budget
from search.spec.listed import is_listed, n_trainings
from search.spec.space import Labels, Space
from search.spec.sweep import Sweep
from search.strategies.base import Strategy

if TYPE_CHECKING:
    from mixers.spec import EncoderSpec
    from search.spec.study import StudySpec

MAX_FRUITLESS = 100
FINGERPRINT = "mixsearch:data"
"""Among the notes about a study: the hash of the data it was begun with."""


class Claims:
    """Claims trials of one study for one worker.

    Args:
        store: The store.
        row: The study as the store has it.
        study: Its spec.
        strategy: Chooses the architectures of the search phase.
        budget: What may be spent.
        worker: The worker's id in the store.
        key_of: Returns the training key of an architecture under a recipe.
        flops_of: Returns the training FLOPs of an architecture.
        fingerprint: Hash of the data, kept with the study.
    """

    def __init__(
        self,
        store: ClaimStore,
        row: StudyRow,
        study: StudySpec,
        *,
        strategy: Strategy,
        budget: Budget,
        worker: int,
        key_of: Callable[[EncoderSpec, Mapping[str, float]], str],
        flops_of: Callable[[EncoderSpec], int],
        fingerprint: str,
    ) -> None:
        self.store = store
        self.study_id = row.id
        self.study = study
        self.budget = budget
        self.worker = worker
        self.key_of = key_of
        self.flops_of = flops_of
        self.fingerprint = fingerprint
        self.space = Space.of(study)
        self.baselines = baselines(study)
        self.sweep = Sweep.of(study)
        self.sources = {source.phase: source for source in phase_sources(study, strategy)}

    def next(self) -> Assignment | Reused | Ended:
        """Returns the next trial to run, or why there is none.

        Raises:
            InputError: A queued trial cannot be built any more; it went back to the queue.
        """
        for _ in range(MAX_FRUITLESS):
            rows = self.store.rows(self.study_id, curves=False)
            agenda = self._agenda(rows)
            terms = Terms(self.budget, agenda, promotions(rows, self.study))
            offer = self.store.claim(self.study_id, self.worker, terms)
            claim = offer.claim
            if claim is None:
                return self._end(agenda, rows, offer.counts)
            try:
                found = self._queued(claim) or self._fresh(claim, self._latest(rows, offer.counts))
            except LostClaimError:
                continue
            except BaseException:
                # A trial that never began gives its number back; a queued one its place.
                self.store.release(claim, claim.spec is None, "the claim was not completed")
                raise
            if found is not None:
                return found
        raise RunFailedError(
            f"{MAX_FRUITLESS} claims in a row led to no trial; other workers may be racing for the "
            "last architectures: run the command again"
        )

    def _agenda(self, rows: Sequence[TrialRow]) -> Agenda:
        open_phases = {source.phase for source in self.sources.values() if source.is_open(rows)}
        return Agenda(
            len(self.baselines),
            frozenset(open_phases),
            is_listed(self.study),
            n_recipe=0 if self.sweep is None else len(tuple(self.sweep.runs())),
        )

    def _end(self, agenda: Agenda, rows: Sequence[TrialRow], counts: Counts | None) -> Ended:
        if counts is None:
            state = self.store.study(self.study_id).state
            return Ended("stopped", f"the study is {state}; it hands out no trial")
        if is_listed(self.study) and not agenda.open_phases:
            return Ended("space used up", self._list_end(rows))
        if not self.budget.is_used_up(counts):
            return Ended("space used up", self._space_end(agenda))
        return self._budget_end()

    def _space_end(self, agenda: Agenda) -> str:
        n = self.space.size
        within = " within the limits" if self.space.is_limited else ""
        more = "raise a limit, or add choices or layers" if within else "add choices or layers"
        trained = f"all {n} architectures" if n > 1 else "the only architecture"
        trained += f" of the space{within} {'are' if n > 1 else 'is'} trained"
        if "confirm" not in agenda.open_phases:
            return f"{trained}; {more} to go on"
        return (
            f"{trained} and confirmation has had its share of the budget; raise --budget to "
            f"confirm more, {more} to search on"
        )

    def _list_end(self, rows: Sequence[TrialRow]) -> str:
        n_all, n_done = n_trainings(self.study), len(rows)
        if n_done >= n_all:
            return f"all {n_all} trainings are done"
        return (
            f"{n_done} of {n_all} trainings are done; the others are of architectures that ran out "
            "of memory"
        )

    def _budget_end(self) -> Ended:
        return Ended("budget", f"the budget of {self.budget} is used up; raise --budget to go on")

    def _queued(self, claim: Claim) -> Assignment | None:
        if claim.spec is None:
            return None
        from mixers.explain import load
        from mixers.spec import EncoderSpec

        try:
            spec = load(EncoderSpec, dict(claim.spec))
        except ValueError as error:
            raise InputError(
                f"trial {claim.number} waits to be trained but cannot be built any more: {error}; "
                "install what is missing, or start a study under another name",
                command="--name NEW",
            ) from None
        seed_index = claim.seed_index or 0
        seed = self.study.seed + seed_index if claim.seed is None else claim.seed
        key = self.key_of(spec, claim.recipe)
        return Assignment(claim, spec, seed, seed_index, claim.role, claim.recipe, key, claim.until)

    def _latest(self, rows: Sequence[TrialRow], counts: Counts | None) -> Sequence[TrialRow]:
        """Returns the rows, read again unless nobody claimed since or is choosing now."""
        alone = counts is not None and counts.started == len(rows)
        if alone and all(row.state != "proposed" for row in rows):
            return rows
        return self.store.rows(self.study_id, curves=False)

    def _fresh(self, claim: Claim, rows: Sequence[TrialRow]) -> Assignment | Reused | Ended | None:
        """Proposes and commits; None when the claim's phase had nothing left after all."""
        source = self.sources[claim.phase]
        ahead = sum(
            row.state == "proposed" and row.phase == claim.phase and row.number < claim.number
            for row in rows
        )
        ask = Ask(claim.number, notes=self._sampler_notes(), ahead=ahead)
        while (choice := source.choose(rows, ask)) is not None:
            settled = self._settle(claim, choice)
            if settled is not None:
                return settled
            notes = ask.notes if choice.study_attrs is None else choice.study_attrs
            ask = replace(ask, refused=ask.refused | {choice.key}, notes=notes)
        self.store.release(claim, True, "nothing left to do in this phase")
        return None

    def _sampler_notes(self) -> dict[str, Any]:
        notes = dict(self.store.study(self.study_id).attrs)
        notes.pop(FINGERPRINT, None)
        return notes

    def _settle(self, claim: Claim, choice: Choice) -> Assignment | Reused | Ended | None:
        """Commits a choice; None when another worker was first."""
        spec = self.study.encoder_spec(self._mixers(choice.labels))
        seed = self.study.seed + choice.seed_index
        until = first_stop(self.study, claim.phase)
        flops = self.flops_of(spec)
        if until is not None:
            flops = flops * until // self.study.training.steps
        key = self.key_of(spec, choice.recipe)
        outcome = self.store.commit(
            claim,
            spec,
            seed=seed,
            seed_index=choice.seed_index,
            training_key=key,
            role=choice.role,
            params=self.space.params(choice.labels) or {},
            attrs=dict(choice.attrs),
            study_attrs={**(choice.study_attrs or {}), FINGERPRINT: self.fingerprint},
            recipe=choice.recipe,
            flops=flops,
            most_flops=self.budget.most_flops,
            splits=splits_of(claim.phase),
            until=until,
        )
        if outcome == "no room":
            self.store.release(claim, True, "the next training does not fit into the budget")
            return Ended(
                "budget",
                f"the next training needs {self.budget.words(flops)}, more than the budget of "
                f"{self.budget} has left; raise --budget to go on",
            )
        if outcome == "lost":
            raise LostClaimError
        if outcome == "duplicate":
            return None
        if outcome == "reused":
            return Reused(claim.trial_id)
        return Assignment(
            claim, spec, seed, choice.seed_index, choice.role, choice.recipe, key, until
        )

    def _mixers(self, labels: Labels) -> tuple[MixerConfig, ...]:
        if labels in self.space:
            return self.space.mixers(labels)
        for baseline in self.baselines:
            if baseline.labels == labels:
                return baseline.mixers
        from mixers.notation import parse_architecture

        return tuple(config for label in labels for config in parse_architecture(label))
