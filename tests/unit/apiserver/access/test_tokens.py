from pathlib import Path

from isvc.apiserver.access.tokens import ISSUER, Tokens

ACCOUNT = {"metadata": {"name": "reader", "namespace": "ns", "uid": "account"}}
UIDS = {("serviceaccounts", "ns", "reader"): "account", ("pods", "ns", "p"): "pod"}


def tokens(folder: Path, at: float = 1000.0, uids: dict[tuple[str, str, str], str] | None = None) -> Tokens:
    folder.mkdir(exist_ok=True)
    known = UIDS if uids is None else uids
    return Tokens(folder, lambda *key: known.get(key), lambda: at)


def test_a_token_is_good_until_it_ends_also_after_a_restart(tmp_path: Path) -> None:
    token, ends = tokens(tmp_path).issue(ACCOUNT, [], 600, None)
    assert ends == 1600
    found = tokens(tmp_path, at=1599).verify(token)
    assert found is not None
    assert found.user.username == "system:serviceaccount:ns:reader"
    assert found.user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert tokens(tmp_path, at=1600).verify(token) is None
    assert tokens(tmp_path, at=999).verify(token) is None


def test_a_token_ends_with_its_account_and_with_what_it_is_bound_to(tmp_path: Path) -> None:
    token, _ = tokens(tmp_path).issue(ACCOUNT, [], 600, {"pod": {"name": "p", "uid": "pod"}})
    assert tokens(tmp_path).verify(token)
    for key in UIDS:
        recreated = {**UIDS, key: "another"}
        gone = {other: uid for other, uid in UIDS.items() if other != key}
        assert tokens(tmp_path, uids=recreated).verify(token) is None
        assert tokens(tmp_path, uids=gone).verify(token) is None


def test_a_token_is_for_its_audiences(tmp_path: Path) -> None:
    token, _ = tokens(tmp_path).issue(ACCOUNT, ["vault", ISSUER], 600, None)
    found = tokens(tmp_path).verify(token, ("vault", "other"))
    assert found is not None
    assert found.audiences == ("vault",)
    assert tokens(tmp_path).verify(token, ("other",)) is None


def test_what_is_not_signed_here_is_nobodys_token(tmp_path: Path) -> None:
    token, _ = tokens(tmp_path / "ours").issue(ACCOUNT, [], 600, None)
    tokens(tmp_path / "theirs").issue(ACCOUNT, [], 600, None)
    assert tokens(tmp_path / "theirs").verify(token) is None
    head, claims, signature = token.split(".")
    for forged in (
        f"{head}.{claims}.",
        f"{head}.{claims}.{signature[:-4]}",
        f"{head}..{signature}",
        "a.b.c",
        f"{head}.é.{signature}",
    ):
        assert tokens(tmp_path / "ours").verify(forged) is None
