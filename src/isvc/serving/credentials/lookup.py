"""One namespace's service accounts and secrets, as far as they are known.

Which secrets matter shows only while credentials are worked out: the service account names them, or the pod does.
Asking for one that is not known yet raises `Needs`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from isvc.engine.needs import Answers, Stored
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import SECRETS, SERVICE_ACCOUNTS
from isvc.serving.refused import Refused


@dataclass(frozen=True, slots=True)
class Lookup:
    """`account_in_memory` finds service accounts where an informer has them. Secrets are read for each decision."""

    namespace: str
    answers: Answers = field(default_factory=Answers)
    account_in_memory: Callable[[str], Object | None] | None = None

    def service_account(self, name: str) -> Object | None:
        if self.account_in_memory is not None:
            return self.account_in_memory(name)
        return self.answers[Stored(SERVICE_ACCOUNTS, name, self.namespace)]

    def secret(self, name: str) -> Object | None:
        return self.answers[self._secret(name)]

    def expect_secrets(self, names: Iterable[str]) -> None:
        """Asks for several secrets at once, so that they can be read side by side."""
        self.answers.expect(*map(self._secret, names))

    def _secret(self, name: str) -> Stored:
        return Stored(SECRETS, name, self.namespace)


def secret_value(secret: Object, key: str) -> str | None:
    """Returns a value of a secret as text; None when the secret has no such key."""
    encoded = (secret.get("data") or {}).get(key)
    if encoded is None:
        return None
    try:
        return base64.b64decode(encoded).decode("utf-8", "replace")
    except binascii.Error:
        raise Refused(f'secret "{name_of(secret)}": the value of {key} is not base64') from None
