"""${message}."""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change the tables; the views are dropped before and made anew after."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Stores go forward only: a copy made before the upgrade is the way back."""
    raise NotImplementedError("a store cannot be downgraded; open a copy made before the upgrade")
