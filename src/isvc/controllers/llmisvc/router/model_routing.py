"""Routing by a header that names the model: whether a route has such rules, and rules for adapters.

Clients of many services behind one gateway then need only one URL. The model servers have to know the model by its
qualified name too, which presets say by an annotation; a gateway can opt out by the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.router.models import adapter_names, qualify
from isvc.controllers.llmisvc.router.paths import is_model_match
from isvc.controllers.llmisvc.router.validation import gateway_key
from isvc.kube.objects import Key, Object, annotations_of, dig

ANNOTATION: Final = "serving.kserve.io/model-based-routing-enabled"


def with_model_routing(route: Object, observed: Observed) -> Object:
    """Returns the route's spec with header rules for the adapters too, or with no header rules at all."""
    header = observed.settings.model_based_routing_header_name
    if not header:
        return route
    rules = route.get("rules") or []
    if is_enabled(observed):
        models = [qualify(observed.namespace, name) for name in sorted(adapter_names(observed.merged.raw))]
        return {**route, "rules": [_with_adapters(rule, models, header) for rule in rules]}
    return {**route, "rules": [stripped for rule in rules if (stripped := _without_header(rule, header))]}


def is_enabled(observed: Observed) -> bool:
    mode = observed.config.ingress.model_based_routing_mode.lower()
    if observed.spec.annotations.get(ANNOTATION) != "true" or mode == "disabled":
        return False
    return mode == "forced" or not any(annotations_of(each).get(ANNOTATION) == "false" for each in _gateways(observed))


def _gateways(observed: Observed) -> list[Object]:
    """Returns the gateways that the service refers to, itself or through its routes."""
    if not observed.gateways:
        return []
    parents = (parent for route in observed.network.routes.values() for parent in _parents(route))
    referred = [Key(each.namespace or observed.namespace, each.name) for each in observed.gateways]
    keys = dict.fromkeys((*referred, *(gateway_key(parent, observed.namespace) for parent in parents)))
    return [gateway for key in keys if (gateway := observed.network.gateways.get(key))]


def _parents(route: Object) -> Sequence[Object]:
    return dig(route, "spec", "parentRefs") or ()


def _with_adapters(rule: Object, models: Sequence[str], header: str) -> Object:
    matches = rule.get("matches") or []
    more = [_for_model(match, model, header) for match in matches if is_model_match(match, header) for model in models]
    return {**rule, "matches": [*matches, *more]} if more else rule


def _for_model(match: Object, model: str, header: str) -> Object:
    headers = [{**each, "value": model} if each.get("name") == header else each for each in match["headers"]]
    return {**match, "headers": headers}


def _without_header(rule: Object, header: str) -> Object | None:
    """A rule that matched nothing but the header goes."""
    if not rule.get("matches"):
        return rule
    matches = [match for match in rule["matches"] if not is_model_match(match, header)]
    return {**rule, "matches": matches} if matches else None
