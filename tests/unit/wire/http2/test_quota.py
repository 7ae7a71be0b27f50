from __future__ import annotations

from isvc.wire.http2.quota import Quota


def test_a_burst_then_so_many_a_second():
    now = 0.0
    quota = Quota(3, 2.0, lambda: now)
    assert [quota.spend() for _ in range(4)] == [True, True, True, False]
    now = 10.0
    assert [quota.spend() for _ in range(4)] == [True, True, True, False]
    now = 11.0
    assert [quota.spend() for _ in range(3)].count(True) == 1  # what was asked for in vain counts, too
