"""The documentation site: its links, and the reference that is made from the code."""

from __future__ import annotations

import re

import pytest
from tools.site import programs
from tools.site.generated import GENERATED, ROOT
from tools.site.hooks import with_site_links

PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize(
    ("page", "link", "on_the_site"),
    [
        ("isvc-up.md", "[a](../examples/iris.yaml)", "[a](examples/iris.yaml)"),
        ("tutorials/canary.md", "[a](../../examples/iris.yaml)", "[a](../examples/iris.yaml)"),
        ("tutorials/canary.md", "[a](../cli.md#waiting-and-asking)", "[a](../cli.md#waiting-and-asking)"),
        ("install.md", "[a](https://example.com/../x) [b](#roles)", "[a](https://example.com/../x) [b](#roles)"),
        ("ARCHITECTURE.md", "[a](docs/install.md)", "[a](install.md)"),
    ],
)
def test_links_lead_to_the_same_document_in_the_repository_and_on_the_site(
    page: str, link: str, on_the_site: str
) -> None:
    assert with_site_links(link, page) == on_the_site


def test_what_is_generated_is_on_a_page() -> None:
    marks = re.findall(r"<!-- generated: (\w+) -->", "".join(path.read_text() for path in PAGES))
    assert sorted(marks) == sorted(GENERATED)


def test_every_flag_says_what_it_does() -> None:
    commands = [*programs.MANAGERS.items(), *programs.isvc_commands()]
    flags = [(name, flag) for name, command in commands for flag in programs.click_flags(command)]
    flags += [(make().prog, flag) for make in programs.PARSERS for flag in programs.argparse_flags(make())]
    assert len(flags) > 100
    assert not [(name, flag.names) for name, flag in flags if not flag.text]
