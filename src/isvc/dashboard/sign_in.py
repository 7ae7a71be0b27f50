"""Who may look. A session is a cookie that scripts cannot read and browsers do not send along for other sites.

On this machine a link with a token that is new at every start is enough; the token is exchanged for the cookie at once,
so it stays out of the address bar. For other machines there is a password, or each user's own token for the cluster.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Final, Protocol

from aiohttp import web

from isvc.dashboard.entrance import TOKEN_IN_LINK, Entrance
from isvc.dashboard.guesses import Guesses
from isvc.dashboard.pages.live import STILL_ADMITTED
from isvc.dashboard.pages.rendering import Page, respond
from isvc.wire.bounded import Bounded

TOKEN: Final = web.RequestKey("token", str)
SIGN_IN: Final = "/sign-in"
WRONG: Final = "that is not right"
EXPIRED: Final = "the token that you signed in with has expired"
MOST_SESSIONS: Final = 1000
_DAY: Final = 86_400


class SignIn(Protocol):
    def link(self, entrance: Entrance) -> str:
        """Returns the address at which users begin."""
        ...

    async def admit(self, request: web.Request) -> web.StreamResponse | None:
        """Returns what to answer instead of the page; None for a request that is let in."""
        ...


class Sessions:
    """Cookies that have been given out, each with the secret that it was given for."""

    def __init__(self, port: int, *, secure: bool) -> None:
        self._name = f"isvc-dashboard-{port}"  # browsers do not keep the cookies of two ports apart
        self._secure = secure
        self._secrets: Bounded[str, str] = Bounded(MOST_SESSIONS)
        self._key = secrets.token_bytes(32)

    def secret(self, request: web.Request) -> str | None:
        return self._secrets.get(request.cookies.get(self._name, ""))

    def begin(self, response: web.StreamResponse, secret: str) -> None:
        session = secrets.token_urlsafe(24)
        self._secrets[session] = secret
        response.set_cookie(
            self._name, session, max_age=_DAY, httponly=True, samesite="Strict", secure=self._secure, path="/"
        )

    def csrf(self, request: web.Request) -> str:
        """Returns what forms of this session carry, which no other site can know."""
        return hmac.new(self._key, request.cookies.get(self._name, "").encode(), "sha256").hexdigest()

    async def is_own_form(self, request: web.Request) -> bool:
        """Returns whether a request that changes something comes from a page of ours or a program with a token."""
        if _bearer(request):
            return True
        return _is_same(str((await request.post()).get("csrf", "")), self.csrf(request))


class LinkSignIn:
    def __init__(self, sessions: Sessions, token: str) -> None:
        self._sessions, self._token = sessions, token

    def link(self, entrance: Entrance) -> str:
        return entrance.link

    async def admit(self, request: web.Request) -> web.StreamResponse | None:
        if given := request.query.get(TOKEN_IN_LINK):
            if not _is_same(given, self._token):
                return _refusal(request)
            response = _redirect(request.rel_url.raw_path)
            self._sessions.begin(response, "")
            return response
        if bearer := _bearer(request):
            return None if _is_same(bearer, self._token) else _refusal(request)
        return None if self._sessions.secret(request) is not None else _refusal(request)


class FormSignIn:
    """A form that asks for a secret: the password, or a token for the cluster, which is kept in memory alone."""

    def __init__(self, sessions: Sessions, label: str, accepts: Callable[[str], Awaitable[bool]]) -> None:
        self._sessions, self._label, self._accepts = sessions, label, accepts
        self._guesses = Guesses(accepts)

    def link(self, entrance: Entrance) -> str:
        return f"{entrance.base}/"

    async def admit(self, request: web.Request) -> web.StreamResponse | None:
        if request.path == SIGN_IN and request.method == "POST":
            return await self._begin_session(request)
        if bearer := _bearer(request):
            secret, refusal = bearer, "" if await self._is_right(request, bearer) else WRONG
        elif (known := self._sessions.secret(request)) is not None:
            secret, refusal = known, "" if await self._accepts(known) else EXPIRED
        else:
            return self._form(request, "")
        if refusal:
            return self._form(request, refusal)
        request[TOKEN] = secret
        still_admitted: Callable[[], Awaitable[bool]] = partial(self._accepts, secret)
        request[STILL_ADMITTED] = still_admitted
        return None

    async def _begin_session(self, request: web.Request) -> web.StreamResponse:
        secret = str((await request.post()).get("secret", "")).strip()
        if not secret or not await self._is_right(request, secret):
            return self._form(request, WRONG)
        response = _redirect("/")
        self._sessions.begin(response, secret)
        return response

    async def _is_right(self, request: web.Request, secret: str) -> bool:
        return await self._guesses.is_right(secret, request.remote or "")

    def _form(self, request: web.Request, message: str) -> web.Response:
        shown = {"status": HTTPStatus.UNAUTHORIZED.value, "message": message}
        page = Page("sign_in.html", "Sign in", shown, HTTPStatus.UNAUTHORIZED, around={"label": self._label})
        return respond(request, page)


def password_check(expected: str) -> Callable[[str], Awaitable[bool]]:
    digest = hashlib.sha256(expected.encode()).digest()

    async def accepts(given: str) -> bool:
        return hmac.compare_digest(hashlib.sha256(given.encode()).digest(), digest)

    return accepts


def _bearer(request: web.Request) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _redirect(path: str) -> web.Response:
    return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": "/" + path.lstrip("/")})


def _refusal(request: web.Request) -> web.Response:
    shown = {"status": HTTPStatus.UNAUTHORIZED.value, "message": "open the link that was printed at the start"}
    return respond(request, Page("problem.html", "Not signed in", shown, HTTPStatus.UNAUTHORIZED))


def _is_same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
