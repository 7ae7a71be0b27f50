"""Validates CertificateSigningRequests."""

from __future__ import annotations

import base64

from isvc.apiserver.builtin.validation.checks import Errors
from isvc.apiserver.field_errors import invalid, required
from isvc.kube.objects import Object
from isvc.wire.x509.check import signing_request_problem

_MIN_SECONDS = 600


def request(obj: Object) -> Errors:
    spec = obj["spec"]
    if problem := signing_request_problem(base64.b64decode(spec.get("request") or "")):
        yield invalid("spec.request", spec.get("request"), problem)
    if not spec.get("usages"):
        yield required("spec.usages", "usages must be provided")
    name = spec.get("signerName") or ""
    if not name:
        yield required("spec.signerName")
    elif "." not in name.partition("/")[0] or not name.partition("/")[2]:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid("spec.signerName", name, why)
    if (spec.get("expirationSeconds") or _MIN_SECONDS) < _MIN_SECONDS:
        why = f"may not specify a duration less than {_MIN_SECONDS} seconds (10 minutes)"
        yield invalid("spec.expirationSeconds", spec["expirationSeconds"], why)
