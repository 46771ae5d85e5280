import os
import subprocess
import sys
import time
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from search.data.hub import HubName, hub_name, limited, texts_of
from search.data.spec import DataSpec
from search.errors import InputError

OFFLINE = """
import pathlib, sys
from search.data.load import load_corpus
from search.data.spec import DataSpec
from search.errors import InputError
try:
    load_corpus(DataSpec(source="acme/texts"), pathlib.Path(sys.argv[1]))
except InputError as error:
    print(error, error.command)
"""


def test__load_corpus__no_network__one_line_that_names_the_local_way_soon(tmp_path: Path) -> None:
    # Nothing listens on port 9 of this machine: a network that refuses at once.
    env = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0"}
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(tmp_path)],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.count("\n") == 1
    assert "acme/texts" in done.stdout
    assert "cannot be reached" in done.stdout
    assert "name a local file or folder --data PATH" in done.stdout
    assert done.stderr == ""
    # Not a matter of speed: `datasets` alone retries for 23 seconds and more.
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            DataSpec(source="wikitext"),
            HubName("Salesforce/wikitext", "wikitext-2-raw-v1"),
        ),
        (
            DataSpec(source="wikitext", subset="wikitext-103-raw-v1"),
            HubName("Salesforce/wikitext", "wikitext-103-raw-v1"),
        ),
        (
            DataSpec(source="bookcorpus"),
            HubName("bookcorpus/bookcorpus", None, "refs/convert/parquet", joined=True),
        ),
        (
            DataSpec(source="wikimedia/wikipedia", revision="abc"),
            HubName("wikimedia/wikipedia", "20231101.en", "abc"),
        ),
        (DataSpec(source="acme/texts"), HubName("acme/texts")),
    ],
)
def test__hub_name__short_and_full_names__where_they_lie_today(
    spec: DataSpec, expected: HubName
) -> None:
    assert hub_name(spec) == expected


def test__limited__stream__stops_at_the_limit_and_reads_no_further() -> None:
    read = []

    def rows() -> "object":
        for i in range(1_000_000):
            read.append(i)
            yield "four words are here"

    assert list(limited(rows(), 10)) == ["four words are here"] * 2 + ["four words"]  # type: ignore[arg-type]
    assert len(read) == 3


def stream_of_parquet(folder: Path) -> datasets.IterableDataset:
    """Returns a streaming dataset over a real file, as a Hub dataset streams."""
    pq.write_table(pa.Table.from_pylist([{"body": "one"}, {"body": None}]), folder / "x.parquet")
    return datasets.load_dataset(
        "parquet",
        data_files=str(folder / "x.parquet"),
        split="train",
        streaming=True,
        cache_dir=str(folder / "hf"),
    )


def test__texts_of__streaming_dataset__the_column(tmp_path: Path) -> None:
    assert list(texts_of("d", stream_of_parquet(tmp_path), "body")) == ["one", ""]


def test__texts_of__missing_column__nearest_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'body'"):
        list(texts_of("dataset 'd'", stream_of_parquet(tmp_path), "Body2"))
