from hypothesis import given, settings
from hypothesis import strategies as st

from search.spec.study_file import parse_yaml, plain, to_yaml_text, yaml_file

TEXTS = st.text(max_size=8)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.text("?:-[]{},#&*!|>'\"%@` 0a", max_size=4)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS.filter(bool), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(value=VALUES)
def test__to_yaml_text__any_value__reads_back_as_it_was(value) -> None:
    assert plain(parse_yaml(to_yaml_text(value))) == value


@settings(deadline=None)
@given(st.dictionaries(TEXTS.filter(bool), VALUES, min_size=1, max_size=4))
def test__yaml_file__any_document__reads_back_as_it_was(document) -> None:
    assert plain(parse_yaml(yaml_file(document))) == document


def test__yaml_file__study__is_a_line_for_each_setting() -> None:
    document = {"seed": 0, "task": {"data": {"source": "sotu"}}, "list": [{"a": 1}, 2], "none": {}}
    assert yaml_file(document).splitlines() == [
        "seed: 0",
        "task:",
        "  data:",
        "    source: sotu",
        "list:",
        "  - {a: 1}",
        "  - 2",
        "none: {}",
    ]
