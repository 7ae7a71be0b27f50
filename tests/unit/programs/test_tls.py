import ssl

import pytest

from isvc.programs.options import TLS
from isvc.programs.tls import restrict
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
