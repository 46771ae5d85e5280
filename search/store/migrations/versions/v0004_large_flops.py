"""FLOPs of a training beyond 64 bits."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Widen the column on PostgreSQL; SQLite's holds a float as it is."""
    if op.get_context().dialect.name == "postgresql":
        op.alter_column("trials", "training_flops", type_=sa.Numeric(), existing_nullable=False)


def downgrade() -> None:
    """Stores go forward only: a copy made before the upgrade is the way back."""
    raise NotImplementedError("a store cannot be downgraded; open a copy made before the upgrade")
