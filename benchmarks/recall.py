"""Which mixers solve associative recall in its short form? Trains pure stacks at several rates.

    python -m benchmarks.recall

Every training is one of `search.spec.recall.short_recall` for the default study (`--set`
changes the short form: training.steps=3000), read on the selection split. Rows that are already
in the file are not trained again. Seconds are of the processor, so other programs on the machine
matter less; they hold the whole trial with its probe and proof. One training at a time.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.rows import read_rows
from mixers import parse_architecture
from search.data.cache import default_cache_dir
from search.messages import TrialConfig
from search.spec.recall import SOLVED, short_recall
from search.spec.study import StudySpec
from search.spec.study_file import study_from, with_overrides
from search.training.trial import run_trial

RESULTS = Path(__file__).parent / "results" / "recall.jsonl"
STACKS = (
    "attention(rotary=true)*4",
    "sepconv*4",
    "bproj*4",
    "average*4",
    "identity*4",
)
MEASURED = ("accuracy", "loss", "seconds")


def main() -> None:
    """Trains what is missing in the file, then prints the table."""
    own = short_recall(StudySpec()).training.learning_rate
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON lines, read and appended")
    parser.add_argument("--rates", type=float, nargs="+", default=(own, own / 2, 2 * own))
    parser.add_argument("--stacks", nargs="+", default=STACKS, help="compact notation")
    parser.add_argument("--seeds", type=int, nargs="+", default=(1, 2))
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    options = parser.parse_args()
    rows = read_rows(options.out)
    for rate in options.rates:
        study = study_at(rate, options.set)
        for seed in options.seeds:
            for stack in options.stacks:
                row = {"stack": stack, "seed": seed, **facts_of(study)}
                if any(key_of(row) == key_of(other) for other in rows):
                    continue
                rows.append(row | train(study, stack, seed))
                with options.out.open("a") as out:
                    out.write(json.dumps(rows[-1]) + "\n")
                print(f"{stack}  rate {rate:g}  seed {seed}  {rows[-1]['accuracy']}", flush=True)
    facts = facts_of(study_at(own, options.set))
    print(table(rows, options.stacks, sorted(options.rates), facts))


def study_at(rate: float, overrides: list[str]) -> StudySpec:
    """Returns the short form at a learning rate."""
    document = short_recall(StudySpec()).model_dump(mode="json")
    for name in ("space", "baselines"):
        document.pop(name)
    return study_from(with_overrides(document, [f"training.learning_rate={rate}", *overrides]))


def train(study: StudySpec, stack: str, seed: int) -> dict[str, Any]:
    """Trains one stack; its reading of the selection split, and processor seconds."""
    config = TrialConfig(
        study=study,
        spec=study.encoder_spec(parse_architecture(stack)),
        seed=seed,
        cache_dir=str(default_cache_dir()),
    )
    started = time.process_time()
    outcome = run_trial(config, report=lambda _: None, should_stop=lambda: None)
    reading = outcome.evaluations.get("selection", {})
    return {
        "accuracy": round(reading["accuracy"], 4) if reading else None,
        "loss": round(reading["loss"], 4) if reading else None,
        "seconds": round(time.process_time() - started, 1),
    }


def facts_of(study: StudySpec) -> dict[str, Any]:
    """What a row says of its study; rows with equal facts are comparable."""
    training = study.training
    return {
        "learning_rate": training.learning_rate,
        "steps": training.steps,
        "batch_size": training.batch_size,
        "warmup_fraction": training.warmup_fraction,
        **{
            name: getattr(study.task, name)
            for name in ("vocab_size", "seq_len", "n_pairs", "spread", "gap_power")
        },
        "d_model": study.encoder.d_model,
    }


def key_of(row: dict[str, Any]) -> dict[str, Any]:
    """What identifies a training."""
    return {name: value for name, value in row.items() if name not in MEASURED}


def table(
    rows: list[dict[str, Any]],
    stacks: Sequence[str],
    rates: Sequence[float],
    facts: dict[str, Any],
) -> str:
    """Formats the accuracy of each seed by stack and rate as a Markdown table; solved ones bold."""
    lines = [
        "| stack | " + " | ".join(f"{rate:g}" for rate in rates) + " | seconds |",
        "|---|" + "---|" * (len(rates) + 1),
    ]
    for stack in stacks:
        cells: list[str] = []
        seconds: list[float] = []
        for rate in rates:
            wanted = {"stack": stack, **facts, "learning_rate": rate}
            found = [row for row in rows if wanted.items() <= row.items()]
            found.sort(key=lambda row: row["seed"])
            seconds += [row["seconds"] for row in found if row["seconds"] is not None]
            cells.append(", ".join(accuracy_text(row["accuracy"]) for row in found))
        spent = f"{min(seconds):.0f} to {max(seconds):.0f}" if seconds else ""
        lines.append(f"| `{stack}` | {' | '.join(cells)} | {spent} |")
    return "\n".join(lines)


def accuracy_text(accuracy: float | None) -> str:
    """Returns an accuracy for the table."""
    if accuracy is None:
        return "diverged"
    return f"**{accuracy:.3f}**" if accuracy >= SOLVED else f"{accuracy:.3f}"


if __name__ == "__main__":
    main()
