"""Values that no two objects may share (addresses, ports, names of kinds), for the strategies that hand them out."""

from __future__ import annotations

from dataclasses import dataclass, field

from isvc.apiserver.addresses import ServiceAddresses
from isvc.apiserver.crd.claimed_names import ClaimedNames
from isvc.apiserver.store.store import Store


@dataclass(frozen=True)
class Claims:
    addresses: ServiceAddresses = field(default_factory=ServiceAddresses)
    names: ClaimedNames = field(default_factory=ClaimedNames)

    def follow(self, store: Store) -> None:
        self.addresses.follow(store)
        self.names.follow(store)
