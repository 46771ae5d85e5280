import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from search.data.load import load_corpus
from search.data.spec import DataSpec
from search.errors import InputError

TEXTS = ["first text, with a comma", "second\u2028text", 'third "quoted" text']


def write_table(path: Path) -> None:
    """Writes TEXTS in the format that the ending names, beside another column."""
    rows = [{"id": i, "body": text} for i, text in enumerate(TEXTS)]
    match path.suffix:
        case ".jsonl":
            lines = [json.dumps(row, ensure_ascii=False) for row in rows]
            path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
        case ".json":
            path.write_text(json.dumps(rows), encoding="utf-8")
        case ".tsv":
            lines = ["id\tbody", *(f"{row['id']}\t{row['body']}" for row in rows)]
            path.write_text("\n".join(lines), encoding="utf-8")
        case ".csv":
            quoted = ['"' + text.replace('"', '""') + '"' for text in TEXTS]
            lines = ["id,body", *(f"{i},{text}" for i, text in enumerate(quoted))]
            path.write_text("\n".join(lines), encoding="utf-8")
        case ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)


def read(path: Path, **fields: object) -> list[str]:
    spec = DataSpec.model_validate({"source": str(path), **fields})
    return [document.text for document in load_corpus(spec, path.parent / "cache").documents]


def refusal(path: Path, **fields: object) -> str:
    with pytest.raises(InputError) as caught:
        read(path, **fields)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    return text


@pytest.mark.parametrize("ending", ["jsonl", "json", "tsv", "csv", "parquet"])
def test__read_local__each_table_format__same_texts(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"data.{ending}"
    write_table(path)
    assert read(path, text_column="body") == TEXTS


@pytest.mark.parametrize("ending", ["jsonl", "json", "tsv", "csv", "parquet"])
def test__read_local__missing_column__nearest_name(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"data.{ending}"
    write_table(path)
    text = refusal(path, text_column="bodi")
    assert "no column 'bodi'" in text
    assert "did you mean 'body'" in text
    assert "id, body" in text


def test__read_local__column_of_numbers__refused(tmp_path: Path) -> None:
    write_table(tmp_path / "data.jsonl")
    assert "holds int" in refusal(tmp_path / "data.jsonl", text_column="id")


def test__read_local__squad_json__one_document_per_article(tmp_path: Path) -> None:
    paragraphs = [{"context": "One.", "qas": []}, {"context": "Two.", "qas": []}]
    articles = [{"title": "T", "paragraphs": paragraphs}, {"paragraphs": [{"context": "Three."}]}]
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"version": "1.1", "data": articles}), encoding="utf-8")
    assert read(path) == ["One.\n\nTwo.", "Three."]


def test__read_local__folder__sorted_files_of_known_endings(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    (folder / "b").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "b" / "x.txt").write_text("later", encoding="utf-8")
    (folder / "a.tokens").write_text("earlier", encoding="utf-8")
    (folder / "README.md").write_text("not data", encoding="utf-8")
    (folder / ".git" / "y.txt").write_text("hidden", encoding="utf-8")
    assert read(folder) == ["earlier", "later"]


def test__read_local__file_of_unknown_ending__is_text(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("some notes", encoding="utf-8")
    assert read(tmp_path / "notes.md") == ["some notes"]


def test__read_local__byte_order_mark__is_not_text(tmp_path: Path) -> None:
    (tmp_path / "bom.txt").write_bytes(b"\xef\xbb\xbfabc")
    assert read(tmp_path / "bom.txt") == ["abc"]


def test__read_local__missing_file__nearest_name(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("text", encoding="utf-8")
    text = refusal(tmp_path / "corpsu.txt")
    assert "no such file" in text
    assert str(tmp_path / "corpus.txt") in text


def test__read_local__missing_folder_above__one_line(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "nowhere" / "corpus.txt")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"PK\x03\x04\x00\x00text", "binary"),
        (b"caf\xe9 au lait", "byte 0xe9 at offset 3"),
        ("utf sixteen".encode("utf-16"), "UTF-16"),
    ],
)
def test__read_local__not_utf8_text__says_what(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    assert words in refusal(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("bad.jsonl", '{"text": "a"}\n{"text": ', "line 2 is not JSON"),
        ("rows.jsonl", "[1, 2]\n", "row 1 is list"),
        ("bad.parquet", "no parquet", "not a readable Parquet file"),
        ("squad.json", '{"data": [{"paragraphs": [{}]}]}', "article 1"),
    ],
)
def test__read_local__broken_table__says_where(
    tmp_path: Path, name: str, content: str, words: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert words in refusal(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["pipe.txt", "pipe.parquet"])
def test__read_local__pipe__refused_without_waiting(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    assert "neither a file nor a folder" in refusal(tmp_path / name)


def test__read_local__folder_without_texts__lists_endings(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert ".parquet" in refusal(tmp_path / "empty")


def test__read_local__wikitext__sixty_articles(test_data: Path) -> None:
    # grep -cE "^ = [^=].* = $" says 60.
    texts = read(test_data / "wikitext-2" / "wiki.valid.tokens")
    assert len(texts) == 60
    assert all(text.lstrip().startswith("= ") for text in texts)


def test__read_local__squad_and_mnli__texts_of_the_named_column(test_data: Path) -> None:
    assert len(read(test_data / "squad" / "dev-v1.1.json")) == 32
    premises = read(test_data / "mnli" / "dev_mismatched.jsonl", text_column="sentence1")
    lines = (test_data / "mnli" / "dev_mismatched.jsonl").read_text(encoding="utf-8").splitlines()
    assert set(premises) == {json.loads(line)["sentence1"].strip() for line in lines}
