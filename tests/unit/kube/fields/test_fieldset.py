from hypothesis import given
from hypothesis import strategies as st

from isvc.kube.fields import FieldSet
from isvc.kube.fields.fieldset import LEAF, Node, Path, path_text

elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
paths = st.lists(elements, min_size=1, max_size=4).map(tuple)
sets_of_paths = st.sets(paths, max_size=8)


def of_paths(*paths: Path) -> FieldSet:
    result = FieldSet()
    for path in paths:
        node: Node = LEAF
        for element in reversed(path):
            node = {element: node}
        result |= FieldSet(node)
    return result


@given(sets_of_paths, sets_of_paths)
def test_sets_of_fields_behave_like_sets(one, other):
    a, b = of_paths(*one), of_paths(*other)
    assert set(a.paths()) == one
    assert set((a | b).paths()) == one | other
    assert set((a & b).paths()) == one & other
    assert set((a - b).paths()) == one - other
    assert bool(a) == bool(one)


@given(sets_of_paths, paths)
def test_membership_and_the_wire_format_agree(wanted, path):
    fields = FieldSet.parse(of_paths(*wanted).fields_v1())
    assert (path in fields) == (path in wanted)
    assert set(fields.paths()) == wanted


def test_the_wire_format():
    fields = of_paths(("f:a",), ("f:a", "f:b"), ("f:c", "f:d"))
    assert fields.fields_v1() == {"f:a": {".": {}, "f:b": {}}, "f:c": {"f:d": {}}}


def test_paths_read_as_the_api_server_prints_them():
    path = ("f:spec", "f:ports", 'k:{"containerPort":80,"protocol":"TCP"}', "f:name")
    assert path_text(path) == '.spec.ports[containerPort=80,protocol="TCP"].name'
    assert path_text(("f:metadata", "f:finalizers", 'v:"x"')) == '.metadata.finalizers[="x"]'
