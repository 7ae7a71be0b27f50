"""What the documentation tells people to type is safe to type."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCUMENTS = [path for folder in (ROOT, ROOT / "docs") for path in sorted(folder.glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_files_in_a_folder_that_everybody_can_write_to(document: Path) -> None:
    commands = [line for line in document.read_text().splitlines() if line.startswith("    ")]
    assert not [line for line in commands if "/tmp" in line]
