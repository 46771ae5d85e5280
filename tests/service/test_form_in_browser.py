"""The form of a new study in a real browser: fields and text are one study; keys suffice."""

from pathlib import Path

import pytest
from browser import BROWSER, Browser
from served import server_of

from search.spec.study import StudySpec
from search.spec.study_template import commented_yaml
from service.pages.study_text import START, document_of

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="needs a Chrome or Chromium"),
]
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


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def page(browser, tmp_path):
    with server_of(f"sqlite:///{tmp_path}/search.db", hub=True) as (address, _):
        found = browser.page()
        found.open(f"{address}/submit")
        found.wait("document.querySelector('[data-valid]')")
        yield found
        assert found.troubles == []
        found.close()


def field(*keys):
    """The selector of a field by the keys on the way to it."""
    return " ".join(["#fields", *(f"[data-key={key}]" for key in keys)])


def touch(page):
    """Lets the page believe that a field was changed, so that the text follows the fields."""
    page.value(
        "text.value = ''; fields.querySelector('input')"
        ".dispatchEvent(new Event('input', {bubbles: true}))"
    )
    page.wait("text.value && document.querySelector('[data-valid]') && !plan.disabled")
    return page.value("text.value")


def test__text__of_any_study__fields_hold_it_and_write_the_same_study(page):
    texts = (START, CONFIGS, commented_yaml(StudySpec()), LISTED.read_text(encoding="utf-8"))
    page.click("summary[data-text]")
    for text in texts:
        page.value("fields.replaceChildren()")
        page.type("#text", text)
        page.wait("fields.children.length")
        expected = StudySpec.model_validate(document_of(text))
        assert StudySpec.model_validate(document_of(touch(page))) == expected


def test__field__wrong__is_told_beside_it_and_right_again__shows_the_layers(page):
    steps = field("training", "steps")
    page.type(f"{steps} input", "many")
    page.wait(f"!document.querySelector('{steps} em').hidden")
    assert "valid integer" in page.value(f"document.querySelector('{steps} em').textContent")
    assert page.value(f"document.querySelector('{steps} input').ariaInvalid") == "true"
    assert page.value("plan.disabled && send.disabled")
    page.type(f"{steps} input", "60")
    page.wait("document.querySelector('[data-valid]')")
    assert page.value(f"document.querySelector('{steps} em').hidden")
    kernel = field("choices", "kernel_size")
    page.value(f"kernel = document.querySelector('{kernel} input'); kernel.value = '0'; 0")
    page.value("kernel.dispatchEvent(new Event('input', {bubbles: true}))")
    page.wait(f"document.querySelector('{kernel}').closest('details').open")  # it was folded
    page.type(f"{kernel} input", "7")
    page.type(f"{field('encoder', 'n_layers')} input", "2")
    page.wait("checked.textContent.includes('sepconv(kernel_size=7)')")
    assert page.value("document.querySelectorAll('.preview li').length") == 2
    assert document_of(page.value("text.value"))["training"] == {"steps": 60}


def test__list__by_keyboard__grows_and_shrinks_and_keeps_the_focus(page):
    choices = field("choices")
    page.value(
        f"document.querySelector('{choices} [data-kinds]').value = 'identity';"
        f"document.querySelector('{choices} [data-add]').focus()"
    )
    page.press("Enter")
    page.wait("checked.textContent.includes('identity')")
    assert page.value("document.activeElement.textContent") == "Remove identity"
    page.press("Enter")
    page.wait("!checked.textContent.includes('identity')")
    assert page.value("document.activeElement.textContent") == "Remove hardmax_shift"
    page.value(f"pick = document.querySelector('{field('task')} [data-pick]'); pick.value = 'mqar'")
    for kind in ("change", "input"):
        page.value(f"pick.dispatchEvent(new Event('{kind}', {{bubbles: true}}))")
    page.wait("checked.textContent.includes('mqar-')")
    assert page.value("document.querySelector('[data-variant=mlm]').hidden")
    assert document_of(page.value("text.value"))["task"] == "mqar"
