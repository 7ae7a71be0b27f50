from __future__ import annotations

from isvc.local.status_printer import StatusPrinter, headline


def service(ready=None, **status):
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {"metadata": {"name": "iris", "namespace": "default"}, "status": {"conditions": conditions, **status}}


def test_every_change_of_state_is_printed_once():
    printed: list[str] = []
    printer = StatusPrinter(printed.append)
    failed = {"transitionStatus": "BlockedByFailedLoad", "lastFailureInfo": {"message": "no such file"}}
    states = [
        service(),
        service("False"),
        service("False"),
        service("False", modelStatus=failed),
        service("True", url="http://iris"),
        service("True", url="http://iris"),
    ]
    before = None
    for after in states:
        printer.changed(before, after)
        before = after
    printer.changed(before, None)
    assert printed == [
        "default/iris is starting",
        "default/iris does not load: no such file",
        "default/iris is ready at http://iris",
        "default/iris is gone",
    ]


def test_why_a_service_cannot_be_served_is_in_either_place():
    info = {"message": "No runtime found", "reason": "NoSupportingRuntime"}
    unsupported = service("Unknown", modelStatus={"transitionStatus": "InvalidSpec", "lastFailureInfo": info})
    assert headline(unsupported) == "cannot be served: No runtime found"
    refused = service("False")
    refused["status"]["conditions"][0] |= {"reason": "ReconcileFailed", "message": "name too long"}
    assert headline(refused) == "cannot be served: name too long"
    refused["status"]["conditions"][0] = {"type": "Ready", "status": "False", "reason": "Predictor ingress not created"}
    assert headline(refused) == "is starting"
