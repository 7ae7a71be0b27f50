"""The controller accepts what the storage initializer can fetch, and the other way round."""

from __future__ import annotations

import importlib
import re

from isvc.serving.storage.schemes import PREFIXES, check_storage_uri
from isvc.serving.storage.uris import parse_oci
from isvc.storage_initializer import schemes
from isvc.storage_initializer.schemes import MODULES

AZURE = ("https://account.blob.core.windows.net/container/model", "https://account.file.core.windows.net/share/model")


def test_every_accepted_prefix_has_a_module():
    for uri in (*(f"{prefix}place/model" for prefix in PREFIXES), *AZURE):
        check_storage_uri(uri, ())
        image = parse_oci(uri)  # how an image gets into a pod is the controller's business
        fetched = image.uri if image else uri
        assert any(re.match(pattern, fetched) for pattern, *_ in MODULES), uri


def test_every_module_serves_an_accepted_uri_and_can_fetch():
    uris = [f"{prefix}place/model" for prefix in PREFIXES] + list(AZURE)
    for pattern, module, _ in MODULES:
        assert any(re.match(pattern, uri) for uri in uris), module
        assert callable(importlib.import_module(f"{schemes.__name__}.{module}").fetch)
