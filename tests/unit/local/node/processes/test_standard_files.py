"""The sizes of a terminal, as clients write them."""

from __future__ import annotations

import pytest

from isvc.local.node.processes.standard_files import Sizes


@pytest.mark.parametrize(("width", "height"), [("Width", "Height"), ("width", "height"), ("WIDTH", "height")])
def test_a_size_is_read_as_go_reads_it_whatever_the_case_of_its_names(width, height):
    assert Sizes().read(f'{{"{height}":33,"{width}":77}}'.encode()) == [(77, 33)]


def test_a_size_that_comes_in_pieces_is_read_when_it_is_whole():
    sizes = Sizes()
    assert sizes.read(b'{"Width":77,"Hei') == []
    assert sizes.read(b'ght":33} {"Width":80,"Height":24}') == [(77, 33), (80, 24)]


@pytest.mark.parametrize("width", ['"77"', "0", "70000", "null"])
def test_what_is_no_size_is_skipped(width):
    assert Sizes().read(f'[] {{"Width":{width},"Height":33}} {{"Width":80,"Height":24}}'.encode()) == [(80, 24)]
