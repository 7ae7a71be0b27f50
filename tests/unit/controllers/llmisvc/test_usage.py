"""An edit of a configuration reaches the services that use it, and no others."""

from __future__ import annotations

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.usage import CONFIG_INDEX, configs_of, users_of
from isvc.engine.dependents import Dependents
from isvc.kube.objects import Key, Object
from isvc.kube.resource import CONFIG_MAPS, Resource
from isvc.toolkit.store import Store


class Services:
    """Services in the store that informers keep."""

    def __init__(self, *services: Object) -> None:
        self._store = Store({CONFIG_INDEX: lambda service: configs_of(service, "kserve-")})
        for number, service in enumerate(services):
            self._store.put(Key.of(service), service, number)

    def keys(self, resource: Resource, index_name: str, value: str) -> list[Key]:
        assert resource == LLM_INFERENCE_SERVICES
        return list(self._store.keys(index_name, value))

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self._store.get(Key(namespace, name))


def service(name: str, namespace: str, *applied: tuple[str, str], refs: tuple[str, ...] = ()) -> Object:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"baseRefs": [{"name": ref} for ref in refs]},
        "status": {"appliedConfigs": [{"namespace": place, "name": config} for place, config in applied]},
    }


def config(namespace: str, name: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}}


USER = service("user", "a", ("kserve", "kserve-config-llm-template"), ("a", "small"), refs=("small",))
OTHER = service("other", "b", ("kserve", "kserve-config-llm-template"))
HIDING = service("hiding", "c", ("c", "kserve-config-llm-template"))
NEW = service("new", "d")
ALL = Services(USER, OTHER, HIDING, NEW)


def test_a_system_configuration_reaches_whoever_took_it_or_may_yet() -> None:
    reached = users_of(config("kserve", "kserve-config-llm-template"), ALL, "kserve")
    assert sorted(key.name for key in reached) == ["new", "other", "user"]


def test_a_preset_that_a_service_did_not_take_does_not_reach_it() -> None:
    assert [key.name for key in users_of(config("kserve", "kserve-config-llm-scheduler"), ALL, "kserve")] == ["new"]


def test_a_configuration_of_another_namespace_reaches_nobody() -> None:
    assert [key.name for key in users_of(config("a", "small"), ALL, "kserve")] == ["user"]
    assert not list(users_of(config("b", "small"), ALL, "kserve"))


def test_one_that_comes_to_hide_the_systems_reaches_its_namespace() -> None:
    assert [key.name for key in users_of(config("b", "kserve-config-llm-template"), ALL, "kserve")] == ["other"]


def test_dependents_are_found_until_they_refer_to_something_else() -> None:
    dependencies = Dependents()
    one, two = (CONFIG_MAPS, Key("a", "one")), (CONFIG_MAPS, Key("a", "two"))
    dependencies.record(Key("a", "x"), frozenset({one, two}))
    dependencies.record(Key("a", "y"), frozenset({one}))
    assert dependencies.of(*one) == [Key("a", "x"), Key("a", "y")]
    dependencies.record(Key("a", "x"), frozenset({two}))
    dependencies.record(Key("a", "y"), frozenset())
    assert dependencies.of(*one) == []
    assert dependencies.of(*two) == [Key("a", "x")]
