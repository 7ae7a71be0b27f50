"""OpenAPI documents of what the server serves: version 3 per group and version, version 2 for everything at once.

kubectl reads them to explain fields, to find out what a server can validate, and to merge with the right keys.
"""

from __future__ import annotations

from isvc.apiserver.openapi.documents import v2, v2_protobuf, v3, v3_index

__all__ = ["v2", "v2_protobuf", "v3", "v3_index"]
