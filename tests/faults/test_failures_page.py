"""docs/failures.md promises nothing without a test."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "failures.md"
ROW = re.compile(r"^\| (?!fault|---)(.+?) \| (.+?) \| `(tests/[\w/]+\.py)(?:::(\w+))?` \|$")


def test__failures_page__every_line__names_a_test_that_exists():
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    rows = [line for line in lines if not line.startswith("| fault")]
    matched = [ROW.match(line) for line in rows]
    assert len(rows) >= 20
    assert all(matched), [row for row, match in zip(rows, matched, strict=True) if not match]
    for match in matched:
        file, name = match[3], match[4]
        assert (ROOT / file).is_file(), file
        if name:
            assert f"def {name}(" in (ROOT / file).read_text(), (file, name)
