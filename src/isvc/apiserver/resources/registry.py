"""Which resources are served right now: the built-in ones, and those of every CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from isvc.apiserver.resources.description import Description


class Registry:
    def __init__(self, builtin: Iterable[Description]) -> None:
        self._served: dict[tuple[str, str, str], Description] = {}
        self._custom: dict[str, list[Description]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self.revision = 0  # changes with every change of what is served
        for description in builtin:
            self._add(description)

    def find(self, group: str, version: str, plural: str) -> Description | None:
        return self._served.get((group, version, plural))

    def of_collection(self, collection: str) -> Description | None:
        """Returns any version of a collection, the stored one if it is served."""
        found = [each for each in self if each.collection == collection]
        return next((each for each in found if each.resource == each.stored), found[0] if found else None)

    def has_group_version(self, group: str, version: str) -> bool:
        return any(key[:2] == (group, version) for key in self._served)

    def has_builtin_group(self, group: str) -> bool:
        return any(each.resource.group == group and not each.custom for each in self)

    def __iter__(self) -> Iterator[Description]:
        return iter(self._served.values())

    def install(self, crd: str, descriptions: list[Description]) -> None:
        """Serves the versions of a CustomResourceDefinition in place of what it served before."""
        self._drop(crd)
        taken = [each for each in descriptions if self._key(each) not in self._served]
        self._custom[crd] = taken
        for description in taken:
            self._add(description)
        self._notify(crd)

    def remove(self, crd: str) -> None:
        self._drop(crd)
        self._notify(crd)

    def on_change(self, listener: Callable[[str], None]) -> None:
        """`listener` gets the name of each CustomResourceDefinition whose resources changed."""
        self._listeners.append(listener)

    def off_change(self, listener: Callable[[str], None]) -> None:
        self._listeners.remove(listener)

    def _notify(self, crd: str) -> None:
        self.revision += 1
        for listener in tuple(self._listeners):
            listener(crd)

    def _drop(self, crd: str) -> None:
        for description in self._custom.pop(crd, []):
            del self._served[self._key(description)]

    def _add(self, description: Description) -> None:
        self._served[self._key(description)] = description

    @staticmethod
    def _key(description: Description) -> tuple[str, str, str]:
        resource = description.resource
        return resource.group, resource.version, resource.plural
