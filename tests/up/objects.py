"""What an API server holds, under the names that kubectl takes. Who waits looks often, and starts no program for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.wire import Wire

from isvc.kube.objects import Object

DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
APPLY: Final = "application/apply-patch+yaml"


class Objects:
    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        document = json.loads(kubeconfig.read_text())
        self._wire = Wire(document["clusters"][0]["cluster"]["server"], document["users"][0]["user"]["token"])
        self._namespace = namespace
        self._paths: dict[str, str] = {}

    def get(self, what: str, name: str = "", *, labels: str = "") -> Object:
        """The answer to `kubectl get WHAT NAME -o json`: an object, or nothing; a list of the objects of some kinds."""
        if "," in what:
            lists = [self.get(kind, labels=labels) for kind in what.split(",")]
            return {"kind": "List", "items": [item for each in lists for item in each["items"]]}
        kind, _, named = what.partition("/")
        path, name = self._path(kind), name or named
        status, answer = self._wire.ask("GET", f"{path}/{name}" if name else f"{path}?labelSelector={quote(labels)}")
        assert status in (200, 404), answer
        return dict(answer) if status == 200 else {}

    def apply(self, manifest: Object) -> None:
        """Does what `kubectl apply --server-side` does."""
        path = self._path(f"{manifest['apiVersion']}/{manifest['kind']}")
        flags = "fieldManager=tests&force=true"
        status, answer = self._wire.ask("PATCH", f"{path}/{manifest['metadata']['name']}?{flags}", manifest, APPLY)
        assert status in (200, 201), answer

    def _path(self, kind: str) -> str:
        if kind not in self._paths:
            self._paths = self._discover()
        return self._paths[kind].format(namespace=self._namespace)

    def _discover(self) -> dict[str, str]:
        """Paths by plural, singular and short names, by RESOURCE.VERSION.GROUP, and by apiVersion/kind."""
        paths: dict[str, str] = {}
        for root in ("/api", "/apis"):
            for group in self._wire.ask("GET", root, accept=DISCOVERY)[1]["items"]:
                for version in group["versions"]:
                    group_name = group["metadata"].get("name", "")
                    api_version = "/".join(part for part in (group_name, version["version"]) if part)
                    for found in version["resources"]:
                        place = "/namespaces/{namespace}" if found["scope"] == "Namespaced" else ""
                        path = f"{root}/{api_version}{place}/{found['resource']}"
                        paths[f"{found['resource']}.{version['version']}.{group_name}"] = path
                        paths[f"{api_version}/{found['responseKind']['kind']}"] = path
                        for name in (found["resource"], found.get("singularResource"), *found.get("shortNames", ())):
                            paths.setdefault(name, path)
        return paths
