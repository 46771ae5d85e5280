"""What a study asks, reduced to the facts that the answer needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from search.spec.limits import Limit, limits_of
from search.spec.measures import Measure

if TYPE_CHECKING:
    from search.spec.study import StudySpec
    from search.spec.sweep import Sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The facts of a study that turn rows into an answer.

    Attributes:
        objective: name of the metric that ranks.
        unit: the objective's unit; that of ``tolerance`` too.
        direction: whether low or high values are good.
        tolerance: the loss that a cheaper architecture may cost.
        n_layers: full depth.
        reference: notation of the reference mixer (attention).
        cheap: notation of the cheap mixer that the baselines use.
        seed: the study's seed; the exploration seed.
        measures: the objectives, the one that ranks first; empty where it is alone.
        limits: what an architecture may cost at most.
        match: what the feed-forward widths make equal: ``none``, ``params`` or ``flops``.
        metrics: other recorded metrics, shown beside the objective.
        space_size: number of architectures of the space, None if unknown.
        steps: training steps of a trial; None where an own objective trains nothing.
        validations: equally spaced readings of the selection split.
        task: what was trained on what, in words.
        size: the encoder's size, in words.
        recipe: the training recipe, in words.
        sweep: the sweep of learning rates, None where one recipe was used for all.
        is_listed: the study trained a list with the same seeds, so nothing was chosen by results.
        seeds: how many seeds each architecture of a list has; None without a list.
    """

    objective: str
    unit: str
    direction: Literal["minimize", "maximize"]
    tolerance: float
    n_layers: int
    reference: str
    cheap: str
    seed: int = 0
    measures: tuple[Measure, ...] = ()
    limits: tuple[Limit, ...] = ()
    match: Literal["none", "params", "flops"] = "none"
    metrics: tuple[str, ...] = ()
    space_size: int | None = None
    steps: int | None = None
    validations: int | None = None
    task: str = ""
    size: str = ""
    recipe: str = ""
    sweep: Sweep | None = None
    is_listed: bool = False
    seeds: int | None = None

    @property
    def sign(self) -> float:
        """+1 where low values are good, -1 where high ones are: value x sign is a loss."""
        return 1.0 if self.direction == "minimize" else -1.0


def question_of(study: StudySpec) -> Question:
    """Reads the facts from a study's spec."""
    from search.spec.baselines import cheap_mixer, reference_mixer
    from search.spec.listed import is_listed, n_stacks, seeds_of
    from search.spec.space import Space, layer_labels
    from search.spec.sweep import Sweep  # its package's other modules need this one
    from search.tasks.objective import ObjectiveConfig

    reference, cheap = layer_labels([reference_mixer(study), cheap_mixer(study)], study)
    facts: dict[str, Any] = {
        "objective": study.objective,
        "unit": study.unit,
        "direction": study.direction,
        "tolerance": study.tolerance,
        "n_layers": study.encoder.n_layers,
        "reference": reference,
        "cheap": cheap,
        "seed": study.seed,
        "measures": study.measures if len(study.objectives) > 1 else (),
        "limits": limits_of(study),
        "match": study.match,
        "metrics": tuple(n for n in study.trained_metrics if n != study.objective),
        "space_size": n_stacks(study) if is_listed(study) else Space.of(study).size,
        "sweep": Sweep.of(study),
        "is_listed": is_listed(study),
        "seeds": seeds_of(study) if is_listed(study) else None,
    }
    if isinstance(study.task, ObjectiveConfig):
        task = f"own objective {study.task.name}"
        return Question(task=task, size=_layers(study), **facts)
    return Question(**facts, **_training_facts(study))


def _training_facts(study: StudySpec) -> dict[str, Any]:
    training, sizes = study.training, study.sizes
    matched = "" if study.match == "none" else f", d_ff chosen for equal {study.match}"
    source = getattr(getattr(study.task, "data", None), "source", None)
    return {
        "steps": training.steps,
        "validations": training.validations,
        "task": f"{study.task.kind} on {source}" if source else str(study.task.kind),
        "size": (
            f"{_layers(study)}, d_model {study.encoder.d_model}, "
            f"{sizes.max_seq_len} tokens, vocabulary {sizes.vocab_size}{matched}"
        ),
        "recipe": (
            f"AdamW, peak learning rate {training.learning_rate:g}, "
            f"{training.warmup_fraction:.0%} warm-up, batch {training.batch_size}"
        ),
    }


def _layers(study: StudySpec) -> str:
    n = study.encoder.n_layers
    return f"{n} layer{'' if n == 1 else 's'}"
