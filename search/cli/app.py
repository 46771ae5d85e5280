"""The tree of commands."""

from importlib.metadata import version
from typing import Annotated, Any

import typer

from search.cli import mixers, theory
from search.cli.best import best
from search.cli.compare import compare
from search.cli.confirm import confirm
from search.cli.doctor import doctor
from search.cli.export import export
from search.cli.failures import EXIT_CODES
from search.cli.gc import gc
from search.cli.group import SearchGroup
from search.cli.init import init
from search.cli.merge import merge
from search.cli.plot import plot
from search.cli.probe import probe
from search.cli.query import query
from search.cli.report import report
from search.cli.repro import repro
from search.cli.resting import pause, resume, stop
from search.cli.retry import retry
from search.cli.run import run
from search.cli.schema import schema
from search.cli.studies import ls, show
from search.cli.upgrade import upgrade
from search.cli.worker import worker

WORK, READ = "Search", "Read results"
MODELS, CARE = "Mixers and models", "Care"
EPILOG = "Exit codes: " + "; ".join(f"{code} {what}" for code, what in EXIT_CODES.items()) + "."


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mixsearch {version('mixsearch')}")
        raise typer.Exit


def start(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            envvar="SEARCH_DEBUG",
            help="Show tracebacks and the warnings of libraries; may stand anywhere.",
        ),
    ] = False,
) -> None:
    """Find out which token mixer each layer of an encoder should use, and how sure that is."""


def build_app() -> typer.Typer:
    """Put the commands together, in the order in which a user meets them."""
    app = typer.Typer(
        cls=SearchGroup,
        name="search",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        epilog=EPILOG,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(start)
    app.command("init", rich_help_panel=WORK)(init)
    app.command("run", rich_help_panel=WORK)(run)
    app.command("confirm", rich_help_panel=WORK)(confirm)
    app.command("worker", rich_help_panel=WORK)(worker)
    app.command("pause", rich_help_panel=WORK)(pause)
    app.command("stop", rich_help_panel=WORK)(stop)
    app.command("resume", rich_help_panel=WORK)(resume)
    app.command("retry", rich_help_panel=WORK)(retry)
    app.command("ls", rich_help_panel=READ)(ls)
    app.command("show", rich_help_panel=READ)(show)
    app.command("best", rich_help_panel=READ)(best)
    app.command("compare", rich_help_panel=READ)(compare)
    app.command("report", rich_help_panel=READ)(report)
    app.command("plot", rich_help_panel=READ)(plot)
    app.command("query", rich_help_panel=READ)(query)
    app.command("export", rich_help_panel=READ)(export)
    app.command("repro", rich_help_panel=READ)(repro)
    app.add_typer(mixers.app, name="mixers", rich_help_panel=MODELS)
    app.command("probe", rich_help_panel=MODELS)(probe)
    app.add_typer(theory.app, name="theory", rich_help_panel=MODELS)
    app.command("schema", rich_help_panel=MODELS)(schema)
    app.command("merge", rich_help_panel=CARE)(merge)
    app.command("gc", rich_help_panel=CARE)(gc)
    app.command("doctor", rich_help_panel=CARE)(doctor)
    app.command("upgrade", rich_help_panel=CARE)(upgrade)
    return app


def command_tree() -> Any:
    """The whole command as the object that parses and calls."""
    return typer.main.get_command(build_app())
