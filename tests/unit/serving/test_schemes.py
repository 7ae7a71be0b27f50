"""Controllers accept as sources of models exactly what the storage initializer can download."""

from __future__ import annotations

import re

import pytest

from isvc.pods.storage_initializer.schemes import find_scheme
from isvc.serving.refused import Refused
from isvc.serving.storage.schemes import check_storage_uri
from isvc.storage_schemes import PREFIXES, SCHEMES


@pytest.mark.parametrize("prefix", [prefix for prefix in PREFIXES if not prefix.startswith("oci+")])
def test_every_prefix_has_a_downloader(prefix: str) -> None:
    assert find_scheme(f"{prefix}bucket/model") is not None


@pytest.mark.parametrize("module", [scheme.module for scheme in SCHEMES if scheme.module])
def test_every_downloader_is_found_and_accepted(module: str) -> None:
    uris = {"local": "file:///models/a", "gcs": "gs://b/m", "s3": "s3://b/m", "webhdfs": "webhdfs://h/m"}
    uris |= {"huggingface": "hf://org/m", "oci": "oci://host/m", "http": "https://host/m"}
    uris |= {"modelscope": "modelscope://org/m", "git": "https://host/m.git"}
    uris |= {"azure_blob": "https://a.blob.core.windows.net/c/m", "azure_file": "https://a.file.core.windows.net/s/m"}
    found = find_scheme(uris[module])
    assert found is not None
    assert found.module == module
    check_storage_uri(uris[module], ())


def test_another_scheme_is_refused_by_name() -> None:
    with pytest.raises(Refused, match=re.escape("StorageUri [ftp://x] is not supported")):
        check_storage_uri("ftp://x", ())
