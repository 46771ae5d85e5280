"""Who logs in by the form steers a study by its buttons."""

from browser import opened
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
