"""Controllers accept as sources of models exactly what the storage initializer can download."""

from __future__ import annotations

import re

import pytest

from isvc.pods.storage_initializer.schemes import MODULES
from isvc.serving.refused import Refused
from isvc.serving.storage.schemes import PREFIXES, check_storage_uri


@pytest.mark.parametrize("prefix", [prefix for prefix in PREFIXES if not prefix.startswith("oci+")])
def test_every_prefix_has_a_downloader(prefix: str) -> None:
    assert any(re.match(pattern, f"{prefix}bucket/model") for pattern, *_ in MODULES)


@pytest.mark.parametrize("module", [module for _, module, _ in MODULES])
def test_every_downloader_is_accepted(module: str) -> None:
    uris = {"local": "file:///models/a", "gcs": "gs://b/m", "s3": "s3://b/m", "webhdfs": "webhdfs://h/m"}
    uris |= {"huggingface": "hf://org/m", "oci": "oci://host/m", "http": "https://host/m"}
    uris |= {"modelscope": "modelscope://org/m", "git": "https://host/m.git"}
    uris |= {"azure_blob": "https://a.blob.core.windows.net/c/m", "azure_file": "https://a.file.core.windows.net/s/m"}
    check_storage_uri(uris[module], ())


def test_another_scheme_is_refused_by_name() -> None:
    with pytest.raises(Refused, match=re.escape("StorageUri [ftp://x] is not supported")):
        check_storage_uri("ftp://x", ())
