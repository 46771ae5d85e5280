"""A study's document as a text for people: it reads back as it was."""

from hypothesis import given, settings
from hypothesis import strategies as st

from search.spec.study_file import parse_yaml, plain
from service.pages.study_text import text_of

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
# What names, notation and paths consist of; ruamel.yaml writes "?0" in a way it reads otherwise.
TEXTS = st.text("aZ\u00e9 09_.,:;/\\()[]{}=*&#!%@'\"|<>~+-", max_size=9)
KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)  # as settings are called
VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)  # the first example loads the parser
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test__text_of__any_document__reads_back_as_it_was(document):
    assert plain(parse_yaml(text_of(document))) == document
