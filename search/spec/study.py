"""The study spec: one document that says what is searched, on what, and how trials are trained.

A study is the task, the encoder around the mixers, the space of choices, the objective, the
training recipe, the strategy, the baselines, the tolerance and the seed. The budget is not part
of it: the same study goes on under a larger one. Everything that can be known before training is
checked when the document is read, so that a wrong study never spends any of its budget.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from mixers.activation import Activation
from mixers.config import FrozenModel, Items, MixerConfig, Since, canonical_json
from mixers.notation import MOST_LAYERS
from mixers.spec import AnyMixer, BlockSpec, Conflict, EncoderSpec, fitted
from search.tasks.base import TaskConfig, TaskSizes
from search.tasks.objective import StudyTasks

if TYPE_CHECKING:
    from search.spec.measures import Measure

DEFAULT_REFERENCE = "attention"
DEFAULT_CHEAP = "sepconv"


def expand_notation(items: Any) -> Any:
    """Turns notation such as ``"sepconv(kernel_size=9)"`` among the items into configs."""
    if isinstance(items, str):
        items = [items]
    if not isinstance(items, list | tuple):
        return items
    from mixers.notation import parse_architecture

    expanded: list[Any] = []
    for item in items:
        if isinstance(item, str) and not item.replace("_", "").replace(".", "").isalnum():
            expanded += parse_architecture(item)
        else:
            expanded.append(item)
    return expanded


def default_choices() -> tuple[MixerConfig, ...]:
    """Returns the five mixers of the default space; attention compares rotated positions."""
    from mixers.notation import parse_architecture

    return parse_architecture("attention(rotary=true), sepconv, bproj, average, hardmax_shift")


Choices = Annotated[Items[AnyMixer], BeforeValidator(expand_notation)]
StudyTask = Annotated[TaskConfig, StudyTasks()]


def default_task() -> TaskConfig:
    """Returns masked language modelling on the embedded corpus."""
    from search.tasks.base import task_registry

    config: TaskConfig = task_registry().load("mlm").config_type.model_validate({"kind": "mlm"})
    return config


class Section(FrozenModel):
    """A part of a study spec; the text under each field describes it in schemas and files."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class EncoderTemplate(Section):
    """The encoder that every architecture of the study shares; the mixers fill its blocks."""

    d_model: Annotated[int, Field(ge=1)] = 64
    """Features per token."""
    n_layers: Annotated[int, Field(ge=1, le=MOST_LAYERS)] = 4
    """Blocks of every architecture of the space; by default those of the deepest listed one."""
    d_ff: Annotated[int, Field(ge=0)] = 256
    """Width of the feed-forward layers; 0 = none."""
    activation: Activation = "gelu"
    """Activation of the feed-forward layers: gelu, relu or a piecewise-linear function."""
    norm: Literal["pre", "post", "none"] = "pre"
    """Where LayerNorm stands: before each sub-layer, after each residual sum, or nowhere."""
    positions: Literal["learned", "sinusoidal", "none"] = "learned"
    """What is added to the embeddings for every mixer; rotary is a field of the mixers."""
    scale_embeddings: bool = True
    """Multiply token embeddings by sqrt(d_model); BERT does not."""
    embedding_norm: bool = False
    """LayerNorm over the summed embeddings."""
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """Dropout rate after the embeddings and on each update."""
    norm_eps: Annotated[float, Field(gt=0.0)] = 1e-5
    """Epsilon of every LayerNorm."""
    bias: bool = True
    """Whether the feed-forward layers have biases."""
    causal: Annotated[bool, Since(3)] = False
    """Whether no token sees a later one; mixers that cannot, and task mlm, are refused."""

    def stack(self, mixers: Sequence[MixerConfig], sizes: TaskSizes, d_ff: int) -> EncoderSpec:
        """Puts mixers, first layer first, into this encoder.

        Args:
            mixers: One config per layer.
            sizes: Sizes that the data decides.
            d_ff: Width of the feed-forward layers.

        Raises:
            pydantic.ValidationError: A mixer does not fit the sizes.
        """
        return EncoderSpec(
            vocab_size=sizes.vocab_size,
            d_model=self.d_model,
            max_seq_len=sizes.max_seq_len,
            n_segments=sizes.n_segments,
            norm=self.norm,
            positions=self.positions,
            scale_embeddings=self.scale_embeddings,
            embedding_norm=self.embedding_norm,
            dropout=self.dropout,
            norm_eps=self.norm_eps,
            causal=self.causal,
            blocks=tuple(
                BlockSpec(mixer=mixer, d_ff=d_ff, activation=self.activation, bias=self.bias)
                for mixer in mixers
            ),
        )


class LayerChoices(Section):
    """Choices of one layer that differ from those of the others."""

    layer: Annotated[int, Field(ge=0)]
    """Index of the layer, from 0 at the input."""
    choices: Choices
    """Mixers to choose from at this layer."""


class SpaceSpec(Section):
    """Which mixers each layer chooses from."""

    choices: Choices = Field(default_factory=default_choices)
    """Mixers to choose from at every layer that `layers` does not name."""
    layers: Items[LayerChoices] = ()
    """Layers with choices of their own."""
    architectures: Annotated[Items[str], Since(2)] = ()
    """Whole stacks in notation, of any depth: what strategy `listed` trains, choices left out."""


class TrainingSpec(Section):
    """How every trial is trained; one recipe for all architectures."""

    steps: Annotated[int, Field(ge=1)] = 600
    """Optimiser steps."""
    batch_size: Annotated[int, Field(ge=1)] = 32
    """Sequences per step."""
    learning_rate: Annotated[float, Field(gt=0.0)] = 1.2e-2
    """Peak learning rate of AdamW."""
    sweep_rates: Annotated[Items[Annotated[float, Field(gt=0.0)]], Since(2)] = ()
    """Peak rates that `recipe: sweep` tries; none = half of, once and twice the learning rate."""
    warmup_fraction: Annotated[float, Field(ge=0.0, le=1.0)] = 0.3
    """Share of the steps during which the learning rate rises; afterwards it falls."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.01
    """Weight decay of AdamW."""
    gradient_clip: Annotated[float, Field(ge=0.0)] = 1.0
    """Largest norm of the gradient; 0 = no clipping."""
    validations: Annotated[int, Field(ge=1)] = 6
    """Readings of the selection split, equally spaced, the last at the end."""
    precision: Literal["auto", "32", "bf16"] = "auto"
    """Number format: auto takes bf16 on GPUs that have it, 32 bits elsewhere."""


class StrategySpec(Section):
    """How the next architecture is chosen."""

    name: str = "tpe"
    """Name of the strategy: an Optuna sampler, screen (a design first), exhaustive or listed."""
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """The strategy's own options."""


class BaselineSpec(Section):
    """The pure stacks that everything is compared with, each a choice named by kind or notation."""

    reference: str = DEFAULT_REFERENCE
    """The mixer to be replaced; the default also stands outside the space."""
    cheap: str = DEFAULT_CHEAP
    """Its replacement in the baselines; without sepconv among the choices, the first other one."""


class LimitsSpec(Section):
    """What an architecture may cost at most; what is known before training is checked before."""

    max_params: Annotated[float | None, Field(gt=0.0)] = None
    """Trainable parameters."""
    max_flops: Annotated[float | None, Field(gt=0.0)] = None
    """FLOPs of one forward pass of one sequence."""
    max_latency: Annotated[float | None, Field(gt=0.0)] = None
    """Seconds of a forward pass of a batch."""
    min_throughput: Annotated[float | None, Field(gt=0.0)] = None
    """Sequences per second of a forward pass of a batch."""
    max_peak_memory: Annotated[float | None, Field(gt=0.0)] = None
    """Bytes."""
    max_loss: Annotated[float | None, Field(gt=0.0)] = None
    """Loss on the selection split."""
    min_accuracy: Annotated[float | None, Field(ge=0.0, le=1.0)] = None
    """Accuracy on the selection split."""


class StudySpec(Section):
    """A study: what is searched, on which task, under which recipe."""

    schema_version: Literal[1] = 1
    """Version of this format."""
    task: StudyTask = Field(default_factory=default_task)
    """What the encoders are trained for, with its data."""
    encoder: EncoderTemplate = EncoderTemplate()
    """The encoder around the mixers."""
    space: SpaceSpec = Field(default_factory=SpaceSpec)
    """The choices of each layer."""
    objectives: Annotated[Items[str], Field(min_length=1)] = ("loss",)
    """What is to be good: the first, a metric, ranks and has the verdicts; all make the front."""
    metrics: Items[str] = ("accuracy",)
    """Metrics recorded beside the objective."""
    limits: Annotated[LimitsSpec, Since(2)] = LimitsSpec()
    """What an architecture may cost at most."""
    match: Annotated[Literal["none", "params", "flops"], Since(2)] = "none"
    """Give each architecture the feed-forward width at which it costs as much as the reference."""
    training: TrainingSpec = TrainingSpec()
    """The recipe of every trial."""
    recipe: Annotated[Literal["shared", "sweep"], Since(2)] = "shared"
    """One learning rate for all, or a sweep of the pure stacks' rates first."""
    recall: Annotated[bool, Since(2)] = True
    """Whether the pick is also trained, in a short form, on associative recall."""
    strategy: StrategySpec = StrategySpec()
    """How the next architecture is chosen."""
    rungs: Annotated[Items[Annotated[int, Field(ge=1)]], Since(3)] = ()
    """Steps after which trials of the search are compared and only the best go on; none = off."""
    reduction: Annotated[int, Field(ge=2), Since(3)] = 3
    """Of so many trials at a rung one goes on."""
    baselines: BaselineSpec = BaselineSpec()
    """The pure stacks to compare with."""
    tolerance: Annotated[float, Field(gt=0.0)] = 0.02
    """How much worse than the reference still counts as equal, in the objective's unit."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Seed of the study; repeats train with seed + 1, seed + 2, and so on."""

    @model_validator(mode="after")
    def check_as_a_whole(self) -> Self:
        """Resolves the choices for the study's sizes and checks what no field shows alone."""
        from search.spec.listed import resolved_architectures
        from search.spec.study_checks import problems, resolved_space

        # The model is frozen for everybody else; resolved choices are part of its validation.
        if self.space.architectures:
            self.__dict__["space"], self.__dict__["encoder"] = resolved_architectures(self)
        self.__dict__["space"] = resolved_space(self)
        found: list[InitErrorDetails] = [
            InitErrorDetails(
                type=PydanticCustomError("does_not_fit", "{problem}", {"problem": problem}),
                loc=path,
                input=None,
            )
            for path, problem in problems(self)
        ]
        if found:
            raise ValidationError.from_exception_data("StudySpec", found)
        return self

    def with_recipe(self, recipe: Mapping[str, float]) -> StudySpec:
        """The study that trains with these fields changed; itself where there are none."""
        if not recipe:
            return self
        fields = {**self.training.model_dump(), "sweep_rates": (), **recipe}
        training = TrainingSpec.model_validate(fields)
        return self.model_copy(update={"training": training, "recipe": "shared"})

    @property
    def objective(self) -> str:
        """Name of the metric that ranks."""
        return self.objectives[0]

    @property
    def direction(self) -> Literal["minimize", "maximize"]:
        """Whether a lower or a higher objective is better."""
        return self.measures[0].direction

    @property
    def unit(self) -> str:
        """Unit of the objective and of the tolerance."""
        return self.measures[0].unit

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What the objectives stand for."""
        from search.spec.measures import measure_of

        return tuple(measure_of(self, name) for name in self.objectives)

    @property
    def trained_metrics(self) -> tuple[str, ...]:
        """Names of the metrics among objectives and metrics: what a trial is read on."""
        costs = {measure.name for measure in self.measures if measure.origin != "metric"}
        return tuple(n for n in dict.fromkeys((*self.objectives, *self.metrics)) if n not in costs)

    @property
    def sizes(self) -> TaskSizes:
        """Sizes that the task's data decides."""
        return self.task.sizes

    @property
    def mixer_sizes(self) -> dict[str, int]:
        """Sizes that a mixer's config is resolved for, as `MixerConfig.resolve` takes them."""
        return {"d_model": self.encoder.d_model, "max_seq_len": self.sizes.max_seq_len}

    def fitted(self, config: MixerConfig) -> tuple[MixerConfig, list[Conflict]]:
        """Returns a config resolved for the study's sizes, and what does not fit."""
        sizes = self.mixer_sizes
        return fitted(
            config,
            d_model=sizes["d_model"],
            max_seq_len=sizes["max_seq_len"],
            causal=self.encoder.causal,
        )

    @property
    def default_name(self) -> str:
        """The study's name unless one is given: task and 8 hex digits of its canonical JSON."""
        return f"{self.task.kind}-{hashlib.sha256(canonical_json(self).encode()).hexdigest()[:8]}"

    def encoder_spec(self, mixers: Sequence[MixerConfig]) -> EncoderSpec:
        """Puts mixers, first layer first, into the study's encoder.

        Args:
            mixers: One config per layer; the number of layers is theirs.

        Raises:
            pydantic.ValidationError: A mixer does not fit the sizes.
            ValueError: No feed-forward width gives the stack the cost that `match` asks for.
        """
        from search.spec.matching import d_ff_of

        return self.encoder.stack(mixers, self.sizes, d_ff_of(self, mixers))
