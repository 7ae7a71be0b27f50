"""Compressed headers, remembered: a decoder has to read what it would have read without."""

from __future__ import annotations

from hpack import Decoder, NeverIndexedHeaderTuple
from hypothesis import given
from hypothesis import strategies as st

from isvc.wire.http2.encoder import CachingEncoder

NAMES = st.sampled_from([b":status", b"grpc-status", b"x", b"authorization"])
HEADERS = st.tuples(NAMES, st.sampled_from([b"0", b"200", b"a" * 50]))
SECRETS = st.builds(NeverIndexedHeaderTuple, NAMES, st.binary(max_size=3))
SIZES = st.sampled_from([0, 64, 4096])


@given(st.lists(st.lists(HEADERS | SECRETS, max_size=4) | SIZES, max_size=30))
def test_what_is_decoded_is_what_was_encoded(steps):
    encoder, decoder = CachingEncoder(), Decoder()
    for step in steps:
        if isinstance(step, int):
            if step != encoder.header_table_size:  # hpack forgets to announce a size that is set twice
                encoder.header_table_size = step
        else:
            assert decoder.decode(encoder.encode(step), raw=True) == [tuple(header) for header in step]


def test_what_does_not_repeat_is_not_kept_for_ever():
    encoder = CachingEncoder()
    for number in range(1000):
        encoder.encode([NeverIndexedHeaderTuple(b"authorization", b"%d" % number)])
    assert len(encoder._known) <= 64
