"""TLS is as chosen, and a certificate in a place that anybody can write to is used only if it is ours."""

import os
import ssl
import stat

import pytest

from isvc.programs.options import TLS
from isvc.programs.tls import MOUNTED, PrivateFolder, mounted_certificate, restrict
from isvc.toolkit.failure import ConfigError


def test_tls_versions_and_ciphers():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    restrict(context, TLS("VersionTLS13"))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3
    restrict(context, TLS(cipher_suites=("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",)))
    names = {cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] == "TLSv1.2"}
    assert names == {"ECDHE-RSA-AES128-GCM-SHA256"}


@pytest.mark.parametrize(
    "tls",
    [
        TLS("VersionTLS10"),
        TLS(cipher_suites=("NO_SUCH_SUITE",)),
        TLS("VersionTLS13", ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",)),
    ],
)
def test_what_tls_cannot_do_is_refused(tls):
    with pytest.raises(ConfigError, match="--tls"):
        restrict(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), tls)


@pytest.fixture
def served(tmp_path):
    folder = tmp_path / MOUNTED
    folder.mkdir(parents=True)
    (folder / "tls.crt").touch()
    return folder


def test_the_mounted_certificate_is_used(served, tmp_path):
    assert mounted_certificate(tmp_path, trusted={os.getuid()}) == served
    assert mounted_certificate(tmp_path / "elsewhere", trusted={os.getuid()}) is None


def test_a_certificate_that_another_user_put_there_is_not(served, tmp_path, caplog):
    assert mounted_certificate(tmp_path, trusted={os.getuid() + 1}) is None
    assert "belongs to another user" in caplog.text


async def test_our_own_is_kept_in_a_folder_that_nobody_else_can_enter():
    folder, other = PrivateFolder(), PrivateFolder()
    assert folder.path != other.path
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    for each in (folder, other):
        await each.stop()
        assert not each.path.exists()
