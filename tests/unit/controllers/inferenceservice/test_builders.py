"""What follows from registering a mode's builders: nothing else has to be said about the kinds they create."""

from __future__ import annotations

import pytest

from isvc.cli import chart
from isvc.controllers.inferenceservice.builders import CHILDREN, INGRESS_KINDS
from isvc.controllers.inferenceservice.watches import controller
from isvc.kube.resource import Resource
from isvc.serving.environment import Environment
from isvc.serving.thirdparty import REFERENCE_GRANTS
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.client.kubeconfig import ClusterConfig
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.context import Context
from isvc.toolkit.recorder import Recorder


def test_every_kind_of_ingress_is_watched():
    client = Client.connect(ClusterConfig(server="http://nowhere.invalid"))
    context = Context(client, Cache(client), Recorder(client, "test"), SystemClock())
    made = controller(context, Environment())
    assert set(INGRESS_KINDS) <= {watch.resource for watch in made.watches}


@pytest.mark.parametrize("kind", sorted(CHILDREN), ids=str)
def test_the_role_allows_whatever_builders_create(kind: Resource):
    roles = (each for each in chart.render("kserve", {"llmisvc": {"enabled": False}}) if each["kind"] == "ClusterRole")
    rules = [rule for role in roles for rule in role["rules"]]
    allowed = {
        verb
        for rule in rules
        if kind.group in rule["apiGroups"] and kind.plural in rule["resources"]
        for verb in rule["verbs"]
    }
    needed = {"get", "list", "watch", "create", "update"}
    assert allowed >= (needed if kind is REFERENCE_GRANTS else {*needed, "delete"})  # all services share one grant
