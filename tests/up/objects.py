"""What an API server holds, under the names that kubectl takes. Who waits looks often, and starts no program for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.wire import Wire

from isvc.kube.objects import Object

DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Objects:
    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        document = json.loads(kubeconfig.read_text())
        self._wire = Wire(document["clusters"][0]["cluster"]["server"], document["users"][0]["user"]["token"])
        self._namespace = namespace
        self._paths: dict[str, str] = {}

    def get(self, what: str, name: str = "", *, labels: str = "", namespace: str = "") -> Object:
        """The answer to `kubectl get WHAT NAME -o json`: an object, or nothing; a list of the objects of some kinds."""
        if "," in what:
            lists = [self.get(kind, labels=labels, namespace=namespace) for kind in what.split(",")]
            return {"kind": "List", "items": [item for each in lists for item in each["items"]]}
        kind, _, named = what.partition("/")
        path = self._path(kind).format(namespace=namespace or self._namespace)
        name = name or named
        status, answer = self._wire.ask("GET", f"{path}/{name}" if name else f"{path}?labelSelector={quote(labels)}")
        assert status in (200, 404), answer
        return dict(answer) if status == 200 else {}

    def _path(self, kind: str) -> str:
        if kind not in self._paths:
            self._paths = self._discover()
        return self._paths[kind]

    def _discover(self) -> dict[str, str]:
        """Plural, singular and short names, and RESOURCE.VERSION.GROUP, to the path of a namespace's objects."""
        paths: dict[str, str] = {}
        for root in ("/api", "/apis"):
            for group in self._wire.ask("GET", root, accept=DISCOVERY)[1]["items"]:
                group_name = group["metadata"].get("name", "")
                for version in group["versions"]:
                    base = "/".join(part for part in (root, group_name, version["version"]) if part)
                    for found in version["resources"]:
                        place = "/namespaces/{namespace}" if found["scope"] == "Namespaced" else ""
                        path = f"{base}{place}/{found['resource']}"
                        full = f"{found['resource']}.{version['version']}.{group_name}"
                        names = (found["resource"], found.get("singularResource"), *found.get("shortNames", ()))
                        paths[full] = path
                        paths = {name: path for name in names if name} | paths
        return paths
