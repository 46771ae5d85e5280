import re
from pathlib import Path

from search.cli.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "commands.md"


def test__commands_page__is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "run: python -m search.cli.reference > docs/commands.md"
    )


def test__help__no_angle_brackets__which_markdown_and_terminals_take_for_tags() -> None:
    assert re.findall(r"<[^!].*?>", reference()) == []
