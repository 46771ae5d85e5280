"""Tables of the pages: columns that sort by a link, cells that lead on, pages of a long list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote, urlencode

from search.report.sections import Section

PAGE_SIZE = 50
LONG = 40
"""Characters from which a cell is a sentence that may take several lines."""
BADGES = ("verdict", "end")
"""Columns of a report whose words are badges on a page."""

Value = str | int | float | Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """The head of a column.

    Attributes:
        name: What stands in it.
        right: Whether its cells are numbers.
        wide: Whether its cells are sentences.
        href: Where a click on it leads, to sort by it.
        sorted: The order of the rows by it, in ARIA's words.
    """

    name: str
    right: bool = False
    wide: bool = False
    href: str = ""
    sorted: Literal["", "ascending", "descending"] = ""


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first cell of a row names it.

    Attributes:
        caption: What it shows, for those who do not see it.
        columns: The columns.
        rows: Their cells: text, or what `cell` makes.
        fits: Whether it is as wide as its content, not as the page.
        about: What its words mean.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...] = ()
    fits: bool = False
    about: str = ""


def cell(
    text: Any, *, href: str = "", kind: str = "", title: str = "", note: str = "", share: float = 0
) -> Value:
    """A cell that is more than text.

    Args:
        text: What it says.
        href: Where it leads.
        kind: `stack`, `state`, `moment` or `progress`; plain text by default.
        title: What a pointer on it shows.
        note: A remark behind it.
        share: How far a progress is, 0 to 1.
    """
    return {
        "text": text,
        "href": href,
        "kind": kind,
        "title": title,
        "note": note,
        "share": round(share, 4),
    }


def badge(text: str) -> Value:
    """A verdict or an end as a badge, with what explains it behind."""
    head, _, rest = text.partition(" (")
    return cell(head, kind="state", note=rest.removesuffix(")"))


def from_section(section: Section, *, fits: bool = False) -> Table:
    """A table of a report as a table of a page."""
    columns = tuple(
        Column(
            name.lstrip(">"),
            name.startswith(">"),
            wide=any(len(row[at]) > LONG for row in section.rows),
        )
        for at, name in enumerate(section.header)
    )
    are_badges = [column.name in BADGES for column in columns]
    rows = tuple(
        tuple(
            badge(text) if is_badge and text else text
            for text, is_badge in zip(row, are_badges, strict=True)
        )
        for row in section.rows
    )
    return Table(section.title, columns, rows, fits)


@dataclass(frozen=True)
class List:
    """One page of a long list, with the links to its other pages and orders.

    Attributes:
        path: The list's address.
        kept: Parameters of the address: filters and order.
        sort: `column`, or `-column` for the largest first.
        page: Counts from 1.
        total: Rows of all pages.
        size: Rows of a page.
    """

    path: str
    kept: Mapping[str, str] = field(default_factory=dict)
    sort: str = ""
    page: int = 1
    total: int = 0
    size: int = PAGE_SIZE

    @property
    def last_page(self) -> int:
        """Number of the last page; 1 for an empty list."""
        return max(1, -(-self.total // self.size))

    @property
    def span(self) -> str:
        """Which rows are shown: "51 to 100"."""
        first = (self.page - 1) * self.size + 1
        last = min(self.total, self.page * self.size)
        return f"{first} to {last}" if last >= first else "none"

    def href(self, page: int, sort: str | None = None) -> str:
        """The address of a page of this list."""
        order = self.sort if sort is None else sort
        given = {**self.kept, "sort": order, "page": str(page) if page > 1 else ""}
        query = urlencode({name: value for name, value in given.items() if value})
        return f"{self.path}?{query}" if query else self.path

    def column(
        self, name: str, key: str, *, right: bool = False, first: Literal["", "-"] = ""
    ) -> Column:
        """A column that a click sorts by.

        Args:
            name: What stands in it.
            key: Its name in the address.
            right: Whether its cells are numbers.
            first: The order that the first click gives.
        """
        order: Literal["", "ascending", "descending"] = ""
        if self.sort.removeprefix("-") == key:
            order = "descending" if self.sort.startswith("-") else "ascending"
        turned = {"ascending": f"-{key}", "descending": key, "": f"{first}{key}"}[order]
        return Column(name, right, href=self.href(1, turned), sorted=order)


def study_href(name: str, study_id: int, *more: str, **query: str) -> str:
    """The address of a study's page, or of one below it.

    A name that an address cannot hold is replaced by the study's id.
    """
    is_plain = "/" not in name and not name.isdigit() and name.strip(".") != ""
    parts = ["", "studies", quote(name, safe="") if is_plain else str(study_id), *more]
    return "/".join(parts) + (f"?{urlencode(query)}" if query else "")


def shown(cells: Sequence[Any]) -> tuple[Value, ...]:
    """Cells with a dash where there is nothing."""
    return tuple("-" if value is None or value == "" else value for value in cells)
