import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from simulated import ATTENTION, Simulation, question, row

from search.figures.shown import script_json
from search.report.about import About, letters_of
from search.report.chapters import CHAPTERS
from search.report.markdown import render_markdown
from search.report.page import render_html
from search.report.paragraph import paragraph

A, S = ATTENTION, "sepconv"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & [a](javascript:b) `|*"
FACTS = {"mixsearch": "0.1.0", "torch": "2.13.0", "device": "cpu"}


def made(budget=24, **changes):
    simulation = Simulation(
        lambda layers: 3.0 - 0.05 * layers.count(S) + 0.1 * (4 - len(layers)),
        lambda layers: 0.01,
        asked=question(**changes),
        seed=4,
    )
    if budget:
        simulation.run(budget)
    return simulation


def page(simulation, **about):
    return render_html(simulation.answer(), simulation.rows, About(**({"study": "demo"} | about)))


class Outline(HTMLParser):
    """Tags with their attributes, visible text, and the text of data scripts."""

    VOID = frozenset({"meta", "link", "br", "img"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.texts, self.data = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        tag, attributes = self.open[-1] if self.open else ("", {})
        if tag == "script" and attributes.get("type") == "application/json":
            self.data.append(json.loads(data))
        elif tag not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def all(self, wanted):
        return [attributes for tag, attributes in self.tags if tag == wanted]


@pytest.mark.parametrize("budget", [0, 1, 3, 6, 24])
def test__render_html__any_budget__well_formed_and_needs_no_network(budget):
    simulation = made(budget)
    text = page(simulation)
    outline = Outline(text)
    assert not outline.open
    loaded = [tag for tag in outline.tags if {"src", "srcset"} & tag[1].keys()]
    assert not loaded
    assert all(link["href"].startswith(("#", "data:")) for link in outline.all("link"))
    assert text.count("plotly.js v") <= 1 + (budget > 0)
    assert "@import" not in text.split("<script")[0]
    assert paragraph(simulation.answer()) in outline.text


def test__render_html__structure__headings_in_steps_tables_with_scopes_figures_with_text():
    outline = Outline(page(made(36), facts=FACTS))
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert all(cell["scope"] in ("col", "row") for cell in outline.all("th"))
    assert len(outline.all("caption")) == len(outline.all("table")) > 3
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for figure in [a for a in outline.all("div") if a.get("class") == "plot"]:
        assert figure["aria-label"]
        assert figure["aria-describedby"] in ids
    targets = [link["href"].removeprefix("#") for link in outline.all("a")]
    assert set(targets) <= set(ids)
    assert len(outline.data) == len(outline.all("figcaption")) >= 5


def test__render_html__chapters__in_the_order_of_the_list():
    outline = Outline(page(made(24)))
    anchors = [a["href"].removeprefix("#") for a in outline.all("a")[1:]]
    assert anchors == [*(chapter.key for chapter in CHAPTERS), "reproduce", "words"]


def test__render_html__hostile_names_and_errors__shown_and_never_run():
    simulation = made(24, task=HOSTILE, recipe=HOSTILE)
    rows = [replace(entry, notation=HOSTILE, code="<b>") for entry in simulation.rows]
    rows.append(row(len(rows), (A,) * 4, state="failed", error=HOSTILE))
    simulation.rows = rows
    text = page(
        simulation, study=HOSTILE, spec={"name": HOSTILE}, facts={HOSTILE: HOSTILE}, store=HOSTILE
    )
    outline = Outline(text)
    assert not outline.all("img")
    assert len(outline.all("script")) == len(outline.data) + 2
    assert outline.text.count(HOSTILE) >= 5
    tags = {tag for tag, _ in outline.tags}
    assert "b" not in tags


def test__render_markdown__hostile_names_and_errors__no_markup_of_theirs():
    simulation = made(24, task=HOSTILE)
    simulation.rows.append(row(99, (A,) * 4, state="failed", error=HOSTILE))
    text = render_markdown(
        simulation.answer(), About(study=HOSTILE, spec={"a": "```\n# no"}, facts={"x": HOSTILE})
    )
    outside = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"(?<!\\)<", outside)
    assert "](javascript" not in outside
    assert not re.search(r"^# no", outside, flags=re.MULTILINE)


def test__render_markdown__order__that_of_the_page():
    simulation = made(24)
    text = render_markdown(simulation.answer(), About(study="demo", facts=FACTS))
    headings = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert headings == [*(chapter.title for chapter in CHAPTERS), "How to reproduce", "Words"]
    assert text.index("**For the task") < text.index("## Verdicts")


@pytest.mark.parametrize("say", [page, lambda s, **a: render_markdown(s.answer(), About(**a))])
def test__report__how_to_reproduce__commands_seeds_versions_fingerprint(say):
    text = say(
        made(6),
        study="my study",
        store="postgresql://me:secret@db/runs",
        spec={"seed": 7, "task": {"kind": "mlm"}},
        fingerprint="20425cfc",
        seeds=(7, 8),
        facts=FACTS,
    ).replace("&#39;", "'")
    assert "pip install mixsearch==0.1.0" in text
    assert (
        "search run study.yaml --name 'my study' --budget 6 --store 'postgresql://me:***@db/runs'"
        in text
    )
    assert "secret" not in text
    for fact in ("20425cfc", "2.13.0", "7, 8"):
        assert fact in text


def test__report__failures__grouped_with_their_cause():
    simulation = made(6)
    for number in (50, 51):
        simulation.rows.append(row(number, (A,) * 4, state="failed", error="ValueError: boom"))
    text = Outline(page(simulation)).text
    assert "failed ValueError: boom 2 AAAA 50" in text


def test__letters_of__codes__every_mixer_of_a_letter_once():
    rows = [row(0, (A, S)), row(1, (S, S)), replace(row(2, ("attention", S)), code="AS")]
    assert letters_of(rows) == {"A": (A, "attention"), "S": (S,)}
    assert letters_of([replace(row(0, (A, S)), code="")]) == {}


def test__report__letters__explained_beside_the_answer():
    simulation = made(6)
    about = About("demo", letters=letters_of(simulation.rows))
    text = Outline(render_html(simulation.answer(), simulation.rows, about)).text
    assert f"letters: A = {A}; " in text.split("Verdicts")[0]


def test__script_json__text_that_ends_a_script__cannot():
    text = script_json({"a": "</script><!--&"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"a": "</script><!--&"}
