"""The command `search`.

Nothing heavy is imported before a command runs: `search --help` needs Typer alone.
"""

from search.cli.entry import main

__all__ = ["main"]
