"""Hooks of MkDocs: tables made from the code, and the files of the repository that pages link to.

A page links to `../examples/iris.yaml` or `../ARCHITECTURE.md` as they lie in the repository, so that links work there,
too. On the site these files are beside the pages, and the links follow.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tools.site.generated import filled_in  # noqa: E402

EXAMPLES: Final = ROOT / "examples"
PROJECT_PAGES: Final = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
_LINK: Final = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    shown = [ROOT / name for name in PROJECT_PAGES] + sorted(path for path in EXAMPLES.rglob("*") if path.is_file())
    for source in shown:
        files.append(File.generated(config, str(source.relative_to(ROOT)), abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return with_site_links(filled_in(markdown), page.file.src_uri)


def with_site_links(markdown: str, path: str) -> str:
    """Links between documents of the repository as links between pages of the site."""
    if path in PROJECT_PAGES:
        return _LINK.sub(lambda link: link[1].removeprefix("docs/"), markdown)
    folder = posixpath.dirname(path)

    def on_the_site(link: re.Match[str]) -> str:
        in_repository = posixpath.normpath(posixpath.join("docs", folder, link[1]))
        if in_repository.startswith("docs/"):
            return link[1]
        return posixpath.relpath(in_repository, folder or ".")

    return _LINK.sub(on_the_site, markdown)
