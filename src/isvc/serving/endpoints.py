"""Where a service answers predictions: the path depends on the protocol and on the name that the model is served by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from isvc.kube.objects import Object, dig, name_of

V1, V2 = "v1", "v2"


class NoEndpoint(Exception):
    """The service cannot be called yet, or not by a graph; the message says which."""


def predict_path(model: str, protocol: str) -> str:
    if protocol == V1:
        return f"/v1/models/{model}:predict"
    if protocol == V2:
        return f"/v2/models/{model}/infer"
    return ""


def predictor_endpoint(isvc: Object, runtime_of: Callable[[str], Object | None]) -> str:
    """The in-cluster URL of a service's predictions, as its first component in line speaks them.

    `runtime_of` finds the spec of a runtime by name: a service that names its runtime but no protocol speaks the
    first one of the runtime's that a graph understands.
    """
    address = dig(isvc, "status", "address", "url")
    if not address:
        raise NoEndpoint(f"service {name_of(isvc)} is not ready")
    spec = isvc.get("spec") or {}
    if spec.get("transformer") is not None:
        protocol = _protocol_variable(dig(spec, "transformer", "containers") or [])
    elif is_multi_model(spec.get("predictor") or {}):
        return str(address)
    else:
        protocol = _predictor_protocol(spec.get("predictor") or {}, runtime_of)
    return f"{address}{predict_path(model_name(isvc), protocol)}"


def predictor_protocol(predictor: Object) -> str:
    """The protocol that the predictor's own spec names, v1 where it names none."""
    if model := predictor.get("model"):
        return str(model.get("protocolVersion") or V1)
    containers = predictor.get("containers") or []
    collocated = [c for c in containers if c.get("name") == "transformer-container"]
    return _protocol_variable(collocated or containers)


def _predictor_protocol(predictor: Object, runtime_of: Callable[[str], Object | None]) -> str:
    name = dig(predictor, "model", "runtime")
    if not name:
        return predictor_protocol(predictor)
    runtime = runtime_of(name)
    if runtime is None:
        raise NoEndpoint(f"no runtime is named {name}")
    offered = runtime.get("protocolVersions") or []
    if not offered:
        return predictor_protocol(predictor)
    for protocol in offered:
        if protocol in (V1, V2):
            return str(protocol)
    raise NoEndpoint(f"runtime {name} speaks neither v1 nor v2, which is what graphs understand")


def model_name(isvc: Object) -> str:
    """The name in the URL: what the server is told on its command line or in its environment, else the service's."""
    spec = isvc.get("spec") or {}
    if name := _name_argument(dig(spec, "transformer", "containers", 0, "args") or []):
        return name
    predictor = spec.get("predictor") or {}
    if model := predictor.get("model"):
        for variable in model.get("env") or []:
            if variable.get("name") == "MLSERVER_MODEL_NAME":
                return str(variable.get("value", ""))
        return _name_argument(model.get("args") or []) or name_of(isvc)
    if containers := predictor.get("containers"):
        return _name_argument(containers[0].get("args") or []) or name_of(isvc)
    return name_of(isvc)


def is_multi_model(predictor: Object) -> bool:
    """Whether the predictor is an empty server that trained models are added to: nothing of its own to load."""
    if containers := predictor.get("containers"):
        variables = containers[0].get("env") or []
        return any(v.get("name") == "MULTI_MODEL_SERVER" and v.get("value") == "true" for v in variables)
    model = predictor.get("model") or {}
    if dig(model, "modelFormat", "name") == "huggingface":
        return False  # it can fetch a model by its identifier, without storage
    own = any(model.get(field) is not None for field in ("storageUri", "storage"))
    return not own and not predictor.get("storageUris")


def _name_argument(arguments: Sequence[str]) -> str:
    """The value of --model_name, given with `=` or as the next argument; the last one wins."""
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
    for variable in containers[0].get("env") or [] if containers else []:
        if variable.get("name") == "PROTOCOL":
            return str(variable.get("value", ""))
    return V1
