"""Impersonation: a request in another user's name, by somebody who may do that."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from isvc.apiserver.access.attributes import Attributes, forbidden
from isvc.apiserver.access.rbac import Rbac
from isvc.apiserver.request import Request, User
from isvc.kube.errors import BadRequest

_USER, _GROUP, _UID, _EXTRA = ("impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-")
_ACCOUNT = "system:serviceaccount:"
_REVIEWS = "authentication.k8s.io"
AUTHENTICATED = "system:authenticated"
ACCOUNTS = "system:serviceaccounts"


def impersonate(request: Request, user: User, rbac: Rbac) -> User:
    """Returns the user that the request is in the name of: the one who sent it, unless its headers say otherwise."""
    name = request.headers.get(_USER, "")
    if not name:
        if any(header.startswith("impersonate-") for header in request.headers):
            raise BadRequest("requested impersonation without impersonating a user")
        return user
    groups = tuple(each.strip() for each in request.headers.get(_GROUP, "").split(",") if each.strip())
    extra = {
        unquote(header.removeprefix(_EXTRA)): [each.strip() for each in value.split(",")]
        for header, value in request.headers.items()
        if header.startswith(_EXTRA)
    }
    wanted = User(name, groups, request.headers.get(_UID, ""), extra)
    for attributes in _permissions(wanted):
        if rbac.allows(user, attributes) is None:
            raise forbidden(user, attributes)
    if not groups and name.startswith(_ACCOUNT):
        groups = (ACCOUNTS, f"{ACCOUNTS}:{name.split(':')[2]}")
    if name != "system:anonymous" and AUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return wanted._replace(groups=groups)


def _permissions(wanted: User) -> Iterator[Attributes]:
    if wanted.username.startswith(_ACCOUNT) and wanted.username.count(":") == 3:
        *_, namespace, name = wanted.username.split(":")
        yield Attributes("impersonate", resource="serviceaccounts", namespace=namespace, name=name)
    else:
        yield Attributes("impersonate", resource="users", name=wanted.username)
    for group in wanted.groups:
        yield Attributes("impersonate", resource="groups", name=group)
    if wanted.uid:
        yield Attributes("impersonate", _REVIEWS, "uids", name=wanted.uid)
    for key, values in wanted.extra.items():
        for value in values:
            yield Attributes("impersonate", _REVIEWS, "userextras", key, name=value)
