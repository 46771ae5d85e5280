"""Documents, and where one ends and the next begins."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# WikiText's top-level heading: "= Title =", but neither "= = Section = =" nor "== Section ==".
HEADING = re.compile(r"^[ \t]*= (?!=)(?P<title>[^=\n]*[^=\s]) =[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Document:
    """One text that belongs together; `name` says where it stands."""

    name: str
    text: str


@dataclass(frozen=True)
class Corpus:
    """All documents of a source, in a fixed order.

    Attributes:
        documents: Distinct, non-blank texts.
        source: Where they come from, in words.
        n_dropped: Blank or repeated documents that were left out.
    """

    documents: tuple[Document, ...]
    source: str
    n_dropped: int = 0

    @property
    def sha256(self) -> str:
        """Hash of the texts and their order; names do not count."""
        total = hashlib.sha256()
        for document in self.documents:
            text = document.text.encode()
            total.update(len(text).to_bytes(8, "little"))
            total.update(text)
        return total.hexdigest()


def collect(documents: Iterable[Document], source: str) -> Corpus:
    """Return a corpus without blank and repeated texts.

    A text that stood twice could fall into both the training and a held-out split.
    """
    kept: dict[str, Document] = {}
    n_read = 0
    for document in documents:
        n_read += 1
        text = document.text.strip()
        if text:
            kept.setdefault(text, Document(document.name, text))
    return Corpus(tuple(kept.values()), source, n_dropped=n_read - len(kept))


def split_at_headings(name: str, text: str) -> list[Document]:
    """Return one document per top-level WikiText heading; the whole text if there are fewer than 2.

    What stands before the first heading is a document of its own.
    """
    headings = list(HEADING.finditer(text))
    if len(headings) < 2:
        return [Document(name, text)]
    starts = [heading.start() for heading in headings]
    found = [Document(name, text[: starts[0]])]
    for heading, start, end in zip(headings, starts, [*starts[1:], len(text)], strict=True):
        found.append(Document(f"{name}#{heading['title'].strip()}", text[start:end]))
    return [document for document in found if document.text.strip()]


def documents_of_rows(name: str, rows: Sequence[str]) -> list[Document]:
    """Return one document per row, or per article where rows are the lines of WikiText."""
    if sum(HEADING.fullmatch(row.strip("\r\n")) is not None for row in rows) >= 2:
        return split_at_headings(name, "\n".join(rows))
    return [Document(f"{name}:{row}", text) for row, text in enumerate(rows, start=1)]


def limit_words(documents: Sequence[Document], max_words: int | None) -> list[Document]:
    """Return documents with about `max_words` words (runs between white space) in all.

    Documents are taken whole, in the order of a hash of their text (so that a sorted folder is
    not cut at one end), and returned in their own order; the one that reaches the limit is cut.
    """
    if max_words is None:
        return list(documents)
    order = sorted(
        range(len(documents)),
        key=lambda i: hashlib.sha256(documents[i].text.encode()).digest(),
    )
    kept: dict[int, Document] = {}
    left = max_words
    for i in order:
        if left <= 0:
            break
        words = documents[i].text.split()
        kept[i] = documents[i] if len(words) <= left else cut_words(documents[i], left)
        left -= len(words)
    return [kept[i] for i in sorted(kept)]


def cut_words(document: Document, n_words: int) -> Document:
    """Return the document's first `n_words` words with the white space between them."""
    end = 0
    for match, _ in zip(re.finditer(r"\S+", document.text), range(n_words), strict=False):
        end = match.end()
    return Document(document.name, document.text[:end])
