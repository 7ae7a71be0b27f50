"""Models that come and go while the server runs: each in a folder of its own, loaded and unloaded by name."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from pathlib import Path

from aiohttp import web

from isvc.pods.modelserver.errors import InvalidInput, ModelFileError, ModelNotFound
from isvc.pods.modelserver.frameworks import TabularModel
from isvc.pods.modelserver.model import Model


class Repository:
    """The v2 protocol's repository extension, over the models that a server serves."""

    def __init__(self, framework: type[TabularModel], folder: str, nthread: int) -> None:
        self._framework = framework
        self._folder = Path(folder)
        self._nthread = nthread
        self._models: MutableMapping[str, Model] = {}

    def routes(self, models: MutableMapping[str, Model]) -> list[web.RouteDef]:
        self._models = models
        name = r"{name:[A-Za-z0-9][\w.-]*}"
        return [
            web.post("/v2/repository/index", self._index),
            web.post(f"/v2/repository/models/{name}/load", self._load),
            web.post(f"/v2/repository/models/{name}/unload", self._unload),
        ]

    async def _index(self, request: web.Request) -> web.Response:
        return web.json_response([{"name": name, "state": "Ready", "reason": ""} for name in self._models])

    async def _load(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        model = self._framework(name, str(self._folder / name), self._nthread)
        try:
            await asyncio.to_thread(model.load)
        except ModelFileError as error:
            raise InvalidInput(str(error)) from error
        self._models[name] = model
        return web.json_response({"name": name, "load": True})

    async def _unload(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if self._models.pop(name, None) is None:
            raise ModelNotFound(name)
        return web.json_response({"name": name, "unload": True})
