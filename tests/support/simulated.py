"""Rows of a study that was never trained: true means, seed noise, the phases of a real run."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.replay import spend
from search.answers.answer import Answer, make_answer
from search.answers.question import Question
from search.phases import Ask, Choice
from search.phases.baseline import BaselinePhase
from search.phases.finalists import finalists, turns
from search.phases.history import trained_labels
from search.rows import Phase, TrialRow
from search.spec.baselines import Baseline
from search.spec.space import Space
from search.spec.study import LimitsSpec

ATTENTION = "attention(rotary=true)"
MIXERS = (ATTENTION, "sepconv", "bproj", "average", "hardmax_shift")
SYMBOLS = {ATTENTION: "A", "sepconv": "S", "bproj": "B", "average": "M", "hardmax_shift": "H"}

Layers = tuple[str, ...]


def question(**changes: Any) -> Question:
    """The default study's question, changed."""
    facts: dict[str, Any] = {
        "objective": "loss",
        "unit": "nats",
        "direction": "minimize",
        "tolerance": 0.02,
        "n_layers": 4,
        "reference": ATTENTION,
        "cheap": "sepconv",
        "metrics": ("accuracy",),
        "space_size": 625,
        "steps": 600,
        "validations": 6,
        "task": "mlm on sotu",
        "size": "4 layers, d_model 64, 64 tokens, vocabulary 512",
        "recipe": "AdamW, peak learning rate 0.012, 30% warm-up, batch 32",
    }
    return Question(**(facts | changes))


def listed_baselines(n_layers: int = 4, mixers: Sequence[str] = MIXERS) -> dict[str, Layers]:
    """The baselines' layers by role, in their order."""
    reference, cheap = mixers[0], mixers[1]
    half = n_layers // 2
    rest = n_layers - half
    return {
        "reference": (reference,) * n_layers,
        "cheap": (cheap,) * n_layers,
        "first_half_cheap": (cheap,) * half + (reference,) * rest,
        "last_half_cheap": (reference,) * rest + (cheap,) * half,
        "cheap_short": (cheap,) * half,
        "reference_short": (reference,) * half,
        **{f"uniform:{mixer}": (mixer,) * n_layers for mixer in mixers[2:]},
    }


def row(number: int, mixers: Sequence[str], loss: float | None = None, **fields: Any) -> TrialRow:
    """A completed trial with a loss on the selection split (and on test when confirming)."""
    layers = tuple(mixers)
    given: dict[str, Any] = {
        "id": number + 1,
        "study": "simulated",
        "number": number,
        "phase": "search",
        "state": "completed",
        "arch_id": "-".join(layers),
        "code": "".join(SYMBOLS.get(mixer, "?") for mixer in layers),
        "notation": ", ".join(layers),
        "mixers": layers,
        "n_layers": len(layers),
    }
    if loss is not None:
        given["selection"] = {"loss": loss}
        if fields.get("phase") == "confirm":
            given["test"] = {"loss": loss}
    return TrialRow(**(given | fields))


class Simulation:
    """A study whose architectures have known true means.

    Args:
        mean: True objective of an architecture.
        sd: Repeat SD of an architecture.
        asked: The question; its tolerance, direction and depth are used.
        seed: Seed of the simulated noise and of the random strategy.
        mixers: Choices of every layer, the reference first.
    """

    def __init__(
        self,
        mean: Callable[[Layers], float],
        sd: Callable[[Layers], float],
        *,
        asked: Question | None = None,
        seed: int = 0,
        mixers: Sequence[str] = MIXERS,
    ) -> None:
        self.asked = asked or question()
        self.mean, self.sd, self.mixers = mean, sd, tuple(mixers)
        self.generator = np.random.default_rng(seed)
        self.baselines = listed_baselines(self.asked.n_layers, self.mixers)
        self.rows: list[TrialRow] = []

    def run(self, budget: int) -> Answer:
        """Spends a budget of trials phase by phase and answers."""
        phases = (
            BaselinePhase([Baseline(role, (), layers) for role, layers in self.baselines.items()]),
            DrawnPhase(self),
            RepeatPhase(self),
        )
        spend(budget, phases, len(self.baselines), self.train_choice)
        return self.answer()

    def train_choice(self, choice: Choice, phase: Phase, number: int) -> TrialRow:
        """Adds the row of a phase's choice."""
        index = choice.seed_index
        self.train(choice.labels, phase=phase, role=choice.role, seed=index, seed_index=index)
        return self.rows[-1]

    def train(self, layers: Layers, **fields: Any) -> None:
        """Adds the row of one run."""
        value = self.mean(layers) + self.sd(layers) * self.generator.standard_normal()
        steps = [(100 * k, value + (6 - k) * 0.3) for k in range(1, 7)]
        cost = sum(2.0 if mixer == self.mixers[0] else 1.0 for mixer in layers)
        given = {
            "curve": tuple(steps),
            "seconds": 30.0,
            "params": int(100_000 * cost),
            "flops": int(1e7 * cost),
            "step_s": 0.01 * cost,
            "latency_s": 0.004 * cost,
            "probe": 1e-3 * (1.0 + self.generator.random()),
            "steps": 600,
            "selection": {self.asked.objective: value, "accuracy": 0.3},
        }
        if fields["phase"] == "confirm":
            given["test"] = {self.asked.objective: value + 0.01, "accuracy": 0.29}
        self.rows.append(row(len(self.rows), layers, **(given | fields)))

    def chosen(self) -> Sequence[Any]:
        """The finalists, by the rule of a real run."""
        study = SimpleNamespace(
            objective=self.asked.objective,
            direction=self.asked.direction,
            encoder=SimpleNamespace(n_layers=self.asked.n_layers),
            limits=LimitsSpec(),
        )
        space = Space(({mixer: mixer for mixer in self.mixers},) * self.asked.n_layers)
        listed = [Baseline(role, (), layers) for role, layers in self.baselines.items()]
        return finalists(study, space, listed, self.rows)

    def answer(self) -> Answer:
        """Answers from the rows so far."""
        return make_answer(
            self.rows,
            self.asked,
            {finalist.role: finalist.labels for finalist in self.chosen()},
            mixers=self.mixers,
            baselines=self.baselines,
            device="cpu",
        )


class DrawnPhase:
    """Search by uniform draws from the simulation's own generator."""

    phase: Phase = "search"

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation

    def is_open(self, rows: Sequence[TrialRow]) -> bool:
        """Spaces of simulations are never used up."""
        return True

    def choose(self, rows: Sequence[TrialRow], ask: Ask) -> Choice:
        """Draws until an architecture is not trained yet."""
        made, trained = self.simulation, trained_labels(rows)
        while True:
            drawn = made.generator.choice(made.mixers, size=made.asked.n_layers)
            layers = tuple(drawn.tolist())
            if layers not in trained:
                return Choice(layers)


class RepeatPhase:
    """Repeats of the finalists in the turns of a real run."""

    phase: Phase = "confirm"

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation

    def is_open(self, rows: Sequence[TrialRow]) -> bool:
        """Whether there is a finalist."""
        return bool(self.simulation.chosen())

    def choose(self, rows: Sequence[TrialRow], ask: Ask) -> Choice | None:
        """The finalist whose turn it is."""
        turn = next(turns(self.simulation.chosen(), rows), None)
        return None if turn is None else Choice(turn[0].labels, turn[0].role, turn[1])
