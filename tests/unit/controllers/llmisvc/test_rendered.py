"""A merged spec is checked by the API server once for all services that differ in nothing but names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isvc.controllers.llmisvc.observed import AppliedConfig, Merged
from isvc.controllers.llmisvc.presets import NotCombined
from isvc.controllers.llmisvc.rendered import RenderedSpecs
from isvc.kube.errors import BadRequest, Invalid, ServiceUnavailable
from isvc.kube.objects import Object
from isvc.kube.resource import Resource

APPLIED = (AppliedConfig("small", "team", "UserRef"),)


class Server:
    """Counts dry runs, and answers them as a test asks for."""

    def __init__(self) -> None:
        self.asked = 0
        self.refusal: Exception | None = None

    async def create(self, resource: Resource, obj: Object, *, dry_run: bool) -> Object:
        assert dry_run
        self.asked += 1
        await asyncio.sleep(0)
        if self.refusal:
            raise self.refusal
        return obj


def service(name: str, **status: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "team", "generation": 1}, "status": status}


def merged(name: str, model: str, **spec: Any) -> Merged:
    labels = {"app": name, "path": f"/team/{name}"}
    return Merged({"model": {"uri": f"hf://{model}", "name": model}, "labels": labels, **spec}, APPLIED)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def rendered(server: Server) -> RenderedSpecs:
    return RenderedSpecs(server)  # type: ignore[arg-type]


async def test_one_answer_serves_all_that_differ_in_names_even_at_once(rendered, server) -> None:
    checks = (rendered.check(service(name), merged(name, f"lab/{name}-7b")) for name in ("one", "two", "three"))
    await asyncio.gather(*checks)
    assert server.asked == 1


async def test_another_spec_is_another_question(rendered, server) -> None:
    await rendered.check(service("one"), merged("one", "lab/a"))
    await rendered.check(service("one"), merged("one", "lab/a", replicas=2))
    assert server.asked == 2


@pytest.mark.parametrize("model", ["lab//a", "lab/../a", "a b", "a" * 300])
async def test_a_name_that_may_be_refused_somewhere_is_checked_by_itself(rendered, server, model) -> None:
    await rendered.check(service("one"), merged("one", "lab/a"))
    await rendered.check(service("one"), merged("one", model))
    assert server.asked == 2


async def test_what_was_good_before_a_restart_is_not_asked_again(rendered, server) -> None:
    good = service(
        "one",
        observedGeneration=1,
        appliedConfigs=[{"name": "small", "namespace": "team", "source": "UserRef"}],
        conditions=[{"type": "PresetsCombined", "status": "True"}],
    )
    await rendered.check(good, merged("one", "lab/a"))
    assert server.asked == 0


async def test_a_refusal_names_the_configurations_and_the_fields(rendered, server) -> None:
    causes = [{"field": "spec.replicas", "message": "must not be negative"}, {"message": "something else"}]
    server.refusal = Invalid("one-validation-x is invalid", details={"causes": causes})
    with pytest.raises(NotCombined, match=r"\[UserRef:team/small\]: spec.replicas: must not be negative; ") as caught:
        await rendered.check(service("one"), merged("one", "lab/a"))
    assert caught.value.reason == "InvalidRenderedConfig"


async def test_what_a_webhook_cannot_even_read_is_refused_for_good(rendered, server) -> None:
    """Such as a scheduler configuration whose text is a list: asking again would not help."""
    server.refusal = BadRequest("spec.router.scheduler.config.inline: expected an object")
    with pytest.raises(NotCombined, match="inline: expected an object") as caught:
        await rendered.check(service("one"), merged("one", "lab/a"))
    assert caught.value.reason == "InvalidRenderedConfig"


async def test_where_nobody_could_say_it_is_asked_again(rendered, server) -> None:
    server.refusal = ServiceUnavailable("later")
    with pytest.raises(ServiceUnavailable):
        await rendered.check(service("one"), merged("one", "lab/a"))
    server.refusal = None
    await rendered.check(service("one"), merged("one", "lab/a"))
    assert server.asked == 2
