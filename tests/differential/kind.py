"""What a kind is to random sequences: where it is served, and pieces of its objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]


@dataclass(frozen=True, repr=False)
class Kind:
    prefix: str
    plural: str
    kind: str
    bodies: st.SearchStrategy[Json]
    statuses: st.SearchStrategy[Json] | None = None

    def __repr__(self) -> str:
        return self.plural

    @property
    def api_version(self) -> str:
        return self.prefix.removeprefix("/apis/").removeprefix("/api/")

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        return "/".join(
            part for part in (f"{self.prefix}/namespaces/{namespace}/{self.plural}", name, subresource) if part
        )


def some(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Json]:
    """An object with any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


def listed(items: list[Any], least: int = 0) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(items), min_size=least, max_size=3)


metadata = some(
    {
        "labels": st.sampled_from([{"app": "a"}, {"app": "b"}, {"app": "a", "tier": "x"}]),
        "annotations": st.sampled_from([{"note": "1"}, {"note": "2"}]),
        "finalizers": st.just(["isvc.dev/hold"]),
    }
)


def with_metadata(spec: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({"spec": spec}, optional={"metadata": metadata})
