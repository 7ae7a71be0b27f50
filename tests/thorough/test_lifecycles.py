"""Any life that a service leads ends where its last spec, applied to an empty namespace, would have begun.

Edits, children deleted or bent by hand, a deletion and another creation, restarts, API errors and late watches come in
any order; what counts is the end.
"""

from __future__ import annotations

import contextlib
import uuid
from functools import partial

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.burial import bury
from tests.cluster.faulty_proxy import FaultyProxy
from tests.cluster.lifecycles.picture import CHILDREN, picture
from tests.cluster.lifecycles.stage import Platform, Running, running, service, set_up
from tests.waiting import until

from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.errors import AlreadyExists, Conflict, NotFound
from isvc.kube.objects import Key, Object, name_of, namespace_of
from isvc.kube.owners import is_left_by_namesake
from isvc.kube.resource import DEPLOYMENTS, NAMESPACES, SERVICES, Resource
from isvc.serving.thirdparty import KNATIVE_SERVICES
from isvc.toolkit.client import Client, kubeconfig

STOP = "serving.kserve.io/stop"
TRANSFORMER = {"containers": [{"name": "kserve-container", "image": "transformer:1"}]}
LIVES = settings(
    max_examples=5,
    suppress_health_check=list(HealthCheck),
    database=None,
    phases=[Phase.generate],  # a life takes seconds: report the first bad one as it was
)


def edit(**predictor) -> Object:
    return {"spec": {"predictor": predictor}}


EDITS = st.sampled_from(
    [
        edit(minReplicas=2, maxReplicas=5),
        edit(minReplicas=1, maxReplicas=2),
        edit(model={"storageUri": "gs://models/second"}),
        edit(model={"env": [{"name": "A", "value": "1"}]}),
        edit(model={"env": None}),
        edit(labels={"team": "a"}),
        edit(labels=None),
        {"metadata": {"annotations": {"note": "hello"}}},
        {"metadata": {"annotations": {"note": None}}},
        {"metadata": {"annotations": {STOP: "true"}}},
        {"metadata": {"annotations": {STOP: None}}},
        {"spec": {"transformer": TRANSFORMER}},
        {"spec": {"transformer": None}},
    ]
)
CANARIES = st.sampled_from([edit(canaryTrafficPercent=share) for share in (10, 50, 100, None)])
HAPPENINGS = st.one_of(
    st.tuples(st.just("edit"), EDITS),
    st.tuples(st.just("delete a child"), st.integers(0, 9)),
    st.tuples(st.just("bend a child"), st.integers(0, 9)),
    st.tuples(st.sampled_from(["everything is healthy", "restart", "errors", "late watches", "replace"]), st.none()),
)
KNATIVE_HAPPENINGS = st.one_of(HAPPENINGS, st.tuples(st.just("edit"), CANARIES))


class Life:
    """One service and all that happens to it. The controller speaks through a proxy that can misbehave."""

    def __init__(self, client: Client, proxy: FaultyProxy, system_namespace: str) -> None:
        self.client, self.proxy, self.system = client, proxy, system_namespace
        self.platform = Platform(client)
        self.stack = contextlib.AsyncExitStack()
        self.running: Running | None = None

    async def start(self) -> None:
        through = await self.stack.enter_async_context(Client.connect(self.proxy.config))
        self.running = await self.stack.enter_async_context(running(through, self.system))

    async def stop(self) -> None:
        await self.stack.aclose()
        self.stack = contextlib.AsyncExitStack()

    async def happen(self, what: str, detail, namespace: str) -> None:
        if what == "edit":
            await self.client.patch(INFERENCE_SERVICES, "life", detail, namespace)
        elif what == "delete a child":
            await self._to_a_child(detail, namespace, self._delete)
        elif what == "bend a child":
            await self._to_a_child(detail, namespace, self._bend)
        elif what == "everything is healthy":
            await self.platform.make_ready(namespace)
        elif what == "restart":
            await self.stop()
            await self.start()
        elif what == "errors":
            self.proxy.failing = 5
        elif what == "late watches":
            self.proxy.lag = 0.3
        elif what == "replace":
            await self._replace(namespace)

    async def _replace(self, namespace: str) -> None:
        """Deletes the service and creates it again as soon as that is possible, when its children are still there."""
        live = await self.client.get(INFERENCE_SERVICES, "life", namespace)
        metadata = {"name": "life", "namespace": namespace, "annotations": live["metadata"].get("annotations") or {}}
        await self.client.delete(INFERENCE_SERVICES, "life", namespace)

        async def is_created() -> bool:
            with contextlib.suppress(AlreadyExists):
                return bool(await self.client.create(INFERENCE_SERVICES, {**live, "metadata": metadata, "status": {}}))
            return False

        await until(is_created, "it is created again", every=0.001)

    async def _to_a_child(self, index: int, namespace: str, act) -> None:
        if children := await self._children(namespace):
            with contextlib.suppress(NotFound, Conflict):
                await act(*children[index % len(children)])

    async def _children(self, namespace: str) -> list[tuple[Resource, Object]]:
        return [(r, c) for r in CHILDREN for c in (await self.client.list(r, namespace)).items]

    async def _delete(self, resource, child: Object) -> None:
        await self.client.delete(resource, name_of(child), namespace_of(child))

    async def _bend(self, resource, child: Object) -> None:
        bends = {
            DEPLOYMENTS: {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 7}}}},
            SERVICES: {"spec": {"selector": {"app": "somebody-else"}}},
            KNATIVE_SERVICES: {"spec": {"template": {"metadata": {"labels": {"bent": "yes"}}}}},
        }
        if resource in bends:
            await self.client.patch(resource, name_of(child), bends[resource], namespace_of(child))

    async def ends_like(self, namespace: str, fresh: str) -> None:
        """Both are brought to health again and again, until they are alike and ready, or nothing helps."""

        async def alike() -> bool:
            await self._collect_garbage(namespace)
            for each in (namespace, fresh):
                await self.platform.make_ready(each)
            self.lived, self.begun = await picture(self.client, namespace), await picture(self.client, fresh)
            return self.lived == self.begun and self._is_settled(self.begun)

        try:
            await until(alike, every=0.25)  # a look costs a dozen requests
        except AssertionError:
            assert self.lived == self.begun  # shows where they differ
            raise

    async def _collect_garbage(self, namespace: str) -> None:
        """Deletes what predecessors of the service left and it does not want: the cluster has nobody who does so."""
        live = await self.client.get(INFERENCE_SERVICES, "life", namespace)
        for resource, child in await self._children(namespace):
            if is_left_by_namesake(child, live):
                with contextlib.suppress(NotFound):
                    await self._delete(resource, child)

    def _is_settled(self, seen: Object) -> bool:
        conditions = {kind: status for kind, status, *_ in seen["status of life"]["conditions"]}
        return "True" in (conditions.get("Ready"), conditions.get("Stopped"))


async def lead(cluster, mode: str, happenings) -> None:
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client.connect(kubeconfig.load(cluster.kubeconfig)))
        namespaces = [f"{part}-{uuid.uuid4().hex[:8]}" for part in ("system", "lived", "fresh")]
        for name in namespaces:
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        system, lived, fresh = namespaces
        await set_up(client, system, mode)
        proxy = await stack.enter_async_context(FaultyProxy(cluster))
        life = Life(client, proxy, system)
        stack.push_async_callback(life.stop)
        stack.push_async_callback(bury, client, lived, fresh)
        await life.start()
        await client.create(INFERENCE_SERVICES, service(lived))
        for what, detail in happenings:
            await life.happen(what, detail, lived)
        proxy.failing, proxy.lag = 0, 0.0
        await client.patch(INFERENCE_SERVICES, "life", edit(canaryTrafficPercent=None), lived)
        last = await client.get(INFERENCE_SERVICES, "life", lived)
        metadata = {"name": "life", "namespace": fresh, "annotations": last["metadata"].get("annotations") or {}}
        await client.create(INFERENCE_SERVICES, {**service(fresh), "metadata": metadata, "spec": last["spec"]})
        await life.ends_like(lived, fresh)
        await life.stop()
        await assert_settled(life, [lived, fresh])


async def assert_settled(life: Life, namespaces: list[str]) -> None:
    """A controller that starts afresh looks at every service and writes nothing.

    The one before it was stopped as soon as the services were alike, perhaps with a last word unwritten; so that one
    more is started first, and left to finish.
    """
    keys = {Key(namespace, "life") for namespace in namespaces}
    for _ in range(2):
        life.proxy.writes.clear()
        await life.start()
        assert life.running is not None
        await until(partial(life.running.has_seen_to, keys), "all is seen to")
        await life.stop()
    assert [write for write in life.proxy.writes if any(each in write for each in namespaces)] == []


@pytest.mark.filterwarnings("ignore")
@LIVES
@given(happenings=st.lists(HAPPENINGS, min_size=3, max_size=10))
async def test_a_standard_service_ends_as_its_last_spec_says(cluster, happenings):
    await lead(cluster, "Standard", happenings)


@pytest.mark.filterwarnings("ignore")
@LIVES
@given(happenings=st.lists(KNATIVE_HAPPENINGS, min_size=3, max_size=10))
async def test_a_knative_service_ends_as_its_last_spec_says(cluster, happenings):
    await lead(cluster, "Knative", happenings)
