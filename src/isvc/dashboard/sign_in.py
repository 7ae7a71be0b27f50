"""Who may look: whoever has the link that was printed at the start.

The link carries a token that is new at every start. It is exchanged for a cookie at once, which scripts cannot read and
browsers do not send along with requests of other sites; so the token stays out of the address bar.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final

from aiohttp import web

TOKEN: Final = "token"  # noqa: S105 - the name of a parameter
_DAY: Final = 86_400


class LinkSignIn:
    def __init__(self, port: int) -> None:
        self._token = secrets.token_urlsafe(24)
        self._session = secrets.token_urlsafe(24)
        self._cookie = f"isvc-dashboard-{port}"  # browsers do not keep the cookies of two ports apart

    def link(self, base: str) -> str:
        return f"{base}/?{TOKEN}={self._token}"

    def is_signed_in(self, request: web.Request) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return _same(token.strip(), self._token)
        return _same(request.cookies.get(self._cookie, ""), self._session)

    def csrf(self, request: web.Request) -> str:
        """What forms of this reader carry, which no other site can know."""
        return hmac.new(self._session.encode(), b"forms", "sha256").hexdigest()

    async def is_own_form(self, request: web.Request) -> bool:
        """Whether a request that changes something comes from a page of ours, or from a program with the token."""
        if "Authorization" in request.headers:
            return True
        return _same(str((await request.post()).get("csrf", "")), self.csrf(request))

    def accepts(self, request: web.Request) -> bool:
        return _same(request.query.get(TOKEN, ""), self._token)

    def remember(self, response: web.StreamResponse) -> None:
        response.set_cookie(self._cookie, self._session, max_age=_DAY, httponly=True, samesite="Strict", path="/")


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
