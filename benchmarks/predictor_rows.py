"""One row for each stored trial: what it came to, and what could be known of it before.

    python -m benchmarks.predictor_rows --store sqlite:///search.db --study as4 [--first-point]

Adds to a CSV file what it has no row for, each row at once, so that an interruption loses nothing.
The zero-cost predictors are read from the network as its seed initialises it, on its first training
batch. With --first-point the trial is trained up to its first reading once more and probed there;
the reading must be the stored one up to 1e-5 of its size, or the row is refused.
"""

from __future__ import annotations

import argparse
import csv
import math
import tempfile
from pathlib import Path
from typing import Any

import search
from benchmarks.zero_cost import zero_cost
from mixers import EncoderSpec
from mixers.explain import load
from search.messages import TrialConfig
from search.probe import probe
from search.rows import StudyRow, TrialRow
from search.spec.study import StudySpec
from search.spec.study_file import study_from
from search.training.random_states import process_settings
from search.training.recipe import reading_steps
from search.training.trial import Trial

TABLE = Path(__file__).parent / "tables" / "predictors.csv"
COLUMNS = (
    *("study", "number", "code", "notation", "n_layers", "seed", "steps", "learning_rate"),
    *("selection", "test", "first_step", "selection_first", "params", "flops", "reach"),
    *("probe_init", "probe_first", "probe_final"),
    *("grad_norm", "snip", "synflow", "jacob_cov", "naswot", "proof"),
)
REPEATS = 1e-5
"""Back ends of mixers may round otherwise than when the trial was trained."""
Row = dict[str, Any]


def read_table(path: Path) -> list[Row]:
    """Rows of the file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def add(path: Path, row: Row) -> None:
    """Appends a row."""
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def static_reach(spec: EncoderSpec) -> int:
    """Tokens to each side that the whole stack can carry information over, at most N - 1."""
    from mixers.registry import mixer_registry

    most = spec.max_seq_len - 1
    reach = 0
    for block in spec.blocks:
        of_layer = mixer_registry.load(block.mixer.kind).traits(block.mixer).reach
        reach += of_layer if isinstance(of_layer, int) else most
    return min(reach, most)


def measure(
    study: StudySpec, row: TrialRow, document: Row, cache_dir: str, *, first_point: bool
) -> Row:
    """A trial's row of the table.

    Raises:
        ValueError: the training did not repeat.
    """
    study = study.with_recipe(row.recipe)
    recipe = study.training
    first = reading_steps(recipe.steps, recipe.validations)[0]
    curve = dict(row.curve)
    config = TrialConfig(
        study=study,
        spec=load(EncoderSpec, document["spec"]),
        seed=row.seed,
        threads=int(document["environment"]["threads"]),
        cache_dir=cache_dir,
        until=first,
    )
    trial = Trial(config, lambda message: None)
    probe_first = None
    with process_settings(config):
        trial.prepare()
        batch = trial.task.train_batch(0, seed=row.seed, batch_size=recipe.batch_size)
        numbers = zero_cost(trial.task, trial.model, batch)
        if first_point:
            found = trial.train(lambda: None).selection[study.objective]
            if not math.isclose(found, curve[first], rel_tol=REPEATS):
                raise ValueError(f"trial {row.number}: {found} at step {first}, not {curve[first]}")
            shared = trial.shared
            reading = probe(
                trial.model.encoder,  # type: ignore[arg-type]
                shared.contexts,
                shared.vocabulary,
                seed=study.seed,
            )
            probe_first = reading.readings["probe"]
    return {
        "study": row.study,
        "number": row.number,
        "code": row.code,
        "notation": row.notation,
        "n_layers": row.n_layers,
        "seed": row.seed,
        "steps": row.steps,
        "learning_rate": recipe.learning_rate,
        "selection": row.selection[study.objective],
        "test": row.test.get(study.objective),
        "first_step": first,
        "selection_first": curve[first],
        "params": row.params,
        "flops": row.flops,
        "reach": static_reach(config.spec),
        "probe_init": document["probes"]["init"]["probe"],
        "probe_first": probe_first,
        "probe_final": document["probes"]["final"]["probe"],
        **numbers,
        "proof": document["proof"]["sha256"],
    }


def main() -> None:
    """Measures what the file has no row for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", default="sqlite:///search.db")
    parser.add_argument("--study", required=True)
    parser.add_argument("--seeds", type=int, nargs="*", help="of these training seeds alone")
    parser.add_argument("--first-point", action="store_true")
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--cache", default=tempfile.gettempdir() + "/mixsearch-benchmark")
    options = parser.parse_args()
    known = {(row["study"], int(row["number"])) for row in read_table(options.table)}
    with search.open(options.store) as store:
        asked: StudyRow = store.study(options.study)
        study = study_from(asked.spec, source=asked.name)
        for row in store.rows(asked.name):
            is_asked = not options.seeds or row.seed in options.seeds
            if row.state == "completed" and is_asked and (row.study, row.number) not in known:
                found = measure(
                    study,
                    row,
                    store.trial(row.id),
                    options.cache,
                    first_point=options.first_point,
                )
                add(options.table, found)
                print(f"{row.study} {row.number} {row.code} seed {row.seed}", flush=True)


if __name__ == "__main__":
    main()
