"""`search schema`: the JSON Schema of the documents that people write."""

from typing import Annotated, Literal

import typer

from search.cli.options import OutputOption
from search.cli.output import json_text, save, write


def schema(
    document: Annotated[
        Literal["study", "encoder"],
        typer.Argument(help="Which document: a study file or an encoder spec."),
    ] = "study",
    output: OutputOption = None,
) -> None:
    """Print the JSON Schema of a study file, so that an editor completes and checks it.

    Third-party mixers that are installed here are part of it.
    """
    if document == "study":
        from search.spec.study import StudySpec

        described = StudySpec.model_json_schema()
    else:
        from mixers import EncoderSpec

        described = EncoderSpec.model_json_schema()
    text = json_text(described)
    if output is None:
        write(text)
    else:
        save(text, output)
