"""`isvc up` with services in every state, and a browser that looks at its dashboard."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from tests.up.machine import Machine, machine, running, service

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
PATIENCE = 90_000  # milliseconds that only a broken program needs


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For a module and no longer: while it is open, its own event loop runs, and no other test can run one."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs Chromium: make chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, models: Path) -> Iterator[Machine]:
    fresh = machine(tmp_path_factory.mktemp("up"), models)
    shutil.copytree(fresh.claim / "iris", fresh.claim / "fragile")
    with running(fresh, "--allow-edit") as here:
        here.apply(service("broken", "pvc://models/nothing-here"))
        here.apply(service("fragile", "pvc://models/fragile"))
        here.kubectl("apply", "-f", "examples/iris.yaml", "-f", "examples/llm.yaml")
        here.wait_ready("iris")
        here.wait_ready("fragile")
        yield here


@pytest.fixture
def link(here: Machine) -> str:
    found = re.search(r"dashboard: (\S+)", here.output.read_text())
    assert found
    return found[1]


class Visit:
    """A signed-in browser: pages by their path, and what it complained about."""

    def __init__(self, context: BrowserContext, link: str) -> None:
        self.context = context
        self.base = link.partition("/?")[0]
        self.complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(link)

    def open(self, path: str) -> Page:
        self.page.goto(self.base + path)
        return self.page

    def _heard(self, message: object) -> None:
        if getattr(message, "type", "") == "error":
            self.complaints.append(getattr(message, "text", ""))


@pytest.fixture
def visit(browser: Browser, link: str, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """Parameters are those of the browser: its width, its colours, whether it runs scripts."""
    chosen = {"viewport": {"width": 1200, "height": 900}, **getattr(request, "param", {})}
    context = browser.new_context(**chosen)
    visit = Visit(context, link)
    yield visit
    context.close()
    assert visit.complaints == []
