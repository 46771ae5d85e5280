"""Rungs and resumed attempts, routes, idle workers, asked budgets, tokens and the audit."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from search.store.types import UtcDateTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(
    postgresql.JSONB(none_as_null=True), "postgresql"
)


def upgrade() -> None:
    """Change the tables; the views are dropped before and made anew after."""
    op.add_column("studies", sa.Column("budget", sa.Text(), nullable=True))
    op.add_column("workers", sa.Column("slots", KEY, server_default=sa.text("1"), nullable=False))
    op.add_column("workers", sa.Column("last_seen_at", UtcDateTime(), nullable=True))
    op.add_column("trials", sa.Column("requested_steps", KEY, nullable=True))
    op.add_column("trials", sa.Column("route", DOCUMENT, nullable=True))
    op.add_column(
        "attempts", sa.Column("resumed_step", KEY, server_default=sa.text("0"), nullable=False)
    )
    op.create_table(
        "tokens",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("last_used_at", UtcDateTime(), nullable=True),
        sa.Column("revoked_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint("role IN ('read', 'submit', 'admin')", name=op.f("ck_tokens_role")),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("name", name="uq_tokens_name"),
        sa.UniqueConstraint("token_hash", name="uq_tokens_token_hash"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "audit",
        sa.Column("id", KEY, nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Stores go forward only: a copy made before the upgrade is the way back."""
    raise NotImplementedError("a store cannot be downgraded; open a copy made before the upgrade")
