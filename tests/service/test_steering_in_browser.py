"""Who logs in by the form steers a study by its buttons."""

from browser import opened, violations
from playwright.sync_api import expect
from served import make_token, server_of

from search.store.repo import Store


def test__login__token_in_the_form__cookie_that_scripts_cannot_read(browser, filled):
    token = make_token(filled, "submit", "ann")
    with server_of(filled) as (address, _), opened(browser, told=("401",)) as page:
        page.goto(f"{address}/studies/demo")
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("token")
        page.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        page.wait_for_url("**/studies/demo")
        assert token not in page.evaluate("document.cookie")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("demo paused")
        asked = []
        page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
        page.get_by_role("button", name="Stop for good").click()
        assert "End demo for good" in asked[0]
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")
    with Store.open(filled) as store:
        assert store.study("demo").state == "paused"


def test__budget__of_a_study_that_has_ended__lets_it_go_on(browser, filled):
    with Store.open(filled) as store:
        store.set_study_state(store.study("demo").id, "completed", "budget")
    with server_of(filled) as (address, _), opened(browser) as page:
        page.goto(f"{address}/studies/demo/leaderboard")
        expect(page.get_by_text("completed: the budget is used up")).to_be_visible()
        expect(page.get_by_role("button", name="Pause")).to_be_hidden()
        page.get_by_role("button", name="Budget", exact=True).click()
        page.get_by_role("dialog").get_by_label("All in all").fill("50")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("demo idle")
    with Store.open(filled) as store:
        assert (store.study("demo").state, store.study("demo").budget) == ("running", "50")


def test__budget__dialog__says_what_is_wrong_and_gives_the_focus_back(browser, filled):
    with server_of(filled) as (address, _), opened(browser, dark=True, told=("422",)) as page:
        page.goto(f"{address}/studies/demo")
        opener = page.get_by_role("button", name="Budget", exact=True)
        dialog = page.get_by_role("dialog", name="Budget of demo")
        field = dialog.get_by_label("All in all")
        expect(dialog).to_be_hidden()

        opener.focus()
        page.keyboard.press("Enter")
        expect(field).to_be_focused()
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(opener).to_be_focused()

        page.keyboard.press("Enter")
        for name in ("Set budget", "Cancel"):
            page.keyboard.press("Tab")
            expect(dialog.get_by_role("button", name=name)).to_be_focused()
        page.keyboard.press("Enter")
        expect(dialog).to_be_hidden()
        expect(opener).to_be_focused()

        page.keyboard.press("Enter")
        field.fill("many")
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("alert")).to_contain_text("budget: 'many' is not understood")
        expect(field).to_be_focused()
        expect(field).to_have_attribute("aria-invalid", "true")
        assert violations(page) == []
        page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("alert")).to_be_hidden()  # of another time

        with Store.open(filled) as store:  # the buttons are replaced while one types
            store.change_state(store.study("demo").id, "paused")
        expect(page.get_by_role("heading", level=1)).to_have_text("demo paused")
        field.fill("2h")
        dialog.get_by_role("button", name="Set budget").click()
        expect(dialog).to_be_hidden()
        expect(opener).to_be_focused()
        expect(page.get_by_role("definition").filter(has_text="2h")).to_be_visible()
    with Store.open(filled) as store:
        assert store.study("demo").budget == "2h"
