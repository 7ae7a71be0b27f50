"""Tokens of service accounts: JSON Web Tokens that this server signs, and accepts while what they are bound to exists.

A token names a service account by uid, and maybe a pod, node or secret. When one of them is deleted, or deleted and
created anew, the token ends with it.
"""

from __future__ import annotations

import base64
import binascii
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from isvc.apiserver.access.impersonation import ACCOUNTS, AUTHENTICATED
from isvc.apiserver.request import User
from isvc.kube.objects import Object, dig
from isvc.wire.bounded import Bounded
from isvc.wire.private_files import write_private
from isvc.wire.x509.issue import decode_key, encode_key, new_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

ISSUER = "https://kubernetes.default.svc"
PREFIX = "system:serviceaccount:"
_CLAIM = "kubernetes.io"
_BOUND = {"pod": "pods", "node": "nodes", "secret": "secrets"}
_MOST_CACHED = 1000
_HALF = 32  # bytes of one half of a signature

#: The uid of an object: collection, namespace, name.
Uid = Callable[[str, str, str], str | None]


class Verified(NamedTuple):
    user: User
    audiences: tuple[str, ...]


class Tokens:
    def __init__(self, folder: Path, uid_of: Uid, clock: Callable[[], float] = time.time) -> None:
        """Keeps the signing key in `folder`; it is made when the first token is asked for."""
        self._clock = clock
        self._path = folder / "service-accounts.key"
        self._uid_of = uid_of
        self._key: ec.EllipticCurvePrivateKey | None = None
        self._claims: Bounded[str, Object] = Bounded(_MOST_CACHED)  # of tokens whose signature was right

    def issue(self, account: Object, audiences: list[str], seconds: int, bound: Object | None) -> tuple[str, int]:
        """Returns a token for the account, and when it ends. `bound` is {kind: {name, uid}} of what it is bound to."""
        meta, now = account["metadata"], int(self._clock())
        ends = now + seconds
        identity: Object = {"name": meta["name"], "uid": meta["uid"]}
        claims: Object = {
            "aud": audiences or [ISSUER],
            "exp": ends,
            "iat": now,
            "iss": ISSUER,
            "jti": secrets.token_hex(16),
            "kubernetes.io": {"namespace": meta["namespace"], "serviceaccount": identity, **(bound or {})},
            "nbf": now,
            "sub": f"{PREFIX}{meta['namespace']}:{meta['name']}",
        }
        signed = f"{_encode(orjson.dumps({'alg': 'ES256', 'typ': 'JWT'}))}.{_encode(orjson.dumps(claims))}"
        return f"{signed}.{_encode(_sign(self._signing_key(), signed.encode()))}", ends

    def verify(self, token: str, audiences: tuple[str, ...] = (ISSUER,)) -> Verified | None:
        """Returns whose token it is, if it is one of ours, for one of these audiences, and still good."""
        claims = self._claims.get(token) or self._verified_claims(token)
        if claims is None or not claims["nbf"] <= self._clock() < claims["exp"] or claims["iss"] != ISSUER:
            return None
        matching = tuple(each for each in audiences if each in claims["aud"])
        own: Object = claims[_CLAIM]
        namespace, account = own["namespace"], own["serviceaccount"]
        if not matching or self._uid_of("serviceaccounts", namespace, account["name"]) != account["uid"]:
            return None
        extra = {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}
        for kind, collection in _BOUND.items():
            if bound := own.get(kind):
                where = "" if kind == "node" else namespace
                if self._uid_of(collection, where, bound["name"]) != bound["uid"]:
                    return None
                extra[f"authentication.kubernetes.io/{kind}-name"] = [bound["name"]]
                extra[f"authentication.kubernetes.io/{kind}-uid"] = [bound["uid"]]
        groups = (ACCOUNTS, f"{ACCOUNTS}:{namespace}", AUTHENTICATED)
        return Verified(User(claims["sub"], groups, account["uid"], extra), matching)

    def _verified_claims(self, token: str) -> Object | None:
        """Returns the claims of a token that carries our signature."""
        signed, _, signature = token.rpartition(".")
        if signed.count(".") != 1 or not self._path.exists():
            return None
        try:
            if not _is_signed(self._signing_key(), signed.encode(), _decode(signature)):
                return None
            claims: Any = orjson.loads(_decode(signed.partition(".")[2]))
        except (binascii.Error, ValueError):
            return None
        self._claims[token] = claims
        return claims if dig(claims, _CLAIM, "serviceaccount", "uid") else None

    def _signing_key(self) -> ec.EllipticCurvePrivateKey:
        if self._key is None:
            self._key = _load_or_make(self._path)
        return self._key


def _load_or_make(path: Path) -> ec.EllipticCurvePrivateKey:
    if not path.exists():
        write_private(path, encode_key(new_key()))
    return decode_key(path.read_bytes())


def _sign(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    halves = decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
    return b"".join(half.to_bytes(_HALF, "big") for half in halves)


def _is_signed(key: ec.EllipticCurvePrivateKey, data: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    if len(signature) != 2 * _HALF:
        return False
    halves = (int.from_bytes(part, "big") for part in (signature[:_HALF], signature[_HALF:]))
    try:
        key.public_key().verify(encode_dss_signature(*halves), data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
