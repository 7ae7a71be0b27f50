import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import assert_grows_as_its_input

from isvc.kube.selectors import FieldSelector, LabelSelector, Requirement, SelectorError

LABELS = {"app": "web", "tier": "front", "serving.kserve.io/rank": "3", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("other!=web", True),
        ("app in (web, api)", True),
        ("app notin (web,api)", False),
        ("other notin (web)", True),
        ("app", True),
        ("other", False),
        ("!other", True),
        ("! app", False),
        ("serving.kserve.io/rank>2", True),
        ("serving.kserve.io/rank < 3", False),
        ("app>1", False),
        ("empty=", True),
        ("empty=,app=web", True),
        ("empty in ()", True),
        ("app in (,web)", True),
        ("in in (web)", False),
        ("app=web,tier in (front),!gone", True),
        (" app = web , tier = back ", False),
    ],
)
def test_label_selectors(text, matches):
    assert LabelSelector.parse(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    "text",
    [
        "app=web,",
        ",",
        "app=web tier=front",
        "=web",
        "app in web",
        "app in (web",
        "!app=web",
        "a/b/c=d",
        "app=-x",
        "a>b",
    ],
)
def test_malformed_label_selectors_are_refused(text):
    with pytest.raises(SelectorError):
        LabelSelector.parse(text)


def test_from_an_object():
    spec = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["front"]}]}
    assert str(LabelSelector.from_spec(spec)) == "app=web,tier in (front)"
    assert LabelSelector.from_spec(spec).matches(LABELS)
    assert LabelSelector.from_spec({}).matches({})
    with pytest.raises(SelectorError):
        LabelSelector.from_spec({"matchExpressions": [{"key": "a", "operator": "Near"}]})
    with pytest.raises(SelectorError):
        LabelSelector.from_spec({"matchExpressions": [{"key": "a", "operator": "In", "values": []}]})


keys = st.from_regex(r"\A[a-z]([a-z.]{0,5}/)?[a-z]{1,3}\Z").filter(lambda key: "./" not in key and ".." not in key)
values = st.from_regex(r"\A([a-z][a-z0-9]{0,3})?\Z")
requirements = st.one_of(
    st.builds(lambda k, o, v: Requirement(k, o, (v,)), keys, st.sampled_from(["=", "!="]), values),
    st.builds(
        lambda k, o, v: Requirement(k, o, tuple(sorted(v))),
        keys,
        st.sampled_from(["in", "notin"]),
        st.sets(values, min_size=1, max_size=3),
    ),
    st.builds(Requirement, keys, st.sampled_from(["exists", "!"])),
)


@given(st.lists(requirements, max_size=4), st.dictionaries(keys, values))
def test_text_reads_back_as_the_same_selector(wanted, labels):
    selector = LabelSelector(tuple(sorted(wanted, key=lambda requirement: requirement.key)))
    again = LabelSelector.parse(str(selector))
    assert again == selector
    assert again.matches(labels) == all(requirement.matches(labels) for requirement in wanted)


OBJECT = {"metadata": {"name": "a,b"}, "spec": {"unschedulable": True, "replicas": 2}}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        (r"metadata.name=a\,b", True),
        ("metadata.name!=a", True),
        ("spec.unschedulable==true", True),
        ("spec.replicas=2,status.phase=", True),
        ("status.phase=Running", False),
        ("status.phase!=Running", True),
    ],
)
def test_field_selectors(text, matches):
    assert FieldSelector.parse(text).matches(OBJECT) is matches


@pytest.mark.parametrize("text", ["metadata.name", r"a=\x", "a=b=c", "a=b\\"])
def test_malformed_field_selectors_are_refused(text):
    with pytest.raises(SelectorError):
        FieldSelector.parse(text)


@given(st.text())
def test_any_value_of_a_field_can_be_asked_for(value):
    selector = FieldSelector((("metadata.name", True, value),))
    assert FieldSelector.parse(str(selector)) == selector


def test_spaces_behind_a_selector_cost_no_more_than_their_number():
    assert_grows_as_its_input(lambda spaces: LabelSelector.parse("a=b" + " " * spaces), 1_000)
