"""What CONTRIBUTING.md asks of every module, as far as a machine can tell."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "isvc"
MODULES = sorted(SOURCE.rglob("*.py"))
MOST_LINES, MOST_LINES_OF_A_FUNCTION, MOST_IN_A_FOLDER = 400, 60, 20
SAYS_NOTHING = {"utils", "util", "common", "helpers", "helper", "constants", "misc"}
# Words that meant something to their authors alone.
PRIVATE = re.compile(r"\b(told|Told|Teller|Rooms|_see_to|World|Kept|shelf|shelves|Surroundings)\b")
# Participles that tell neither what a function does nor what it returns.
SAY_NOTHING = re.compile(
    r"_*(approved|asked|built|chosen|compared|decided|described|discovered|drained|encoded|explained|given|initialized"
    r"|kept|listed|located|marked|measured|merged|missed|mutated|named|observed|opened|owned|parsed|preferred|qualified"
    r"|reached|rendered|renewed|replaced|resolved|said|seen|shown|signed|sorted|spelled|stored|taken|told|traced)"
)
FRAGMENT = re.compile(r"(Of|Whose|With|Without|As|By|From|For|Until)\b")
# numpy comes with each of the libraries that load models, torch with a runtime of its own; isvc.testing needs pytest.
USED_WHERE_THERE = {"certifi", "numpy", "pandas", "pytest", "torch"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@functools.cache
def syntax_trees() -> list[tuple[str, str, ast.Module]]:
    sources = ((path, path.read_text()) for path in MODULES)
    return [(str(path.relative_to(ROOT)), source, ast.parse(source)) for path, source in sources]


def test_modules_are_short():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in MODULES}
    assert {path: length for path, length in lengths.items() if length > MOST_LINES} == {}


def test_functions_are_short():
    long = {
        f"{path}:{node.name}": lines
        for path, _, tree in syntax_trees()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > MOST_LINES_OF_A_FUNCTION
    }
    assert long == {}


def test_folders_are_small():
    """The one of commands aside, which has a module for each."""
    sizes = Counter(str(path.parent.relative_to(SOURCE)) for path in MODULES if path.name != "__init__.py")
    assert {folder: size for folder, size in sizes.items() if size > MOST_IN_A_FOLDER and folder != "cli"} == {}


def test_modules_say_what_they_are_and_are_named_for_it():
    assert [str(path) for path in MODULES if path.stem in SAYS_NOTHING or path.parent.name in SAYS_NOTHING] == []
    assert [path for path, source, tree in syntax_trees() if source and not ast.get_docstring(tree)] == []


def test_no_source_code_in_strings():
    """Programs are files, which are linted, typed and tested."""
    found = [
        f"{path}:{node.lineno}"
        for path, _, tree in syntax_trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_program(node.value)
    ]
    assert found == []


def is_program(text: str) -> bool:
    """Python of several lines with an import or a definition in it, or a script of more than one command."""
    if len(lines := text.strip().splitlines()) < 2:
        return False
    if lines[0].startswith("#!"):
        return len(lines) > 2
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(each, (ast.Import, ast.ImportFrom, ast.ClassDef, *FUNCTIONS)) for each in statements)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import sys\nprint(sys.argv)\n", True),
        ("#!/bin/sh\ncd /tmp\nexit 0\n", True),
        ("def f():\n    return 1\n", True),
        ("#!/bin/sh\nexec program\n", False),
        ("Says what it does.\n\nAnd why.\n", False),
        ("apiVersion: v1\nkind: ConfigMap\n", False),
    ],
)
def test_programs_are_known_from_text(text: str, expected: bool):
    assert is_program(text) is expected


def test_what_is_imported_is_declared_and_nothing_else_is():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {distribution(each) for each in project["dependencies"]}
    optional = {distribution(each) for extra in project["optional-dependencies"].values() for each in extra}
    provided_by = importlib.metadata.packages_distributions()
    imported = {  # several distributions share the module `google`
        module: {distribution(by) for by in provided_by.get(module, [module])}
        for module in imports() - sys.stdlib_module_names - {"isvc"}
    }
    declared = needed | optional | USED_WHERE_THERE
    assert [module for module, by in imported.items() if not by & declared] == []
    assert needed - set().union(*imported.values()) == set()


def distribution(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement.lower().replace("_", "-"))[0]


def imports() -> set[str]:
    """The top-level names of all imports, wherever they stand."""
    nodes = [node for _, _, tree in syntax_trees() for node in ast.walk(tree)]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.partition(".")[0] for name in names}


def test_words_are_those_of_the_field():
    assert [f"{path}: {found[0]}" for path, source, _ in syntax_trees() if (found := PRIVATE.search(source))] == []


def test_an_error_without_words_is_no_false_value():
    """Every exception counts as true: `error or 'timeout'` is never the second, and says nothing of a TimeoutError."""
    found = [path for path, source, _ in syntax_trees() if re.search(r"[{( ]error or (['\"]|type\()", source)]
    assert found == []


def test_functions_say_what_they_do_or_return():
    named = [
        f"{path}:{node.name}"
        for path, _, tree in syntax_trees()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS) and SAY_NOTHING.fullmatch(node.name) and not is_property(node)
    ]
    assert named == []


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(each) for each in function.decorator_list)


def test_docstrings_are_sentences():
    """Those of functions begin with what it does or returns; "Of the names." says neither."""
    fragments = [
        f"{path}:{node.name}: {text}"
        for path, _, tree in syntax_trees()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS) and (text := ast.get_docstring(node)) and FRAGMENT.match(text)
    ]
    assert fragments == []


def test_nothing_reads_the_environment_at_import():
    command = [sys.executable, str(Path(__file__).with_name("without_environment.py"))]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    imported = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert imported.returncode == 0, imported.stderr
    assert len(imported.stdout.split()) >= len(MODULES) - 1  # all but isvc itself


def test_the_architecture_names_what_is_there():
    named = set(re.findall(r"`([\w.*-]+(?:/[\w.*-]+)*/?)`", (ROOT / "ARCHITECTURE.md").read_text()))
    paths = {name for name in named if "/" in name}
    missing = {name for name in paths if not any(found(base, name) for base in (SOURCE, ROOT))}
    assert missing == set()
    layout = re.findall(r"^  (\w+)/ ", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    assert sorted(layout) == sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))


def found(base: Path, name: str) -> bool:
    """A folder, a file, or a module without its suffix."""
    return any(any(base.glob(each)) for each in (name.rstrip("/"), f"{name}.py"))


def test_data_is_generated_and_checked():
    known = {line.split()[1] for line in (ROOT / "tools" / "generated.sha256").read_text().splitlines()}
    data = {str(path.relative_to(ROOT)) for path in SOURCE.rglob("data/*") if path.is_file()}
    assert data - known == set()
