"""The form of a new study in a real browser: fields and text are one study; keys suffice."""

from pathlib import Path

import pytest
from browser import opened
from playwright.sync_api import expect
from served import server_of

from search.spec.study import StudySpec
from search.spec.study_template import commented_yaml
from service.pages.study_text import START, document_of

LISTED = Path(__file__).parents[2] / "examples" / "studies" / "as4.yaml"
CONFIGS = """\
task: {kind: mqar, n_pairs: 4}
encoder:
  activation: {kind: piecewise_linear, breakpoints: [0.5], slopes: [0, 1], intercepts: [0, 1]}
  bias: false
space:
  choices: [attention, sepconv(kernel_size=9), sepconv, "sparse_attention(pattern=star)"]
  layers:
    - {layer: 0, choices: [identity, "hardmax_shift(rule=sign)"]}
limits: {max_params: 1e6}
training: {sweep_rates: [1e-3, 0.02], precision: "32"}
recipe: sweep
recall: false
strategy: {name: tpe, options: {multivariate: true, n_startup_trials: 5}}
rungs: [100, 200]
"""


@pytest.fixture
def page(browser, tmp_path):
    url = f"sqlite:///{tmp_path}/search.db"
    with server_of(url, hub=True) as (address, _), opened(browser) as found:
        found.goto(f"{address}/submit")
        expect(found.locator("[data-valid]")).to_be_visible()
        yield found


def group(page, name):
    """A group of fields by its title."""
    return page.get_by_role("group", name=name, exact=True)


def text_of(page):
    return page.locator("#text").input_value()


def touch(page):
    """Lets the page believe that a field was changed, so that the text follows the fields."""
    page.evaluate(
        "text.value = ''; fields.querySelector('input')"
        ".dispatchEvent(new Event('input', {bubbles: true}))"
    )
    expect(page.locator("#text")).not_to_have_value("")
    expect(page.get_by_role("button", name="Plan")).to_be_enabled()
    return text_of(page)


def test__text__of_any_study__fields_hold_it_and_write_the_same_study(page):
    texts = (START, CONFIGS, commented_yaml(StudySpec()), LISTED.read_text(encoding="utf-8"))
    page.get_by_text("As text", exact=True).click()
    for text in texts:
        page.evaluate("fields.replaceChildren()")
        page.get_by_label("The same study as a file").fill(text)
        expect(page.locator("#fields > *")).not_to_have_count(0)
        expected = StudySpec.model_validate(document_of(text))
        assert StudySpec.model_validate(document_of(touch(page))) == expected


def test__field__wrong__is_told_beside_it_and_right_again__shows_the_layers(page):
    training, checked = group(page, "training"), page.locator("#checked")
    steps = training.get_by_label("steps").first
    told = training.locator("[data-key=steps] em")
    steps.fill("many")
    expect(told).to_contain_text("valid integer")
    expect(steps).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Plan")).to_be_disabled()
    expect(page.get_by_role("button", name="Submit")).to_be_disabled()
    steps.fill("60")
    expect(page.locator("[data-valid]")).to_be_visible()
    expect(told).to_be_hidden()
    kernel = group(page, "choices").get_by_label("kernel_size").first
    expect(kernel).to_be_hidden()  # it is folded
    kernel.evaluate(
        "it => { it.value = '0'; it.dispatchEvent(new Event('input', {bubbles: true})) }"
    )
    expect(kernel).to_be_visible()
    kernel.fill("7")
    group(page, "encoder").get_by_label("n_layers").fill("2")
    expect(checked).to_contain_text("sepconv(kernel_size=7)")
    expect(page.get_by_label("Choices of each layer").get_by_role("listitem")).to_have_count(2)
    assert document_of(text_of(page))["training"] == {"steps": 60}


def test__list__by_keyboard__grows_and_shrinks_and_keeps_the_focus(page):
    choices, checked = group(page, "choices"), page.locator("#checked")
    choices.get_by_label("What to add").select_option("identity")
    choices.get_by_role("button", name="Add").focus()
    page.keyboard.press("Enter")
    expect(checked).to_contain_text("identity")
    expect(choices.get_by_role("button", name="Remove identity")).to_be_focused()
    page.keyboard.press("Enter")
    expect(checked).not_to_contain_text("identity")
    expect(choices.get_by_role("button", name="Remove hardmax_shift")).to_be_focused()
    task = group(page, "task")
    task.get_by_label("kind").first.select_option("mqar")
    expect(checked).to_contain_text("mqar-")
    expect(task.locator("[data-variant=mlm]")).to_be_hidden()
    assert document_of(text_of(page))["task"] == "mqar"
