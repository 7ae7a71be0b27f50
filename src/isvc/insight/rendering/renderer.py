"""Every child that would exist for given documents once all is ready, with no cluster.

The documents go through admission into a simulated cluster, the controllers work on it while everything that they
create becomes healthy, and what they wrote is the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from isvc.api.kinds import NAMED
from isvc.api.llm.conversion import KINDS as CONVERTED
from isvc.api.llm.conversion import NEW, convert
from isvc.api.resources import LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES
from isvc.insight.rendering.documents import Document, DocumentError, documents
from isvc.insight.rendering.placing import is_configuration, place
from isvc.insight.rendering.pods import pods_of
from isvc.insight.rendering.problems import Problem, unready, unserved_version
from isvc.insight.rendering.shipped import shipped_config, shipped_objects, with_section
from isvc.insight.rendering.unknowns import assumptions, default_gateway
from isvc.insight.simulation import admission
from isvc.insight.simulation.kinds import KINDS, resource_of
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.builtin import check_types, complete
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, deep_copy, name_of, namespace_of
from isvc.kube.resource import Resource
from isvc.programs.options import Options
from isvc.serving.config import CONFIG_MAP, Config
from isvc.serving.config.configmap import ConfigError
from isvc.serving.environment import SYSTEM_NAMESPACE

T = TypeVar("T")
Source: TypeAlias = Document | Object | str | Path

#: The kinds that have children, in the order in which they are applied: later ones refer to earlier ones.
OWNERS: Final = tuple(row.resource for row in NAMED)
_CACHES: Final = (LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES)
_OF_THE_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


@dataclass(frozen=True, slots=True)
class Child:
    """An object that a controller would write: `manifest` is what it sends, `stored` what an API server makes of it."""

    owner: Document
    manifest: Object = field(repr=False)
    stored: Object = field(repr=False)


@dataclass(frozen=True, slots=True)
class Rendering:
    """`admitted` are the documents as they would be stored; `warnings` say what cannot be known without a cluster."""

    children: tuple[Child, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    admitted: tuple[Object, ...] = ()

    def __iter__(self) -> Iterator[Object]:
        return (child.manifest for child in self.children)

    def __len__(self) -> int:
        return len(self.children)

    def child(self, kind: str, name: str = "") -> Object:
        """Returns the manifest of the one child of this kind, or of this kind and name. Raises `LookupError`."""
        found = [each for each in self if each["kind"] == kind and name in ("", name_of(each))]
        if len(found) != 1:
            there = ", ".join(f"{each['kind']}/{name_of(each)}" for each in self) or "none"
            raise LookupError(f"{len(found)} children are {kind}/{name or '*'}; there are: {there}")
        return found[0]


def render(
    *sources: Source,
    extra: Iterable[Source] = (),
    config: Source | None = None,
    mode: str = "",
    namespace: str = "default",
    without: Collection[str] = (),
    shipped: bool = True,
    pods: bool = False,
    system_namespace: str = SYSTEM_NAMESPACE,
) -> Rendering:
    """Returns the children of the documents in `sources`: objects, or paths of files and folders.

    `extra`      what the cluster has besides: runtimes, secrets, service accounts, gateways
    `config`     the ConfigMap inferenceservice-config; that of `isvc up` if none is given
    `mode`       the deployment mode of services that name none
    `namespace`  that of documents that name none
    `without`    CRDs that the cluster lacks, such as `services.serving.knative.dev`
    `shipped`    whether the runtimes and presets of an installation are there
    `pods`       whether to render the pods of workloads, too, as the webhook leaves them

    Raises `DocumentError` for documents that cannot be read. What is refused is in `problems`.
    """
    options = Options(system_namespace=system_namespace)
    given = [place(document, namespace, options) for document in documents(sources)]
    around = [place(document, namespace, options) for document in documents(extra)]
    configs = [*filter(lambda each: is_configuration(each.obj), given)]
    configs += documents([config]) if config is not None else []
    cluster = Cluster(options, _absent(without))
    cluster.install(around, configs, mode=mode, shipped=shipped)
    return run(cluster.render(given, pods=pods))


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs to the end, from a thread that may have an event loop of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


class Cluster:
    """A simulated cluster that documents are rendered on."""

    def __init__(self, options: Options, absent: Collection[Resource] = ()) -> None:
        self._warnings: list[str] = []
        self._namespace = options.system_namespace
        self.simulation = Simulation(absent=absent, options=options, warn=self._warnings.append)

    def install(self, around: list[Document], config: list[Document], *, mode: str = "", shipped: bool = True) -> None:
        """Puts in place what is there before the documents."""
        found = [each for each in (*around, *config) if is_configuration(each.obj)]
        if config and not found:
            raise DocumentError(f"{config[0]} is not the ConfigMap {CONFIG_MAP}")
        for each in (*around, *config):
            _check(each)
        chosen = {**found[-1].obj} if found else shipped_config(self._namespace)
        if not found:
            self._warnings.append("no configuration is given: that of `isvc up` is assumed")
        chosen["metadata"] = {**chosen["metadata"], "namespace": self._namespace}
        if mode:
            chosen = with_section(chosen, "deploy", defaultDeploymentMode=mode)
        if shipped:
            self._seed([*shipped_objects(self._namespace), *default_gateway(chosen)])
        self._seed([chosen, *(each.obj for each in around if not is_configuration(each.obj))])

    def _seed(self, objects: Iterable[Object]) -> None:
        for obj in objects:
            stored = convert([obj], NEW)[0] if obj["kind"] in CONVERTED else complete(obj) or obj
            if resource := resource_of(stored):
                uid = f"{resource}/{namespace_of(stored)}/{name_of(stored)}"
                metadata = {"uid": uid, "resourceVersion": "0", "generation": 1, **stored["metadata"]}
                self.simulation.seed([(resource, {**deep_copy(stored), "metadata": metadata})])

    async def render(self, given: list[Document], *, pods: bool = False) -> Rendering:
        problems: list[Problem] = []
        admitted: dict[tuple[Resource, str, str], Document] = {}
        for document in sorted(given, key=_rank):
            resource = resource_of(document.obj)
            if wrong := unserved_version(document.obj):
                problems.append(Problem(document, wrong))
                continue
            if resource is None:
                self._warnings.append(f"{document} is passed over: nothing is made of a {document.obj['kind']}")
                continue
            try:
                stored = await self.simulation.apply(resource, deep_copy(document.obj))
            except ApiError as error:
                problems.append(Problem(document, error.message))
            else:
                admitted[resource_of(stored) or resource, namespace_of(stored), name_of(stored)] = document
        await self.simulation.settle_ready()
        problems += (
            Problem(document, message)
            for (resource, *_), document in admitted.items()
            if resource in OWNERS and (message := unready(self.simulation, resource, document.obj))
        )
        children = [*self._children(admitted)]
        if pods:
            children += [pod for child in children for pod in await self._pods(child, problems)]
        warnings = (*self._warnings, *assumptions(self.simulation, [child.stored for child in children]))
        return Rendering(
            tuple(children), tuple(problems), tuple(dict.fromkeys(warnings)), tuple(self._admitted_objects(admitted))
        )

    async def _pods(self, child: Child, problems: list[Problem]) -> list[Child]:
        try:
            made = await pods_of(self.simulation, child.stored)
        except ApiError as error:
            problems.append(Problem(child.owner, f"the pods of {name_of(child.stored)}: {error.message}"))
            return []
        return [Child(child.owner, _without_identity(pod), _without_identity(pod, stored=True)) for pod in made]

    def _children(self, admitted: dict[tuple[Resource, str, str], Document]) -> Iterator[Child]:
        """Returns children in the order of the documents, and then in that in which they were created."""
        server = self.simulation.server
        order = {id(document): number for number, document in enumerate(admitted.values())}
        found: list[Child] = []
        for (resource, namespace, name), manifest in server.written.items():
            stored = self.simulation.objects.get(resource, name, namespace)
            author = server.authors.get((resource, namespace, name))
            owner = admitted.get(author) if author else None
            if (resource, namespace, name) not in admitted and stored is not None and owner is not None:
                found.append(Child(owner, _without_identity(manifest), _without_identity(stored, stored=True)))
        return iter(sorted(found, key=lambda child: order[id(child.owner)]))

    def _admitted_objects(self, admitted: dict[tuple[Resource, str, str], Document]) -> Iterator[Object]:
        for resource, namespace, name in admitted:
            if (stored := self.simulation.objects.get(resource, name, namespace)) is not None:
                yield _without_identity({key: value for key, value in stored.items() if key != "status"})


def _rank(document: Document) -> int:
    """Sorts services behind caches: they are marked with the cache of their model when they are admitted."""
    kinds = [each.kind for each in (*_CACHES, *OWNERS)]
    resource = resource_of(document.obj)
    return kinds.index(resource.kind) + 1 if resource and resource.kind in kinds else 0


def _check(document: Document) -> None:
    """Refuses what no API server would have: fields of a wrong type, a configuration that cannot be parsed."""
    try:
        check_types(document.obj)
        if resource := resource_of(document.obj):
            admission.check_types(resource, document.obj)
        if is_configuration(document.obj):
            Config.parse((complete(document.obj) or document.obj).get("data") or {})
    except (ApiError, ConfigError) as error:
        raise DocumentError(f"{document}: {error}") from None


def _absent(names: Collection[str]) -> list[Resource]:
    known = {str(resource): resource for resource in KINDS}
    for name in names:
        if name not in known:
            raise DocumentError(f"{name} is no CRD that a controller reads")
    return [resource for resource in KINDS if str(resource) in names]


def _without_identity(obj: Object, *, stored: bool = False) -> Object:
    """Drops what only a cluster gives: identity, versions, and the data of certificates, which differ every time."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _OF_THE_SERVER}
    references = metadata.pop("ownerReferences", [])
    if stored and references:
        metadata["ownerReferences"] = [{key: ref[key] for key in ref if key != "uid"} for ref in references]
    shown = {**obj, "metadata": metadata}
    if not stored:
        shown.pop("status", None)
    if obj["kind"] == "Secret" and "data" in obj:
        shown["data"] = dict.fromkeys(obj["data"], "")
    return shown
