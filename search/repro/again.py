"""Trains a stored trial again and says whether the same came out.

On the processor a training is bitwise repeatable for the same machine, versions and number of
threads. Where one of these differs, or its steps are compiled, rounding differs, and training
carries it on as far as another seed would: there the objective has to lie in the interval that
repeats of other seeds suggest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from search.engine.needs import plugins_of, uses_local_classes
from search.engine.preparing import prepare, refuse_other_data
from search.errors import InputError, NothingThereError, RunFailedError
from search.messages import Message, Report, TrialFailure, TrialResult
from search.repro.comparison import Compared, Fact, compare, differing, other_plugins
from search.repro.interval import Interval, interval_of
from search.tasks.objective import ObjectiveConfig
from search.training.environment import COMPILED

if TYPE_CHECKING:
    from mixers.spec import EncoderSpec
    from search.messages import TrialConfig
    from search.rows import StudyRow, TrialRow
    from search.settings import Settings
    from search.spec.study import StudySpec
    from search.store.repo import Store

Verdict = Literal["bitwise", "inside", "outside", "different", "unknown"]
Watch = Callable[[int, Mapping[str, float]], None]


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """What a second training of a trial gave.

    Attributes:
        study: Name of the study.
        number: The trial's number.
        verdict: `bitwise`: every number is the same. `inside`: the environment is another one and
            the objective lies in the interval. `outside`: it does not. `different`: numbers
            differ though the environment is the same. `unknown`: no interval is known.
        facts: Facts of the environment that differ.
        compared: The numbers by kind.
        objective: Name of the objective.
        recorded: Its value on record, on the selection split.
        repeated: Its value now.
        interval: Where it had to lie; None where no repeats say.
    """

    study: str
    number: int
    verdict: Verdict
    facts: tuple[Fact, ...]
    compared: tuple[Compared, ...]
    objective: str
    recorded: float
    repeated: float | None
    interval: Interval | None

    @property
    def holds(self) -> bool:
        """Whether the trial was reproduced."""
        return self.verdict in ("bitwise", "inside")


def reproduce(
    store: Store,
    study: StudyRow,
    row: TrialRow,
    local: Settings,
    *,
    watch: Watch = lambda step, metrics: None,
    in_process: bool = False,
) -> Reproduction:
    """Trains a trial again as it is on record; writes nothing to the store.

    Raises:
        InputError: The trial cannot be trained again here, or its data is another one.
        NothingThereError: It has no result to compare with.
        RunFailedError: The second training failed.
    """
    from search.spec.study_file import study_from

    document = store.trial(row.id)
    spec = study_from(study.spec, source=f"study {study.name}")
    refuse_unfit(study, spec, row)
    refuse_other_data(study, prepare(spec, local.cache_dir))
    config = config_of(spec, row, document, local)
    curves: dict[str, dict[int, float]] = {}

    def on_message(message: Message) -> None:
        if not isinstance(message, Report):
            return
        for name, value in message.metrics.items():
            curves.setdefault(f"{message.split}.{name}", {})[message.step] = value
        if message.split == "selection":
            watch(message.step, message.metrics)

    result = train(config, local, on_message, in_process=in_process or uses_local_classes(spec))
    if isinstance(result, TrialFailure):
        raise RunFailedError(
            f"trial {row.number} of {study.name} fails now: {result.cause}: {result.message}"
        )
    facts = (
        *differing(document["environment"], result.environment),
        *other_plugins(document, plugins_of(spec)),
    )
    compared = compare(document, curves, result)
    interval = interval_of(row, store.rows(study.name, curves=False), study.objective)
    repeated = result.evaluations.get("selection", {}).get(study.objective)
    return Reproduction(
        study=study.name,
        number=row.number,
        verdict=judge(compared, facts, is_exact(config), repeated, interval),
        facts=facts,
        compared=compared,
        objective=study.objective,
        recorded=row.selection[study.objective],
        repeated=repeated,
        interval=interval,
    )


def refuse_unfit(study: StudyRow, spec: StudySpec, row: TrialRow) -> None:
    """Refuses a trial that cannot be trained again.

    Raises:
        InputError: It belongs to a function of a script.
        NothingThereError: It has no result.
    """
    if isinstance(spec.task, ObjectiveConfig):
        raise InputError(
            f"study {study.name!r} searches the function {spec.task.name!r} of a script; call it "
            "there with the trial's architecture and seed"
        )
    if row.state != "completed":
        raise NothingThereError(
            f"trial {row.number} of {study.name!r} is {row.state}: only what is completed can be "
            "compared"
        )


def config_of(
    study: StudySpec, row: TrialRow, document: Mapping[str, Any], local: Settings
) -> TrialConfig:
    """Returns the training on record: architecture, seed, recipe, threads and splits.

    Raises:
        InputError: Its architecture cannot be built here.
    """
    from mixers.explain import load
    from mixers.spec import EncoderSpec as Spec
    from search.devices import visible_devices
    from search.slots.runners import ConfigMaker
    from search.tasks.base import Split

    try:
        spec: EncoderSpec = load(Spec, dict(document["spec"]))
    except ValueError as error:
        raise InputError(
            f"trial {row.number} cannot be built here: {error}; install what is missing"
        ) from None
    recorded = document["environment"]
    device = next(
        (one.name for one in visible_devices() if one.name == recorded.get("device")),
        visible_devices()[0].name,
    )
    configs = ConfigMaker(
        study,
        str(local.cache_dir),
        int(recorded.get("threads", local.threads or 1)),
        device,
        compile=COMPILED in recorded,
    )
    read = sorted(split for split in document["evaluations"] if split in ("selection", "test"))
    splits = cast("tuple[Split, ...]", tuple(read))
    return configs.make(spec, seed=row.seed, splits=splits, recipe=row.recipe)


def train(
    config: TrialConfig,
    local: Settings,
    on_message: Callable[[Message], None],
    *,
    in_process: bool,
) -> TrialResult | TrialFailure:
    """Trains in a process of its own, or in this one."""
    if in_process:
        from search.training.trial import attempt

        return attempt(config, report=on_message, should_stop=lambda: None)
    from search.slots.slot import Slot

    limit = local.memory_limit_bytes
    with Slot(config.device, config.threads, local.logs, limit, hang_s=local.hang_s) as slot:
        return slot.run(config, on_message=on_message, should_stop=lambda: None)


def is_exact(config: TrialConfig) -> bool:
    """Says whether a training repeats to the last bit where nothing else differs."""
    return config.device == "cpu" and not config.compile


def judge(
    compared: Sequence[Compared],
    facts: Sequence[Fact],
    exact: bool,
    repeated: float | None,
    interval: Interval | None,
) -> Verdict:
    """Says what the comparison means."""
    if all(one.equal == one.n for one in compared):
        return "bitwise"
    if not facts and exact:
        return "different"
    if interval is None:
        return "unknown"
    inside = repeated is not None and interval.low <= repeated <= interval.high
    return "inside" if inside else "outside"
