import pytest

from isvc.toolkit.address import Address
from isvc.toolkit.failure import ConfigError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", Address("", 8080)),
        ("127.0.0.1:9", Address("127.0.0.1", 9)),
        ("[::1]:9", Address("::1", 9)),
        ("localhost:9", Address("localhost", 9)),
        ("0", None),
        (":0", None),
    ],
)
def test_addresses(text, address):
    assert Address.parse(text) == address
    if address is not None:
        assert str(address) == text


@pytest.mark.parametrize("text", ["", "localhost", ":http", ":65536", "::1:80", ":٣"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError, match="no address"):
        Address.parse(text)
