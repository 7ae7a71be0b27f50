"""HDFS behind Kerberos, with a real key distribution centre and a server that checks tokens with the same library."""

from __future__ import annotations

import base64
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from ctypes import byref, c_uint32, c_void_p
from pathlib import Path

import pytest
from tests.ports import free_port
from tests.unit.pods.storage_initializer.files import contents
from tests.unit.pods.storage_initializer.sites import Answer, site
from tests.unit.pods.storage_initializer.test_webhdfs import Namenode, secret
from tests.waiting import wait_until

from isvc.pods.storage_initializer.kerberos import LIBRARY, _Buffer
from isvc.pods.storage_initializer.program import run

REALM = "TEST.LOCAL"
FOLDER = Path(os.environ.get("ISVC_KDC", "/"))  # where Debian's packages were unpacked


class Centre:
    """A KDC with a database of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, port = folder, free_port()
        libraries = [*FOLDER.glob("usr/lib/*-linux-gnu")]
        plugins = next(iter(FOLDER.glob("usr/lib/*-linux-gnu/krb5/plugins/kdb")))
        (folder / "krb5.conf").write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_canonicalize_hostname = false\n"
            f" rdns = false\n[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
        )
        (folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n[realms]\n"
            f" {REALM} = {{\n  database_name = {folder}/principal\n  key_stash_file = {folder}/stash\n }}\n"
            f"[dbmodules]\n db_module_dir = {plugins}\n"
        )
        self.env = {
            "KRB5_CONFIG": f"{folder}/krb5.conf",
            "KRB5_KDC_PROFILE": f"{folder}/kdc.conf",
            **({"LD_LIBRARY_PATH": ":".join(map(str, libraries))} if Path("/") != FOLDER else {}),
        }
        self._run("kdb5_util", "create", "-s", "-P", "x", "-r", REALM)
        for name in ("me", "HTTP/localhost"):
            self._run("kadmin.local", "-q", f"addprinc -randkey {name}")
            self._run("kadmin.local", "-q", f"ktadd -k {folder}/{name.partition('/')[0]}.keytab {name}")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(FOLDER / "usr/sbin" / program), *arguments]
        subprocess.run(command, env=self.env, check=True, capture_output=True, timeout=60)

    def start(self) -> subprocess.Popen[bytes]:
        command = [str(FOLDER / "usr/sbin/krb5kdc"), "-n"]
        process = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout is not None
        wait_until(lambda: b"starting" in (process.stdout.readline() if process.stdout else b""))
        return process


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Centre]:
    made = Centre(tmp_path_factory.mktemp("kdc"))
    process = made.start()
    try:
        yield made
    finally:
        process.kill()
        process.wait()


def _accepts(token: bytes, keytab: Path) -> bool:
    """Whether the library that servers use takes a token for a proof."""
    os.environ["KRB5_KTNAME"] = f"FILE:{keytab}"
    library = ctypes.CDLL(LIBRARY)
    minor, context, source, answer = c_uint32(), c_void_p(), c_void_p(), _Buffer()
    held = ctypes.create_string_buffer(token, len(token))
    given = _Buffer(len(token), ctypes.cast(held, c_void_p))
    status = library.gss_accept_sec_context(
        byref(minor), byref(context), None, byref(given), None, byref(source), None, byref(answer), None, None, None
    )
    return (status & 0xFFFF0000) == 0


def test_a_model_of_a_secured_cluster(centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_KTNAME", "")
    with site() as made:
        open_namenode = Namenode(made).answer
        made.address = made.address.replace("127.0.0.1", "localhost")

        def guarded(answer: Answer) -> bool:
            if "datanode=1" in answer.path:  # whose address is a proof in itself
                return open_namenode(answer)
            kind, _, token = answer.headers.get("Authorization", "").partition(" ")
            if kind != "Negotiate" or not _accepts(base64.b64decode(token), centre.folder / "HTTP.keytab"):
                answer.send_error(401)
                return True
            return open_namenode(answer)

        made.spoil = guarded
        variables = secret(tmp_path / "secret", HDFS_NAMENODE=made.address, KERBEROS_PRINCIPAL=f"me@{REALM}")
        shutil.copy(centre.folder / "me.keytab", tmp_path / "secret" / "KERBEROS_KEYTAB")
        shutil.copy(centre.folder / "krb5.conf", tmp_path / "secret" / "KRB5_CONF")
        assert run(["hdfs://models/iris/deep", str(tmp_path / "model")], variables) == 0
        assert contents(tmp_path / "model") == {"config.json": b"{}"}
        message = {"TERMINATION_MESSAGE_PATH": str(tmp_path / "message")}
        (tmp_path / "secret" / "KERBEROS_PRINCIPAL").write_text(f"stranger@{REALM}")
        assert run(["hdfs://models/iris/deep", str(tmp_path / "other")], {**variables, **message}) == 4
        assert f"stranger@{REALM} cannot log in with the keytab" in (tmp_path / "message").read_text()
