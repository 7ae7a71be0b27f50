import pytest

from isvc.controllers.inferenceservice.components.multinode import Allocation, WorkersRefused, allocate


@pytest.mark.parametrize(
    ("total", "head", "worker", "expected"),
    [
        (4, 0, 0, Allocation(4, 1, 1)),
        (8, 0, 4, Allocation(2, 4, 4)),
        (6, 0, 4, Allocation(2, 4, 2)),
        (8, 4, 4, Allocation(2, 4, 4)),
        (4, 4, 2, Allocation(1, 0, 4)),
        (4, 0, 4, Allocation(1, 0, 4)),
        (4, 2, 0, Allocation(3, 1, 2)),
        (2, 4, 0, Allocation(1, 1, 4)),
    ],
)
def test_gpus_are_spread_over_nodes(total, head, worker, expected):
    assert allocate(total, head, worker) == expected


def test_too_few_gpus_are_refused():
    with pytest.raises(WorkersRefused, match=r"GPUs\(12\).*head node\(1\) \+ worker node\(8\)"):
        allocate(12, 1, 4)
