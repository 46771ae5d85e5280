"""Local files and folders: plain text, JSON, JSON lines, CSV, TSV and Parquet."""

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mixers.registry import nearest
from search.data.documents import Document, documents_of_rows, split_at_headings
from search.errors import InputError

TEXT_ENDINGS = (".txt", ".tokens")
TABLE_ENDINGS = (".jsonl", ".json", ".tsv", ".csv", ".parquet")
ENDINGS = (*TEXT_ENDINGS, *TABLE_ENDINGS)


def read_local(path: Path, text_column: str) -> list[Document]:
    """Return the documents of a file or of all files below a folder, sorted by path.

    A text file is one document, or one per top-level WikiText heading; a table has one per row,
    and SQuAD's JSON one per article. A file named outright may have any ending: an unknown one is
    read as text.

    Raises:
        InputError: A file is missing, unreadable, not UTF-8 text, or lacks the column; a folder
            holds no file of a known ending.
    """
    if not path.is_dir():
        return read_file(path, path.name, text_column)
    files = sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in ENDINGS and file.is_file() and not hidden(file, path)
    )
    if not files:
        raise InputError(f"{path}: the folder holds no file ending in {', '.join(ENDINGS)}")
    return [
        document
        for file in files
        for document in read_file(file, file.relative_to(path).as_posix(), text_column)
    ]


def hidden(file: Path, root: Path) -> bool:
    """Whether the file or a folder on the way to it starts with a dot."""
    return any(part.startswith(".") for part in file.relative_to(root).parts)


def read_file(path: Path, name: str, text_column: str) -> list[Document]:
    """Return the documents of one file; `name` is what they are called."""
    if path.exists() and not path.is_file():
        # A pipe would keep us waiting for its writer, and a device may never end.
        raise InputError(f"{path}: is neither a file nor a folder; save the text in a file")
    ending = path.suffix.lower()
    if ending == ".parquet":
        return documents_of_rows(name, read_parquet(path, text_column))
    text = read_text(path)
    if ending not in TABLE_ENDINGS:
        return split_at_headings(name, text)
    if ending == ".json":
        return documents_of_json(path, name, text, text_column)
    if ending == ".jsonl":
        return documents_of_rows(name, column(path, json_lines(path, text), text_column))
    return documents_of_rows(name, read_table(path, text, text_column))


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, with or without a byte order mark.

    Raises:
        InputError: The file cannot be read, is empty, or is not UTF-8 text.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise InputError(missing_text(path)) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{path}: is UTF-16, not UTF-8; convert it, e.g. iconv -f UTF-16 -t UTF-8")
    if b"\0" in raw:
        at = raw.index(b"\0")
        raise InputError(f"{path}: is binary, not text (zero byte at offset {at}); give UTF-8 text")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: is not UTF-8 text (byte 0x{raw[error.start]:02x} at offset {error.start}); "
            "convert it, e.g. iconv -f LATIN1 -t UTF-8"
        ) from None
    if not text.strip():
        raise InputError(f"{path}: the file is empty; give a file with text")
    return text


def missing_text(path: Path) -> str:
    """Say that a path does not exist, with the nearest name beside it."""
    try:
        near = nearest(path.name, [other.name for other in path.parent.iterdir()])
    except OSError:
        near = None
    hint = f"; did you mean {path.parent / near}?" if near else "; check the path"
    return f"{path}: no such file or folder{hint}"


def documents_of_json(path: Path, name: str, text: str, text_column: str) -> list[Document]:
    """Return the documents of a JSON file: rows, {"data": rows}, SQuAD, or JSON lines."""
    try:
        content = json.loads(text)
    except ValueError:
        content = json_lines(path, text)
    if isinstance(content, dict) and isinstance(content.get("data"), list):
        content = content["data"]
    if not isinstance(content, list):
        content = [content]
    articles = [row for row in content if isinstance(row, dict) and "paragraphs" in row]
    if articles and len(articles) == len(content):
        return [squad_article(path, name, i, row) for i, row in enumerate(articles, start=1)]
    return documents_of_rows(name, column(path, content, text_column))


def squad_article(path: Path, name: str, number: int, article: dict[str, Any]) -> Document:
    """Return the contexts of one SQuAD article as one document."""
    try:
        contexts = [str(paragraph["context"]) for paragraph in article["paragraphs"]]
    except (KeyError, TypeError):
        raise InputError(f"{path}: article {number} has a paragraph without context") from None
    return Document(f"{name}#{article.get('title', number)}", "\n\n".join(contexts))


def json_lines(path: Path, text: str) -> list[Any]:
    """Return the values of a JSON lines text; blank lines are skipped."""
    rows = []
    # Only "\n" ends a line: JSON strings may hold U+2028, at which splitlines would break them.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise InputError(f"{path}: line {number} is not JSON: {error}") from None
    return rows


def column(path: Path, rows: Iterable[Any], text_column: str) -> list[str]:
    """Return one field of every row; plain strings are rows of their own."""
    texts = []
    for number, row in enumerate(rows, start=1):
        if isinstance(row, str):
            texts.append(row)
            continue
        if not isinstance(row, dict):
            raise InputError(f"{path}: row {number} is {type(row).__name__}, not an object")
        if text_column not in row:
            raise InputError(missing_column(f"{path}: row {number}", text_column, list(row)))
        texts.append(text_value(f"{path}: row {number}", text_column, row[text_column]))
    return texts


def text_value(where: str, text_column: str, value: Any) -> str:
    """Return a field as text; a missing value is an empty text.

    Raises:
        InputError: The field holds something else.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(
            f"{where}: column {text_column!r} holds {type(value).__name__}, not text; "
            "name another with text_column"
        )
    return value


def missing_column(where: str, text_column: str, columns: list[str]) -> str:
    """Say that a column is missing, with the nearest name and all there are."""
    near = nearest(text_column, columns)
    hint = f"did you mean {near!r}? " if near else ""
    return (
        f"{where} has no column {text_column!r}; {hint}set text_column to one of: "
        f"{', '.join(map(str, columns)) or 'none'}"
    )


def read_table(path: Path, text: str, text_column: str) -> list[str]:
    """Return one column of a CSV or TSV file with a header line."""
    tabs = path.suffix.lower() == ".tsv"
    csv.field_size_limit(2**31 - 1)
    # TSV as published (GLUE, ListOps) has bare quotes; CSV quotes fields with commas.
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter="\t" if tabs else ",",
        quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL,
    )
    try:
        header = next(reader)
        if text_column not in header:
            raise InputError(missing_column(f"{path}: the header", text_column, header))
        at = header.index(text_column)
        return [row[at] if at < len(row) else "" for row in reader]
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num} is not {path.suffix}: {error}") from None


def read_parquet(path: Path, text_column: str) -> list[str]:
    """Return one column of a Parquet file."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(
            f"{path}: reading Parquet needs pyarrow; run `pip install pyarrow`"
        ) from None
    if not path.exists():
        raise InputError(missing_text(path))
    try:
        names = pq.read_schema(path).names
        if text_column not in names:
            raise InputError(missing_column(f"{path}: the table", text_column, names))
        values = pq.read_table(path, columns=[text_column]).column(0).to_pylist()
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: is not a readable Parquet file: {reason}") from None
    return [text_value(str(path), text_column, value) for value in values]
