"""What is planned for KEDA and its HTTP add-on is what their own definitions take, in the versions that are asked for.

They come from the Go module proxy, and are not kept here: `make test-keda-crds KEDA=2.20.2 HTTP_ADD_ON=0.15.0`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests import definitions
from tests.golden.player import case_names, read_recording

from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, deep_copy
from isvc.kube.resource import Resource
from isvc.serving.thirdparty import INTERCEPTOR_ROUTES, SCALED_OBJECTS
from isvc.toolkit.client import Client

DEFINITIONS: Final = {
    SCALED_OBJECTS: ("github.com/kedacore/keda/v2", "KEDA", "2.20.2", "keda.sh_scaledobjects.yaml"),
    INTERCEPTOR_ROUTES: (
        "github.com/kedacore/http-add-on",
        "HTTP_ADD_ON",
        "0.15.0",
        "http.keda.sh_interceptorroutes.yaml",
    ),
}
STRICT: Final = {"dryRun": "All", "fieldValidation": "Strict"}


def definition(resource: Resource) -> Object:
    """Returns the definition of a kind as its project has it, fetched where it is missing."""
    module, variable, usual, file = DEFINITIONS[resource]
    wanted = f"{module}@v{os.environ.get(variable) or usual}"
    done = subprocess.run(["go", "mod", "download", "-json", wanted], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout or "{}")
    assert "Dir" in found, f"{wanted}: {found.get('Error')}{done.stderr}"
    loaded: Object = yaml.safe_load((Path(found["Dir"]) / "config" / "crd" / "bases" / file).read_text())
    return loaded


def recorded(resource: Resource) -> list[Object]:
    """Returns all objects of a kind that our recordings have, each once."""
    states = (state["objects"].values() for name in case_names() for state in read_recording(name))
    texts = (json.dumps(obj, sort_keys=True) for objects in states for obj in objects if obj["kind"] == resource.kind)
    return [json.loads(text.replace("NAMESPACE", "default")) for text in dict.fromkeys(texts)]


@pytest.mark.parametrize("resource", DEFINITIONS, ids=lambda resource: resource.kind)
async def test_all_that_was_recorded_is_taken(client: Client, resource: Resource) -> None:
    await definitions.install(client, definition(resource))
    found = recorded(resource)
    assert len(found) > 5
    for obj in found:
        await send(client, resource, obj)
    strange: Any = deep_copy(found[0])
    strange["spec"]["unheardOf"] = True
    with pytest.raises(ApiError, match="unknown field"):
        await send(client, resource, strange)


async def send(client: Client, resource: Resource, obj: Object) -> None:
    sent = {**obj, "metadata": {**obj["metadata"], "namespace": "default", "ownerReferences": []}}
    sent.pop("status", None)
    await client.request("POST", resource.path("default"), params=STRICT, body=sent)
