"""Which requests the dashboard does not answer."""

from __future__ import annotations

import pytest

from isvc.dashboard.guard import refusal


@pytest.mark.parametrize("host", ["localhost:8090", "127.0.0.1:8090", "[::1]:8090", "LOCALHOST"])
def test_names_of_this_machine_are_answered(host):
    assert refusal("GET", {"Host": host}, only_loopback=True) == ""


@pytest.mark.parametrize(
    "host", ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "localhost:8090@x"]
)
def test_no_other_name_is_so_that_rebinding_leads_nowhere(host):
    assert "localhost alone" in refusal("GET", {"Host": host}, only_loopback=True)
    assert refusal("GET", {"Host": host}, only_loopback=False) == ""


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://localhost:8090", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_other_sites_cannot_send_anything(headers):
    assert "another site" in refusal("POST", {"Host": "localhost:8090", **headers}, only_loopback=True)


def test_pages_of_the_dashboard_and_programs_can():
    own = {"Host": "localhost:8090", "Origin": "http://localhost:8090", "Sec-Fetch-Site": "same-origin"}
    assert refusal("POST", own, only_loopback=True) == ""
    assert refusal("POST", {"Host": "localhost:8090"}, only_loopback=True) == ""
