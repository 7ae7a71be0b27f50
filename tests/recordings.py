"""The recorded cases of the reference, which lie beside the repository: 12 MB of YAML that many tests read.

A file is parsed once. What it holds is kept in the user's cache, under the digest of its text.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(os.environ.get("CONFORMANCE", Path(__file__).parents[2] / "shared" / "conformance"))
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "isvc" / "recordings"


def load(path: Path) -> Any:
    """Returns the one document of a file, or nothing."""
    return next(iter(load_all(path)), None)


@cache
def load_all(path: Path) -> list[Any]:
    """Returns the documents of a file that are not empty."""
    text = path.read_bytes()
    kept = CACHE / hashlib.sha256(text).hexdigest()
    if kept.exists():
        return list(pickle.loads(kept.read_bytes()))
    documents = [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]
    CACHE.mkdir(parents=True, exist_ok=True)
    unfinished = kept.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(pickle.dumps(documents))
    unfinished.rename(kept)
    return documents
