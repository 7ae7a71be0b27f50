"""Who sent a request: the administrator's token, a service account's, or the name in a client certificate."""

from __future__ import annotations

import hmac
from typing import Any

from isvc.apiserver.access.identity import ADMIN, Identity, user_of_certificate
from isvc.apiserver.access.tokens import ISSUER, Tokens, Verified
from isvc.apiserver.request import User


class Authenticator:
    def __init__(self, identity: Identity, tokens: Tokens, given: dict[str, User]) -> None:
        """`given` are tokens that were made elsewhere."""
        self._admin = identity.admin_token.encode()
        self._tokens = tokens
        self._given = {token.encode(): user for token, user in given.items()}

    def user(self, authorization: str | None, certificate: dict[str, Any] | None) -> User | None:
        """Returns None for a credential that is not known, and for none at all."""
        if authorization is None:
            return user_of_certificate(certificate) if certificate else None
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        found = self.token(token.strip())
        return found.user if found else None

    def token(self, token: str, audiences: tuple[str, ...] = (ISSUER,)) -> Verified | None:
        if hmac.compare_digest(token.encode(), self._admin):
            return Verified(ADMIN, audiences)
        for known, user in self._given.items():
            if hmac.compare_digest(token.encode(), known):
                return Verified(user, audiences)
        return self._tokens.verify(token, audiences) if token.count(".") == 2 else None
