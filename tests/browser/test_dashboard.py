"""The dashboard in Chromium, as people use it."""

from __future__ import annotations

import re
import shutil

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tests.browser.conftest import PATIENCE, SCREENSHOTS
from tests.up.machine import until

expect.set_options(timeout=PATIENCE)

IRIS = "/services/isvc/default/iris"
PAGES = {
    "overview": "/",
    "service": IRIS,
    "broken": "/services/isvc/default/broken",
    "llm": "/services/llmisvc/default/smollm2",
    "logs": f"{IRIS}/logs",
    "try": f"{IRIS}/try",
    "metrics": f"{IRIS}/metrics",
    "configuration": f"{IRIS}/configuration",
    "history": f"{IRIS}/history",
    "edit": f"{IRIS}/edit",
    "yaml": "/objects/Deployment.v1.apps/default/iris-predictor",
    "not-found": "/services/isvc/default/nobody",
}
NARROW = {"viewport": {"width": 400, "height": 800}}


def test_the_overview_changes_when_a_pod_dies_and_leads_to_it(here, visit):
    page = visit.open("/")
    row = page.locator("#service_isvc_default_fragile")
    expect(row).to_contain_text("ready")
    expect(page.locator("#service_isvc_default_broken")).to_contain_text("there is no nothing-here in")
    shutil.rmtree(here.claim / "fragile")
    here.kubectl("delete", "pod", "-l", "serving.kserve.io/inferenceservice=fragile", "--wait=false")
    expect(row).to_contain_text("not ready")
    expect(row).to_contain_text("container kserve-container of pod fragile-predictor")
    page.get_by_role("link", name="fragile").click()
    broken = page.locator(".tree .node.broken", has_text="Pod")
    expect(broken).to_have_count(1)
    broken.get_by_role("link").click()
    expect(page.locator("#yaml")).to_contain_text("kind: Pod")


def test_a_prediction_is_sent_and_answered(visit):
    page = visit.open(f"{IRIS}/try")
    page.get_by_label("Request").fill('{"instances": [[5.1, 3.5, 1.4, 0.2], [6.3, 3.3, 6.0, 2.5]]}')
    page.get_by_role("button", name="Send").click()
    answer = page.locator("#answer")
    expect(answer).to_contain_text("predictions")
    assert re.search(r"Answer after \d+ ms", answer.inner_text())
    expect(page.locator("#curl")).to_contain_text("/v1/models/iris:predict")
    page.get_by_label("Request").fill('{"instances": ')
    page.get_by_role("button", name="Send").click()
    expect(answer).to_contain_text("not valid JSON")
    visit.complaints = [each for each in visit.complaints if "400 (Bad Request)" not in each]


def test_a_chat_streams(here, visit):
    here.kubectl("wait", "--for=condition=Ready", "llmisvc/smollm2", "--timeout=90s")
    page = visit.open("/services/llmisvc/default/smollm2/try")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#chat span").nth(3)).to_be_attached()
    expect(page.locator("#latency")).to_contain_text("first piece after")
    assert len(page.locator("#chat").inner_text()) > 20


def test_logs_are_followed_into_new_pods(here, visit):
    page = visit.open(f"{IRIS}/logs")
    lines = page.locator("#log div", has_text="serving iris on port")
    expect(lines.first).to_be_visible()
    before = lines.count()
    here.kubectl("delete", "pod", "-l", "serving.kserve.io/inferenceservice=iris", "--wait=false")
    expect(lines.nth(before)).to_be_attached()
    here.wait_ready("iris")


def test_charts_are_drawn_anew_while_one_looks(here, visit):
    page = visit.open(f"{IRIS}/metrics")
    rate = page.locator("figure", has_text="Requests a second")
    for _ in range(3):
        here.predict("iris", '{"instances": [[5.1, 3.5, 1.4, 0.2]]}')
    expect(rate.locator("polyline")).to_have_count(1)


def test_the_filter_narrows_as_one_types_and_can_be_linked(visit):
    page = visit.open("/")
    page.get_by_label("Filter").press_sequentially("smollm", delay=20)
    expect(page.locator("#services tbody tr")).to_have_count(1)
    assert "q=smollm" in page.url
    page.reload()
    expect(page.locator("#services tbody tr")).to_have_count(1)


def test_with_the_keyboard_alone(visit):
    page = visit.open("/")

    def focused() -> str:
        return page.evaluate("document.activeElement.id || document.activeElement.textContent")

    page.keyboard.press("Tab")
    assert focused() == "Skip to content"
    for _ in range(20):
        page.keyboard.press("Tab")
        if focused() == "filter":
            break
    page.keyboard.type("iris")
    expect(page.locator("#services tbody tr")).to_have_count(1)
    for _ in range(20):
        page.keyboard.press("Tab")
        if focused() == "service_isvc_default_iris_link":
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("iris")


@pytest.mark.parametrize("visit", [NARROW], indirect=True, ids=["400px"])
def test_nothing_sticks_out_on_a_phone(visit):
    for name, path in PAGES.items():
        page = visit.open(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 400, f"{name} is {wide} px wide"
    visit.complaints = [each for each in visit.complaints if "404 (Not Found)" not in each]
    visit.open("/").screenshot(path=SCREENSHOTS / "phone.png")


@pytest.mark.parametrize(
    "visit", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True, ids=["light", "dark"]
)
def test_axe_finds_no_serious_barrier(visit, request):
    scheme = request.node.callspec.id
    found = {}
    for name, path in PAGES.items():
        page = visit.open(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.screenshot(path=SCREENSHOTS / f"{name}-{scheme}.png")
        violations = Axe().run(page).response["violations"]
        serious = [each for each in violations if each["impact"] in ("serious", "critical")]
        if serious:
            found[name] = [(each["id"], [node["html"] for node in each["nodes"]]) for each in serious]
    visit.complaints = [each for each in visit.complaints if "404 (Not Found)" not in each]
    assert found == {}


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True, ids=["no-script"])
def test_pages_can_be_read_without_scripts(visit):
    expect(visit.open("/").locator("#service_isvc_default_iris")).to_contain_text("iris")
    expect(visit.open(f"{IRIS}/logs").locator("noscript .log")).to_contain_text("serving iris on port")
    page = visit.open(f"{IRIS}/try")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#answer")).to_contain_text("predictions")


def test_the_stream_of_a_tab_that_nobody_sees_is_closed_after_a_while(visit):
    """A browser has few connections to one host, and each open stream takes one."""
    page = visit.page
    page.clock.install()
    visit.open("/")
    state = "document.querySelector('[sse-connect]')?.['htmx-internal-data']?.sseEventSource?.readyState"
    until(lambda: page.evaluate(f"{state} === EventSource.OPEN"), "the stream")
    page.evaluate("window.stream = document.querySelector('[sse-connect]')['htmx-internal-data'].sseEventSource")
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.clock.run_for(30_000)
    assert page.evaluate("stream.readyState === EventSource.OPEN"), "a short look elsewhere costs nothing"
    page.clock.run_for(31_000)
    until(lambda: page.evaluate("stream.readyState === EventSource.CLOSED"), "the end of the stream")
    with page.expect_navigation():
        page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    until(lambda: page.evaluate(f"{state} === EventSource.OPEN"), "a stream again")


def test_what_servers_and_people_write_runs_nowhere(here, visit):
    """Names, annotations, answers and messages that look like markup."""
    markup = "<img src=x onerror=document.title='pwned'>"
    here.kubectl("annotate", "isvc", "iris", f"note={markup}", "--overwrite")
    page = visit.open("/objects/InferenceService.v1beta1.serving.kserve.io/default/iris")
    expect(page.locator("#yaml")).to_contain_text(markup)
    page = visit.open(f"/?q={markup}")
    expect(page.get_by_label("Filter")).to_have_value(markup)
    page = visit.open(f"{IRIS}/try")
    page.get_by_label("Request").fill('{"instances": [["' + markup + '"]]}')
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#answer")).to_contain_text("onerror")
    assert "pwned" not in page.title()
