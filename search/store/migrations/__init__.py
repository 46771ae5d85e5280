"""Alembic migrations; they ship with the package and need no alembic.ini."""
