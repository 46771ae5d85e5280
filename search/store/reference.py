"""Writes the tables of docs/querying-results.md from the models and views.

python -m search.store.reference docs/querying-results.md
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import search.store.measurements  # noqa: F401 - registers its tables
from search.store.tables import Base
from search.store.views import VIEWS, VIEWS_VERSION, View

BEGIN = "<!-- begin {}: python -m search.store.reference docs/querying-results.md -->"
END = "<!-- end {} -->"


def views_reference() -> str:
    """The contract of the views as Markdown."""
    return f"These are the views of version {VIEWS_VERSION}.\n\n" + "\n\n".join(
        view_reference(view) for view in VIEWS
    )


def view_reference(view: View) -> str:
    """One view: what a row is, and its columns."""
    lines = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in view.columns.items())
    return f"### {view.name}\n\n{view.doc}\n\n| column | meaning |\n|---|---|\n{lines}"


def tables_reference() -> str:
    """The tables as Markdown, by name."""
    return "\n\n".join(tables())


def tables() -> Iterator[str]:
    """One table each: what a row is, its columns, key and references."""
    summaries = {
        mapper.persist_selectable: (mapper.class_.__doc__ or "").strip().splitlines()[0]
        for mapper in Base.registry.mappers
    }
    for name, table in sorted(Base.metadata.tables.items()):
        lines = []
        for column in table.columns:
            marks = ["key"] if column.primary_key else []
            marks += [f"-> `{key.column.table.name}`" for key in column.foreign_keys]
            note = f" ({', '.join(marks)})" if marks else ""
            lines.append(f"| `{column.name}`{note} | {column.doc} |")
        rows = "\n".join(lines)
        yield f"### {name}\n\n{summaries[table]}\n\n| column | meaning |\n|---|---|\n{rows}"


def rewritten(page: str) -> str:
    """Return a page with the generated parts between its marks brought up to date.

    Raises:
        ValueError: A mark is missing.
    """
    for name, text in (("views", views_reference()), ("tables", tables_reference())):
        begin, end = BEGIN.format(name), END.format(name)
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"the page needs the two lines {begin!r} and {end!r} once each")
        head, rest = page.split(begin)
        _, tail = rest.split(end)
        page = f"{head}{begin}\n\n{text}\n\n{end}{tail}"
    return page


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(rewritten(target.read_text(encoding="utf-8")), encoding="utf-8")
