"""How a model gets into a pod: downloaded by an init container, mounted from a claim, or carried by an OCI image.

The pod webhook uses it for one URI, the controllers for several; all of it is pure.
"""

from __future__ import annotations

from isvc.serving.storage.containers import choose_storage_container
from isvc.serving.storage.initialize import Source, StorageRequest, initialize, is_read_only

__all__ = ["Source", "StorageRequest", "choose_storage_container", "initialize", "is_read_only"]
