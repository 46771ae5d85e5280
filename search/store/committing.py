"""Commit, the second of a claim's two short transactions: write the architecture.

The unique constraint of architecture, training key and seed decides between workers that chose
the same; nothing was locked while the strategy thought.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, exists, select, update

from mixers.notation import format_layer
from mixers.spec import EncoderSpec, canonical_json
from search.rows import Claim, CommitOutcome
from search.store.engine import DatabaseTime
from search.store.events import record
from search.store.finite import require_finite
from search.store.inserting import WithRows
from search.store.leases import LIVE, UPDATE_TRIAL
from search.store.reusing import TRAINED_ELSEWHERE, find_source, reuse
from search.store.routes import route_document
from search.store.tables import SUM_OF_FLOPS, SpaceRevision, Study, Trial, TrialBlock

# Made once: building a statement costs more than running it.
TAKEN = select(Trial.id).where(
    Trial.study_id == bindparam("study"),
    Trial.arch_id == bindparam("arch"),
    Trial.training_key == bindparam("key"),
    Trial.seed_index == bindparam("seed_index"),
)
PLUGINS = (
    select(SpaceRevision.plugins)
    .where(SpaceRevision.study_id == bindparam("study"))
    .order_by(SpaceRevision.number.desc())
    .limit(1)
)
# All that a commit asks, at one moment.
SITUATION = select(
    DatabaseTime().label("now"),
    exists().where(*LIVE).label("is_held"),
    TAKEN.scalar_subquery().label("taken_by"),
    TRAINED_ELSEWHERE.order_by(None).exists().label("is_elsewhere"),
    PLUGINS.scalar_subquery().label("plugins"),
)
START_TRIAL = WithRows(UPDATE_TRIAL, {"blocks": TrialBlock})
RESERVED_FLOPS = select(SUM_OF_FLOPS).where(Trial.study_id == bindparam("study"))


@dataclass(frozen=True)
class Described:
    """An architecture as the store writes it.

    Attributes:
        columns: Of its trial, by name.
        blocks: Of its layers, by name, without trial and package.
    """

    columns: Mapping[str, Any]
    blocks: Sequence[Mapping[str, Any]]

    @property
    def arch_id(self) -> str:
        """Id of the architecture."""
        return str(self.columns["arch_id"])


def describe(spec: EncoderSpec) -> Described:
    """Work out what is written of an architecture; that takes a moment, so no transaction waits."""
    document = json.loads(canonical_json(spec))
    # What the sizes of the spec decide is left out.
    sizes = {"d_model": spec.d_model, "max_seq_len": spec.max_seq_len}
    mixers = [format_layer(block.mixer, **sizes) for block in spec.blocks]
    blocks = [
        {
            "layer": layer,
            "kind": block["mixer"]["kind"],
            "config": block["mixer"],
            "notation": notation,
        }
        for layer, (block, notation) in enumerate(zip(document["blocks"], mixers, strict=True))
    ]
    columns = {
        "arch_id": spec.arch_id,
        "code": spec.code,
        "notation": spec.notation,
        "mixers": mixers,
        "n_layers": spec.n_layers,
        "spec": document,
        "route": route_document(spec),
    }
    return Described(columns, blocks)


def commit(
    connection: Connection,
    claim: Claim,
    described: Described,
    *,
    seed: int,
    seed_index: int,
    training_key: str,
    role: str | None,
    params: Mapping[str, Any],
    attrs: Mapping[str, Any],
    study_attrs: Mapping[str, Any],
    recipe: Mapping[str, float],
    flops: int,
    most_flops: float | None,
    splits: Sequence[str],
    until: int | None,
) -> CommitOutcome:
    """Give a reservation its architecture; see `Store.commit`."""
    notes = {"params": params, "attrs": attrs, "study_attrs": study_attrs, "recipe": recipe}
    require_finite(notes, "commit")
    study_id, arch_id = claim.study_id, described.arch_id
    found = connection.execute(
        SITUATION,
        {
            "study": study_id,
            "trial": claim.trial_id,
            "token": claim.token,
            "arch": arch_id,
            "key": training_key,
            "seed": seed,
            "seed_index": seed_index,
        },
    ).one()
    if not found.is_held:
        return "lost"
    if found.taken_by is not None:
        # Its own: the same commit came before, and the answer never arrived.
        return "running" if found.taken_by == claim.trial_id else "duplicate"
    if most_flops is not None and reserved_flops(connection, study_id) + flops > most_flops:
        return "no room"
    columns = {
        "state": "running",
        "reason": None,
        **described.columns,
        "role": role,
        "seed": seed,
        "seed_index": seed_index,
        "recipe": dict(recipe),
        "training_key": training_key,
        "sampler_params": dict(params),
        "sampler_attrs": dict(attrs),
        "training_flops": flops,
        "requested_steps": until,
        "started_at": found.now,
    }
    blocks = block_rows(claim.trial_id, described, found.plugins or {})
    START_TRIAL.run(connection, {"trial": claim.trial_id, **columns}, {"blocks": blocks})
    if study_attrs:
        add_notes(connection, study_id, study_attrs)
    source = None
    if found.is_elsewhere:
        source = find_source(connection, study_id, arch_id, training_key, seed, splits)
    if source is not None:
        reuse(connection, claim, source, arch_id, found.now)
        return "reused"
    record(
        connection,
        study_id,
        "trial_started",
        found.now,
        claim.trial_id,
        number=claim.number,
        phase=claim.phase,
        role=role,
        notation=described.columns["notation"],
    )
    return "running"


def add_notes(connection: Connection, study_id: int, notes: Mapping[str, Any]) -> None:
    """Add to a study's notes; those of another worker's commit meanwhile stay."""
    here = Study.id == study_id
    known = connection.execute(select(Study.attrs).where(here)).scalar_one()
    connection.execute(update(Study).where(here).values(attrs={**known, **notes}))


def reserved_flops(connection: Connection, study_id: int) -> int:
    """Return the training FLOPs of a study, spent and reserved."""
    return int(connection.execute(RESERVED_FLOPS, {"study": study_id}).scalar_one())


def block_rows(
    trial_id: int, described: Described, plugins: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return one row per layer, with the package that its mixer comes from."""
    rows = []
    for block in described.blocks:
        distribution, version = plugins.get(block["kind"], (None, None))
        package = {"distribution": distribution, "version": version}
        rows.append({"trial_id": trial_id, **block, **package})
    return rows
