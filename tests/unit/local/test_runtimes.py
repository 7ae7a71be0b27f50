"""Environments of recipes, which isvc's own model server runs in."""

from __future__ import annotations

import pytest

from isvc.local import runtimes


def test_a_recipe_that_cannot_be_installed_says_what_else_there_is(tmp_path, monkeypatch) -> None:
    for name, value in {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(runtimes.RuntimeFailure, match="isvc runtime add pytorch --requirements FILE"):
        runtimes.add_recipe(tmp_path / "runtimes", "pytorch")
    assert list(runtimes.environments(tmp_path / "runtimes")) == []
