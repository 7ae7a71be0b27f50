"""docs/troubleshooting.md has every reason that the managers can write."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
RECORDINGS = sorted((ROOT / "tests" / "golden" / "recordings").rglob("*.yaml"))
WITHOUT_REASONS = ("serving/config/", "serving/llm/", "serving/templates/")
MODULES = [
    path
    for part in ("controllers", "serving", "engine")
    for path in sorted((ROOT / "src" / "isvc" / part).rglob("*.py"))
    if not any(folder in str(path) for folder in WITHOUT_REASONS) and path.name != "__init__.py"
]
CAMEL_CASE = re.compile(r"(?:[A-Z]+[a-z0-9]+){2,}")


def reasons_of_the_code() -> dict[str, str]:
    """Strings that are written like a reason, and where; those that are none are listed in no_reasons.yaml."""
    others = yaml.safe_load(Path(__file__).with_name("no_reasons.yaml").read_text())
    known = {word for words in others.values() for word in words.split()}
    return {
        node.value: str(path.relative_to(ROOT))
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if CAMEL_CASE.fullmatch(node.value) and node.value not in known
    }


def described(text: str) -> set[str]:
    """What the first cells of tables name."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_reason_of_the_code_is_described() -> None:
    found = reasons_of_the_code()
    mentioned = set(re.findall(r"`(\w+)`", PAGE))
    assert len(found) > 60
    assert not {word: path for word, path in found.items() if word not in mentioned}


def test_every_described_reason_is_in_the_code() -> None:
    ours, _, _ = PAGE.partition("## Passed on from others")
    code = "".join(path.read_text() for path in MODULES)
    readiness = {
        f"{kind}{end}"
        for kind in ("InferenceService", "InferenceGraph", "LLMInferenceService")
        for end in ("Ready", "NotReady")
    }
    single_words = {name for name in described(ours) - readiness if " " not in name}
    assert not {name for name in single_words if f'"{name}"' not in code}


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_every_recorded_reason_is_described(recording: Path) -> None:
    documents = list(yaml.load_all(recording.read_text(), yaml.CSafeLoader))
    found = {_of_the_predictor(reason) for reason in recorded(documents)}
    assert found <= described(PAGE)


def _of_the_predictor(reason: str) -> str:
    """The page names those of predictors for all components."""
    return re.sub("Transformer|Explainer", "Predictor", reason).replace("RouteReady not", "ConfigurationReady not")


def recorded(value: object) -> Iterator[str]:
    match value:
        case {"type": str(), "status": str(), "reason": str(reason)}:
            yield reason
        case dict():
            for each in value.values():
                yield from recorded(each)
        case list():
            for each in value:
                yield from recorded(each)
