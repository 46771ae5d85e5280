"""Recipes of trials, values by document, derived studies, and looks at the confirmation."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from search.store.types import UtcDateTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(
    postgresql.JSONB(none_as_null=True), "postgresql"
)
LARGEST = "1.7976931348623157e308"


def upgrade() -> None:
    """Change the tables; the views are dropped before and made anew after."""
    op.add_column(
        "trials", sa.Column("recipe", DOCUMENT, server_default=sa.text("'{}'"), nullable=False)
    )
    op.add_column("evaluations", sa.Column("by_document", DOCUMENT, nullable=True))
    op.create_table(
        "derived_studies",
        sa.Column("study_id", KEY, nullable=False),
        sa.Column("base_id", KEY, nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["base_id"], ["studies.id"], name="fk_derived_studies_base_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["study_id"], ["studies.id"], name="fk_derived_studies_study_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("study_id", name="pk_derived_studies"),
    )
    op.create_index("ix_derived_studies_base_id", "derived_studies", ["base_id"])
    # Alembic would add the checks in statements of their own, which SQLite does not know.
    op.execute(
        "ALTER TABLE study_verdicts ADD COLUMN kind TEXT NOT NULL DEFAULT 'confirmatory' "
        "CONSTRAINT ck_study_verdicts_kind CHECK (kind IN ('confirmatory', 'exploratory'))"
    )
    number = "DOUBLE" if op.get_bind().dialect.name == "sqlite" else "DOUBLE PRECISION"
    op.execute(
        f"ALTER TABLE study_verdicts ADD COLUMN p_value {number} "
        f"CONSTRAINT ck_study_verdicts_p_value_finite CHECK (abs(p_value) <= {LARGEST})"
    )
    op.create_table(
        "looks",
        sa.Column("study_id", KEY, nullable=False),
        sa.Column("number", KEY, autoincrement=False, nullable=False),
        sa.Column("confirm_trials", KEY, nullable=False),
        sa.Column("made_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["study_id"], ["studies.id"], name="fk_looks_study_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("study_id", "number", name="pk_looks"),
    )


def downgrade() -> None:
    """Stores go forward only: a copy made before the upgrade is the way back."""
    raise NotImplementedError("a store cannot be downgraded; open a copy made before the upgrade")
