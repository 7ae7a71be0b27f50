"""Where a service answers predictions: the path depends on the protocol and on the name that the model is served by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from isvc.api.inferenceservice import InferenceService, PredictorSpec
from isvc.api.inferenceservice.implementations import containers_of, env_value
from isvc.api.protocols import PROTOCOL_ENV
from isvc.api.servingruntime import ServingRuntimeSpec
from isvc.kube.objects import Object, dig, name_of
from isvc.serving.containers import TRANSFORMER, find_by_name

V1, V2 = "v1", "v2"


class NoEndpoint(Exception):
    """The service cannot be called yet, or not by a graph; the message says which, and `remedy` what would mend it."""

    def __init__(self, message: str, remedy: str = "ask isvc explain about that service") -> None:
        super().__init__(message)
        self.remedy = remedy


def predict_path(model: str, protocol: str) -> str:
    if protocol == V1:
        return f"/v1/models/{model}:predict"
    if protocol == V2:
        return f"/v2/models/{model}/infer"
    return ""


def predictor_endpoint(service: InferenceService, runtime_of: Callable[[str], ServingRuntimeSpec | None]) -> str:
    """Returns the in-cluster URL of a service's predictions, in the protocol of its first component in line.

    `runtime_of` finds the spec of a runtime by name: a service that names its runtime but no protocol speaks the
    first one of the runtime's that a graph understands.
    """
    address = service.status.address.url if service.status.address else ""
    if not address:
        raise NoEndpoint(f"InferenceService {service.metadata.name} is not ready")
    spec = service.spec
    if spec.transformer is not None:
        protocol = _protocol_variable(containers_of(spec.transformer.pod))
    elif is_multi_model(spec.predictor):
        return address
    else:
        protocol = _predictor_protocol(spec.predictor, runtime_of)
    return f"{address}{predict_path(model_name(service), protocol)}"


def llm_endpoint(service: Object) -> str:
    """Returns where an LLMInferenceService answers, for others of its cluster if it says so, without a path of its API.

    Addresses that tell services apart by a model's name alone are left to those who know the name.
    """
    addresses = {each.get("name", ""): each.get("url", "") for each in dig(service, "status", "addresses") or ()}
    for kind in ("gateway-internal", "internal", "gateway-external", ""):
        if addresses.get(kind):
            return str(addresses[kind])
    if url := dig(service, "status", "url"):
        return str(url)
    raise NoEndpoint(f"LLMInferenceService {name_of(service)} is not ready")


def predictor_protocol(predictor: PredictorSpec) -> str:
    """Returns the protocol that the predictor's own spec names, v1 where it names none."""
    if predictor.model is not None:
        return predictor.model.protocol_version or V1
    containers = containers_of(predictor.pod)
    collocated = find_by_name(containers, TRANSFORMER)
    return _protocol_variable([collocated] if collocated else containers)


def _predictor_protocol(predictor: PredictorSpec, runtime_of: Callable[[str], ServingRuntimeSpec | None]) -> str:
    name = predictor.model.runtime if predictor.model else None
    if not name:
        return predictor_protocol(predictor)
    runtime = runtime_of(name)
    if runtime is None:
        raise NoEndpoint(f"no runtime is named {name}", "create it, or let the service name another")
    if not runtime.protocol_versions:
        return predictor_protocol(predictor)
    for protocol in runtime.protocol_versions:
        if protocol in (V1, V2):
            return protocol
    said = f"runtime {name} speaks neither v1 nor v2, which is what graphs understand"
    raise NoEndpoint(said, "give the step a serviceUrl in place of its serviceName")


def model_name(service: InferenceService) -> str:
    """Returns the name in the URL: that in the server's arguments or environment, else the service's."""
    own, spec = service.metadata.name, service.spec
    if spec.transformer and (name := _name_argument(_first(spec.transformer.pod))):
        return name
    if spec.predictor.model is None:
        return _name_argument(_first(spec.predictor.pod)) or own
    server = spec.predictor.model.container
    named = env_value(server, "MLSERVER_MODEL_NAME")
    return _name_argument(server) or own if named is None else named


def is_multi_model(predictor: PredictorSpec) -> bool:
    """Returns whether the predictor is an empty server that trained models are added to: nothing of its own to load."""
    if containers := containers_of(predictor.pod):
        return env_value(containers[0], "MULTI_MODEL_SERVER") == "true"
    model = predictor.model
    if model is None:
        return False  # there is no server at all
    if model.model_format.name == "huggingface":
        return False  # it can fetch a model by its identifier, without storage
    return model.storage_uri is None and model.storage is None and not predictor.storage_uris


def _first(pod: Object) -> Object:
    return (containers_of(pod) or [{}])[0]


def _name_argument(container: Object) -> str:
    """Returns the value of --model_name, given with `=` or as the next argument; the last one wins."""
    arguments: Sequence[str] = container.get("args") or ()
    name = ""
    for index, argument in enumerate(arguments):
        if not argument.startswith("--model_name"):
            continue
        parts = argument.split("=")
        if len(parts) == 2:
            name = parts[1]
        if index + 1 < len(arguments) and not arguments[index + 1].startswith("--"):
            name = arguments[index + 1]
    return name


def _protocol_variable(containers: Sequence[Object]) -> str:
    named = env_value(containers[0], PROTOCOL_ENV) if containers else None
    return V1 if named is None else named
