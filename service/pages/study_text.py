"""A study's file as text, as people edit it, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from search.spec.study import StudySpec
from search.spec.study_file import parse_yaml, plain, study_from, yaml_file
from search.spec.study_template import commented_yaml
from service.problems import ProblemError

SOURCE = "the study"
EMPTY = "# Every setting has its default.\n"
START = """\
# What is left out has its default. Layers are chosen one by one from `choices`.
encoder:
  d_model: 64
  n_layers: 4
  d_ff: 256
space:
  choices: [attention(rotary=true), sepconv, bproj, average, hardmax_shift]
training:
  steps: 600
seed: 0
"""


def study_text(spec: Mapping[str, Any]) -> str:
    """A stored study as a file with its settings explained; bare where a mixer is missing here."""
    try:
        return commented_yaml(StudySpec.model_validate(dict(spec)))
    except ValidationError:
        return yaml_file(spec)


def text_of(document: Mapping[str, Any]) -> str:
    """A study's document as a file: a line for each setting, sections indented."""
    return yaml_file(document) or EMPTY


def document_of(text: str) -> dict[str, Any]:
    """Reads a study's file.

    Raises:
        InputError: It is no YAML or no valid study; one line a problem, with its line in the text.
        ProblemError: It is no mapping of settings.
    """
    marked = parse_yaml(text, source=SOURCE)
    document = plain(marked)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ProblemError(422, "a study is a mapping of settings, such as 'seed: 1'")
    study_from(document, source=SOURCE, marked=marked)
    return document
