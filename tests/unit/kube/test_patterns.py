import pytest

from isvc.kube.patterns import BadPattern, check, check_replacement, matches, problem_with


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^a+$", "aaa", True),
        ("^a+$", "aaa\n", False),
        ("^(a$|b$)", "b\n", False),
        (r"^a\$$", "a$", True),
        (r"^\d+$", "٣", False),
        ("b", "abc", True),
        ("^[[:alpha:]]+$", "abc", True),
        ("^[[:alpha:]]+$", "ab1", False),
        (r"^\p{Greek}+$", "αβ", True),
        ("^a(?i)b$", "aB", True),
        (r"^a\z", "a", True),
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern, text, found):
    assert matches(pattern, text) is found
    assert problem_with(pattern) == ""


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[z-a]", "(?=look)", r"(a)\1"])
def test_what_re2_refuses(pattern):
    assert problem_with(pattern)
    assert not matches(pattern, "a")


def test_every_pattern_of_a_quantity():
    pattern = (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    )
    assert matches(pattern, "1.5Gi")
    assert not matches(pattern, "much")


def test_a_pattern_that_could_be_matched_in_many_ways_takes_no_longer():
    assert not matches("^(a+)+$", "a" * 100_000 + "!")
    assert matches("^(a|a)*$", "a" * 100_000)


def test_what_is_no_pattern_is_named():
    check("a|ab")
    with pytest.raises(BadPattern, match=r'"a\)\(b": '):
        check("a)(b")


def test_a_replacement_names_groups_that_there_are():
    check_replacement("/v([0-9])/([a-z]+)", r"/\2/\1")
    with pytest.raises(BadPattern, match="names a group"):
        check_replacement("/v([0-9])", r"/\2")
