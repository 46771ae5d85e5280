"""Text of Hugging Face datasets: streamed up to a limit, then kept, so that it is read once."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from search.data.cache import cached
from search.data.documents import Document, cut_words, documents_of_rows
from search.data.local import missing_column, text_value
from search.data.spec import DataSpec
from search.errors import InputError

HUB_MAX_TOKENS = 5_000_000
"""Words read of a dataset unless `max_tokens` says otherwise: some 30 MB of English text."""
TIMEOUT_S = 5.0


@dataclass(frozen=True)
class HubName:
    """Where a dataset lies today and what to take of it unless the spec says so.

    `joined` marks datasets whose rows are sentences of running text rather than documents.
    """

    dataset: str
    subset: str | None = None
    revision: str | None = None
    joined: bool = False


# `datasets` >= 4 runs no loading scripts, and with them went the short names.
SHORT_NAMES = {
    "wikitext": HubName("Salesforce/wikitext", "wikitext-2-raw-v1"),
    "wikipedia": HubName("wikimedia/wikipedia", "20231101.en"),
    "bookcorpus": HubName("bookcorpus/bookcorpus", revision="refs/convert/parquet", joined=True),
    "glue": HubName("nyu-mll/glue", "mnli"),
    "snli": HubName("stanfordnlp/snli"),
    "squad": HubName("rajpurkar/squad"),
}


def hub_name(spec: DataSpec) -> HubName:
    """Return the dataset that a spec means, with the spec's own subset and revision first."""
    known = SHORT_NAMES.get(spec.source.lower())
    if known is None:
        known = next(
            (name for name in SHORT_NAMES.values() if name.dataset == spec.source),
            HubName(spec.source),
        )
    return HubName(
        known.dataset,
        spec.subset or known.subset,
        spec.revision or known.revision,
        known.joined,
    )


def read_hub(spec: DataSpec, cache_dir: Path) -> tuple[list[Document], str]:
    """Return the documents of a dataset's training split, and what they are.

    The text is streamed at the first call and kept in the cache; later calls need no network.

    Raises:
        InputError: No network, no such dataset, subset or column, or the stream broke.
    """
    name = hub_name(spec)
    limit = spec.max_tokens or HUB_MAX_TOKENS
    key = [name.dataset, name.subset, name.revision, spec.text_column, limit]
    entry = "hub-" + hashlib.sha256(json.dumps(key).encode()).hexdigest()[:24]

    def build(folder: Path) -> None:
        texts = list(limited(stream(name, spec.text_column), limit))
        (folder / "rows.json").write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")

    texts: list[str] = cached(cache_dir, entry, build, read_rows)
    source = f"{name.dataset}{f' ({name.subset})' if name.subset else ''}, first {limit:,} words"
    if name.joined:
        return [Document(name.dataset, "\n".join(texts))], source
    return documents_of_rows(name.dataset, texts), source


def read_rows(folder: Path) -> list[str]:
    """Read a cached dataset's texts."""
    rows: list[str] = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
    return rows


def limited(texts: Iterable[str], max_words: int) -> Iterator[str]:
    """Yield texts until they have `max_words` words in all; the last one is cut."""
    left = max_words
    for text in texts:
        words = len(text.split())
        yield text if words <= left else cut_words(Document("", text), left).text
        left -= words
        if left <= 0:
            return


def stream(name: HubName, text_column: str) -> Iterator[str]:
    """Yield the text of each row of a dataset's training split over the network.

    Raises:
        InputError: See `read_hub`.
    """
    ask_hub(name)
    import datasets

    try:
        splits = datasets.load_dataset(
            name.dataset, name.subset, revision=name.revision, streaming=True
        )
        rows = splits["train"] if "train" in splits else splits[next(iter(splits))]
        yield from texts_of(f"dataset {name.dataset!r}", rows, text_column)
    except InputError:
        raise
    except Exception as error:  # the library raises errors of many kinds and libraries
        raise InputError(
            f"data.source {name.dataset!r}: the dataset cannot be read: {one_line(error)}"
        ) from None


def texts_of(where: str, rows: Iterable[Mapping[str, Any]], text_column: str) -> Iterator[str]:
    """Yield one column of rows.

    Raises:
        InputError: The column is missing or holds no text.
    """
    for row in rows:
        if text_column not in row:
            raise InputError(missing_column(where, text_column, list(row)))
        yield text_value(where, text_column, row[text_column])


def ask_hub(name: HubName) -> None:
    """Ask the Hub once, with a short timeout, whether the dataset is there.

    `datasets` alone retries for some 25 seconds before it says that there is no network.

    Raises:
        InputError: It cannot be reached, or has no such dataset.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    try:
        HfApi().dataset_info(name.dataset, revision=name.revision, timeout=TIMEOUT_S)
    except (RepositoryNotFoundError, HFValidationError):
        raise InputError(
            f"data.source {name.dataset!r}: neither a file or folder here nor a dataset on the "
            "Hugging Face Hub (private ones need `hf auth login`)"
        ) from None
    except HfHubHTTPError as error:
        raise InputError(
            f"data.source {name.dataset!r}: the Hugging Face Hub refused: {one_line(error)}"
        ) from None
    except Exception as error:  # any network failure of whatever HTTP library is underneath
        raise InputError(
            f"data.source {name.dataset!r}: no such file or folder here, and the Hugging Face Hub "
            f"cannot be reached ({one_line(error)}); name a local file or folder",
            command="--data PATH",
        ) from None


def one_line(error: BaseException) -> str:
    """Return an error's first line, or its type's name."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
