"""In which namespace a document is meant."""

from __future__ import annotations

from isvc.insight.rendering.documents import Document
from isvc.insight.simulation.kinds import resource_of
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import CONFIG_MAPS
from isvc.programs.options import Options
from isvc.serving.config import CONFIG_MAP


def place(document: Document, namespace: str, options: Options) -> Document:
    """Returns the document in its own namespace, else in this one; the configuration is in the system's."""
    resource = resource_of(document.obj)
    if resource is None or not resource.namespaced or document.obj["metadata"].get("namespace"):
        return document
    place = options.system_namespace if is_configuration(document.obj) else namespace
    metadata = {**document.obj["metadata"], "namespace": place}
    return Document({**document.obj, "metadata": metadata}, document.source)


def is_configuration(obj: Object) -> bool:
    return resource_of(obj) == CONFIG_MAPS and name_of(obj) == CONFIG_MAP
