"""`search init`: a commented study file to start from."""

from pathlib import Path
from typing import Annotated

import typer

from search.cli.output import note


def init(
    data: Annotated[
        str | None,
        typer.Option(
            "--data", metavar="PATH|ID", help="Your text: a file, a folder or a Hugging Face id."
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The file to write.")
    ] = Path("study.yaml"),
) -> None:
    """Write a study file in which every setting is explained; an existing file is left alone."""
    from search.errors import InputError
    from search.spec.study_file import study_from
    from search.spec.study_template import commented_yaml

    task = {"kind": "mlm"} if data is None else {"kind": "mlm", "data": {"source": data}}
    text = commented_yaml(study_from({"task": task}))
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{output}: exists and was left as it is; name another with -o") from None
    note(f"wrote {output}; next: search run {output} --budget 20")
