import pytest

from isvc.apiserver.access.attributes import Attributes
from isvc.apiserver.access.rules import allows, not_covered

PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}


@pytest.mark.parametrize(
    ("rule", "wanted", "allowed"),
    [
        (PODS, Attributes("get", "", "pods"), True),
        (PODS, Attributes("delete", "", "pods"), False),
        (PODS, Attributes("get", "apps", "pods"), False),
        (PODS, Attributes("get", "", "pods", "log"), False),
        ({**PODS, "resources": ["pods/log"]}, Attributes("get", "", "pods", "log"), True),
        ({**PODS, "resources": ["*/log"]}, Attributes("get", "", "pods", "log"), True),
        ({**PODS, "resources": ["*/log"]}, Attributes("get", "", "pods"), False),
        ({**PODS, "resources": ["*"]}, Attributes("get", "", "pods", "log"), True),
        ({**PODS, "resourceNames": ["a"]}, Attributes("get", "", "pods", name="a"), True),
        ({**PODS, "resourceNames": ["a"]}, Attributes("list", "", "pods"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["/api/*"]}, Attributes("get", path="/api/v1"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/api"]}, Attributes("get", path="/api/v1"), False),
        ({"verbs": ["*"], "nonResourceURLs": ["*"]}, Attributes("post", path="/anything"), True),
        (PODS, Attributes("get", path="/api"), False),
        ({}, Attributes("get", "", "pods"), False),
    ],
)
def test_what_a_rule_allows(rule, wanted, allowed):
    assert allows(rule, wanted) is allowed


def test_what_is_granted_has_to_be_held_part_by_part():
    assert not_covered([PODS], [PODS]) == []
    more = {**PODS, "verbs": ["get", "watch"], "resources": ["pods", "pods/log"]}
    assert not_covered([more], [PODS]) == [
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["watch"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["watch"]},
    ]
    assert not_covered([more], [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]) == []
    named = {**PODS, "verbs": ["get"], "resourceNames": ["a"]}
    assert not_covered([named], [PODS]) == []
    assert not_covered([{**PODS, "verbs": ["get"]}], [named]) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    ]
    assert (
        not_covered([{"verbs": ["*"], "nonResourceURLs": ["/x"]}], [{"verbs": ["get"], "nonResourceURLs": ["*"]}]) != []
    )
