"""The names that requests can ask for: those of the model and those of its LoRA adapters."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from isvc.pods.llmserver.errors import NotFound

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """The model that one request is answered with."""

    name: str
    adapter: str  # "" for the model as it is
    settings: Json  # for llama.cpp


class Catalogue:
    def __init__(self, names: Sequence[str], adapters: Sequence[str], root: str) -> None:
        self.names = names
        self.adapters = adapters
        self._root = root
        self._created = int(time.time())

    def choose(self, name: str | None) -> Choice:
        name = name or self.names[0]
        if name in self.names:
            return Choice(name, "", self._settings(None))
        if name in self.adapters:
            return Choice(name, name, self._settings(name))
        raise NotFound(f"The model `{name}` does not exist.", "model")

    def listing(self, max_model_len: int) -> Json:
        models = [self._card(name, self._root, None, max_model_len) for name in self.names]
        adapters = [self._card(name, name, self.names[0], None) for name in self.adapters]
        return {"object": "list", "data": models + adapters}

    def _settings(self, adapter: str | None) -> Json:
        """Names every adapter, the unused ones with 0: llama.cpp would go on with those of the last request."""
        if not self.adapters:
            return {}
        return {"lora": [{"id": i, "scale": float(name == adapter)} for i, name in enumerate(self.adapters)]}

    def _card(self, name: str, root: str, parent: str | None, max_model_len: int | None) -> Json:
        return {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": "isvc",
            "root": root,
            "parent": parent,
            "max_model_len": max_model_len,
        }
