"""Tables of the first version."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from search.store.types import UtcDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(
    postgresql.JSONB(none_as_null=True), "postgresql"
)
TIME = UtcDateTime()


def upgrade() -> None:
    """Change the tables; the views are dropped before and made anew after."""
    op.create_table(
        "environments",
        sa.Column("id", KEY, nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("facts", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_environments"),
        sa.UniqueConstraint("sha256", name="uq_environments_sha256"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "events",
        sa.Column("id", KEY, nullable=False),
        sa.Column("study_id", KEY, nullable=False),
        sa.Column("trial_id", KEY, nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("data", DOCUMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_study_id_id", "events", ["study_id", "id"])

    op.create_table(
        "studies",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("spec", DOCUMENT, nullable=False),
        sa.Column("objective", sa.Text(), nullable=False),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("n_layers", KEY, nullable=False),
        sa.Column("reference_kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("attrs", DOCUMENT, nullable=False),
        sa.Column("busy_s", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.Column("busy_since", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.CheckConstraint(
            "direction IN ('minimize', 'maximize')", name=op.f("ck_studies_direction")
        ),
        sa.CheckConstraint(
            "state IN ('running', 'paused', 'completed', 'stopped', 'failed')",
            name=op.f("ck_studies_state"),
        ),
        sa.PrimaryKeyConstraint("id", name="pk_studies"),
        sa.UniqueConstraint("name", name="uq_studies_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "workers",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", KEY, nullable=False),
        sa.Column("devices", DOCUMENT, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("closed_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "space_revisions",
        sa.Column("id", KEY, nullable=False),
        sa.Column("study_id", KEY, nullable=False),
        sa.Column("number", KEY, nullable=False),
        sa.Column("choices", DOCUMENT, nullable=False),
        sa.Column("plugins", DOCUMENT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["study_id"], ["studies.id"], name="fk_space_revisions_study_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_space_revisions"),
        sa.UniqueConstraint("study_id", "number", name="uq_space_revisions_study_id_number"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "study_verdicts",
        sa.Column("study_id", KEY, nullable=False),
        sa.Column("place", KEY, autoincrement=False, nullable=False),
        sa.Column("contrast", sa.Text(), nullable=False),
        sa.Column("estimate", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("n", KEY, nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("made_at", TIME, nullable=False),
        sa.CheckConstraint(
            "abs(estimate) <= 1.7976931348623157e308",
            name=op.f("ck_study_verdicts_estimate_finite"),
        ),
        sa.CheckConstraint(
            "abs(high) <= 1.7976931348623157e308", name=op.f("ck_study_verdicts_high_finite")
        ),
        sa.CheckConstraint(
            "abs(low) <= 1.7976931348623157e308", name=op.f("ck_study_verdicts_low_finite")
        ),
        sa.ForeignKeyConstraint(
            ["study_id"], ["studies.id"], name="fk_study_verdicts_study_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("study_id", "place", name="pk_study_verdicts"),
    )
    op.create_table(
        "trials",
        sa.Column("id", KEY, nullable=False),
        sa.Column("study_id", KEY, nullable=False),
        sa.Column("revision_id", KEY, nullable=False),
        sa.Column("number", KEY, nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("arch_id", sa.Text(), nullable=True),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("notation", sa.Text(), nullable=True),
        sa.Column("mixers", DOCUMENT, nullable=True),
        sa.Column("n_layers", KEY, nullable=True),
        sa.Column("spec", DOCUMENT, nullable=True),
        sa.Column("seed", KEY, nullable=True),
        sa.Column("seed_index", KEY, nullable=True),
        sa.Column("training_key", sa.Text(), nullable=True),
        sa.Column("sampler_params", DOCUMENT, nullable=False),
        sa.Column("sampler_attrs", DOCUMENT, nullable=False),
        sa.Column("worker_id", KEY, nullable=True),
        sa.Column("attempt", KEY, nullable=False),
        sa.Column("training_flops", KEY, nullable=False),
        sa.Column("steps", KEY, nullable=True),
        sa.Column("sequences", KEY, nullable=True),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("diverged_at", KEY, nullable=True),
        sa.Column("environment_id", KEY, nullable=True),
        sa.Column("reused_from", KEY, nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.CheckConstraint(
            "phase IN ('recipe', 'baseline', 'screen', 'search', 'confirm')",
            name=op.f("ck_trials_phase"),
        ),
        sa.CheckConstraint(
            "state IN ('proposed', 'queued', 'running', 'completed', 'pruned', 'diverged', "
            "'failed', 'stopped')",
            name=op.f("ck_trials_state"),
        ),
        sa.ForeignKeyConstraint(
            ["environment_id"], ["environments.id"], name="fk_trials_environment_id"
        ),
        sa.ForeignKeyConstraint(
            ["reused_from"], ["trials.id"], name="fk_trials_reused_from", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["revision_id"], ["space_revisions.id"], name="fk_trials_revision_id"
        ),
        sa.ForeignKeyConstraint(
            ["study_id"], ["studies.id"], name="fk_trials_study_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name="fk_trials_worker_id"),
        sa.PrimaryKeyConstraint("id", name="pk_trials"),
        sa.UniqueConstraint(
            "study_id",
            "arch_id",
            "training_key",
            "seed_index",
            name="uq_trials_study_id_arch_id_training_key_seed_index",
        ),
        sa.UniqueConstraint("study_id", "number", name="uq_trials_study_id_number"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_trials_arch_id_training_key", "trials", ["arch_id", "training_key"])
    op.create_index(
        "ix_trials_study_id_phase_training_flops", "trials", ["study_id", "phase", "training_flops"]
    )
    op.create_index("ix_trials_study_id_state_number", "trials", ["study_id", "state", "number"])

    op.create_table(
        "architectures",
        sa.Column("study_id", KEY, nullable=False),
        sa.Column("arch_id", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("notation", sa.Text(), nullable=False),
        sa.Column("n_layers", KEY, nullable=False),
        sa.Column("uniform_kind", sa.Text(), nullable=True),
        sa.Column("is_baseline", sa.Boolean(), nullable=False),
        sa.Column("n", KEY, nullable=False),
        sa.Column("mean", sa.Double(), nullable=False),
        sa.Column("sd", sa.Double(), nullable=True),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("best", sa.Double(), nullable=False),
        sa.Column("best_trial_id", KEY, nullable=False),
        sa.Column("test_n", KEY, nullable=False),
        sa.Column("test_mean", sa.Double(), nullable=True),
        sa.Column("test_sd", sa.Double(), nullable=True),
        sa.Column("params", KEY, nullable=True),
        sa.Column("flops", KEY, nullable=True),
        sa.Column("latency_s", sa.Double(), nullable=True),
        sa.Column("probe", sa.Double(), nullable=True),
        sa.Column("is_pareto", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["best_trial_id"],
            ["trials.id"],
            name="fk_architectures_best_trial_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["study_id"], ["studies.id"], name="fk_architectures_study_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("study_id", "arch_id", name="pk_architectures"),
    )
    op.create_index(
        "ix_architectures_study_id_score_arch_id", "architectures", ["study_id", "score", "arch_id"]
    )
    op.create_index(
        "ix_architectures_front",
        "architectures",
        ["study_id"],
        sqlite_where=sa.text("is_pareto = 1"),
        postgresql_where=sa.text("is_pareto"),
    )

    op.create_table(
        "artifacts",
        sa.Column("id", KEY, nullable=False),
        sa.Column("trial_id", KEY, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("size_bytes", KEY, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name="fk_artifacts_trial_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_artifacts"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_artifacts_trial_id", "artifacts", ["trial_id"])

    op.create_table(
        "attempts",
        sa.Column("trial_id", KEY, nullable=False),
        sa.Column("number", KEY, autoincrement=False, nullable=False),
        sa.Column("study_id", KEY, nullable=False),
        sa.Column("worker_id", KEY, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("heartbeat_at", TIME, nullable=False),
        sa.Column("lease_expires_at", TIME, nullable=False),
        sa.Column("step", KEY, nullable=False),
        sa.Column("n_steps", KEY, nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("traceback", sa.Text(), nullable=True),
        sa.Column("result", DOCUMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["study_id"], ["studies.id"], name="fk_attempts_study_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name="fk_attempts_trial_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name="fk_attempts_worker_id"),
        sa.PrimaryKeyConstraint("trial_id", "number", name="pk_attempts"),
    )
    op.create_index(
        "ix_attempts_live",
        "attempts",
        ["study_id", "lease_expires_at"],
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )

    op.create_table(
        "costs",
        sa.Column("trial_id", KEY, nullable=False),
        sa.Column("params", KEY, nullable=False),
        sa.Column("flops", KEY, nullable=False),
        sa.Column("step_s", sa.Double(), nullable=True),
        sa.Column("step_s_low", sa.Double(), nullable=True),
        sa.Column("step_s_high", sa.Double(), nullable=True),
        sa.Column("step_n", KEY, nullable=True),
        sa.Column("step_batch_size", KEY, nullable=True),
        sa.Column("latency_s", sa.Double(), nullable=True),
        sa.Column("latency_s_low", sa.Double(), nullable=True),
        sa.Column("latency_s_high", sa.Double(), nullable=True),
        sa.Column("latency_n", KEY, nullable=True),
        sa.Column("latency_batch_size", KEY, nullable=True),
        sa.Column("seq_len", KEY, nullable=True),
        sa.Column("device", sa.Text(), nullable=True),
        sa.Column("dtype", sa.Text(), nullable=True),
        sa.Column("peak_memory_bytes", KEY, nullable=True),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name="fk_costs_trial_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trial_id", name="pk_costs"),
    )
    op.create_table(
        "evaluations",
        sa.Column("trial_id", KEY, nullable=False),
        sa.Column("split", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.CheckConstraint(
            "abs(value) <= 1.7976931348623157e308", name=op.f("ck_evaluations_value_finite")
        ),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name="fk_evaluations_trial_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trial_id", "split", "metric", name="pk_evaluations"),
    )
    op.create_table(
        "metric_points",
        sa.Column("trial_id", KEY, nullable=False),
        sa.Column("split", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("step", KEY, autoincrement=False, nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.CheckConstraint(
            "abs(value) <= 1.7976931348623157e308", name=op.f("ck_metric_points_value_finite")
        ),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name="fk_metric_points_trial_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trial_id", "split", "metric", "step", name="pk_metric_points"),
    )
    op.create_table(
        "probes",
        sa.Column("trial_id", KEY, nullable=False),
        sa.Column("moment", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.CheckConstraint("moment IN ('init', 'final')", name=op.f("ck_probes_moment")),
        sa.CheckConstraint(
            "abs(value) <= 1.7976931348623157e308", name=op.f("ck_probes_value_finite")
        ),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name="fk_probes_trial_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trial_id", "moment", "name", name="pk_probes"),
    )
    op.create_table(
        "proofs",
        sa.Column("trial_id", KEY, nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("layers", DOCUMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name="fk_proofs_trial_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trial_id", name="pk_proofs"),
    )
    op.create_table(
        "trial_blocks",
        sa.Column("trial_id", KEY, nullable=False),
        sa.Column("layer", KEY, autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("config", DOCUMENT, nullable=False),
        sa.Column("notation", sa.Text(), nullable=False),
        sa.Column("distribution", sa.Text(), nullable=True),
        sa.Column("version", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name="fk_trial_blocks_trial_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trial_id", "layer", name="pk_trial_blocks"),
    )
    op.create_index("ix_trial_blocks_kind_layer", "trial_blocks", ["kind", "layer"])


def downgrade() -> None:
    """Stores go forward only: a copy made before the upgrade is the way back."""
    raise NotImplementedError("a store cannot be downgraded; open a copy made before the upgrade")
