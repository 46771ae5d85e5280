"""Is one learning rate fair to every mixer? Trains each uniform stack at several rates.

    python -m benchmarks.recipe --out benchmarks/results/recipe.jsonl

Every training is a trial of the default study (`--set` changes it) through the same training
process as `search run`, one seed, read on the selection split. Rows that are already in the file
are not trained again, so an interrupted sweep goes on where it stopped. The table has one line per
stack: loss in nats at each rate (best marked), and what the default rate loses against the best.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.rows import read_rows
from mixers import parse_architecture
from search.data.cache import default_cache_dir
from search.messages import TrialConfig, TrialFailure, TrialResult
from search.slots.slot import Slot
from search.spec.study import StudySpec
from search.spec.study_file import study_from, with_overrides

STACKS = (
    "attention(rotary=true)*4",
    "attention*4",
    "sepconv*4",
    "bproj*4",
    "average*4",
    "hardmax_shift*4",
    "sepconv*2, attention(rotary=true)*2",
)
RATES = (3e-3, 6e-3, 1.2e-2, 2.4e-2)


def main() -> None:
    """Trains what is missing in the file, then prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, read and appended")
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    parser.add_argument("--stacks", nargs="+", default=STACKS, help="compact notation")
    parser.add_argument("--seeds", type=int, nargs="+", default=(0,))
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at once, one thread each")
    options = parser.parse_args()
    rows = read_rows(options.out)
    done = {key_of(row) for row in rows}
    jobs = []
    for rate in options.rates:
        study = study_from(with_overrides({}, [*options.set, f"training.learning_rate={rate}"]))
        for stack in options.stacks:
            for seed in options.seeds:
                row = {"stack": stack, "seed": seed, **facts_of(study)}
                if key_of(row) not in done:
                    jobs.append((study, row))
    with Crew(options.jobs) as crew, options.out.open("a") as out:
        for row in crew.train(jobs):
            rows.append(row)
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(f"{row['stack']}  rate {row['learning_rate']:g}  loss {row['loss']}", flush=True)
    settings = facts_of(study_from(with_overrides({}, options.set)))
    print(table(rows, options.stacks, options.rates, settings))


class Crew:
    """Training processes of one thread each, and the rows of what they trained."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.local = threading.local()
        self.slots: list[Slot] = []
        self.logs = tempfile.TemporaryDirectory()

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for slot in self.slots:
            slot.close()
        self.logs.cleanup()

    def train(self, jobs: list[tuple[StudySpec, dict[str, Any]]]) -> Any:
        """Yields the rows in the order of the jobs."""
        with ThreadPoolExecutor(self.jobs) as pool:
            yield from pool.map(lambda job: self.train_one(*job), jobs)

    def train_one(self, study: StudySpec, row: dict[str, Any]) -> dict[str, Any]:
        """Trains one stack."""
        if not hasattr(self.local, "slot"):
            self.local.slot = Slot("cpu", 1, self.logs.name)
            self.slots.append(self.local.slot)
        config = TrialConfig(
            study=study,
            spec=study.encoder_spec(parse_architecture(row["stack"])),
            seed=row["seed"],
            cache_dir=str(default_cache_dir()),
        )
        outcome = self.local.slot.run(config, on_message=lambda _: None, should_stop=lambda: None)
        if isinstance(outcome, TrialFailure):
            raise SystemExit(f"{row['stack']}: {outcome.message}")
        assert isinstance(outcome, TrialResult)
        reading = outcome.evaluations.get("selection", {})
        loss, accuracy = (
            round(reading[name], 5) if name in reading else None for name in ("loss", "accuracy")
        )
        return {**row, "outcome": outcome.outcome, "loss": loss, "accuracy": accuracy}


def facts_of(study: StudySpec) -> dict[str, Any]:
    """What a row says of its study; two rows with equal facts are comparable."""
    training = study.training
    return {
        "learning_rate": training.learning_rate,
        "steps": training.steps,
        "batch_size": training.batch_size,
        "vocab_size": study.sizes.vocab_size,
        "seq_len": study.sizes.max_seq_len,
        "d_model": study.encoder.d_model,
    }


def key_of(row: dict[str, Any]) -> str:
    """Identifies a training."""
    return json.dumps({k: v for k, v in row.items() if k not in ("outcome", "loss", "accuracy")})


def table(
    rows: list[dict[str, Any]],
    stacks: tuple[str, ...],
    rates: tuple[float, ...],
    settings: dict[str, Any],
) -> str:
    """Formats mean losses over seeds by stack and rate as a Markdown table."""
    default = settings.pop("learning_rate")
    lines = [
        "| stack | " + " | ".join(f"{rate:g}" for rate in rates) + f" | {default:g} minus best |",
        "|---|" + "---|" * (len(rates) + 1),
    ]
    for stack in stacks:
        means: dict[float, float] = {}
        for rate in rates:
            losses = [
                row["loss"]
                for row in rows
                if row["stack"] == stack
                and row["learning_rate"] == rate
                and all(row[name] == value for name, value in settings.items())
            ]
            if losses and None not in losses:
                means[rate] = sum(losses) / len(losses)
        best = min(means, key=means.__getitem__, default=None)
        cells = [
            ("**{:.3f}**" if rate == best else "{:.3f}").format(means[rate])
            if rate in means
            else "diverged"
            for rate in rates
        ]
        behind = f"{means[default] - means[best]:.3f}" if best and default in means else ""
        lines.append(f"| `{stack}` | " + " | ".join(cells) + f" | {behind} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
