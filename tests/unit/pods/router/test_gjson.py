"""Conditions: what a path leads to, as GJSON has it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isvc.pods.router.gjson import MISSING, NotJson, exists, get, parse

DOCUMENT = parse(b"""{
  "name": {"first": "Tom", "last": "Anderson"},
  "age": 37,
  "fav.movie": "Deer Hunter",
  "children": ["Sara", "Alex", "Jack"],
  "nothing": null,
  "friends": [
    {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
    {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
    {"first": "Jane", "last": "Murphy", "age": 47, "nets": ["ig", "tw"]}
  ],
  "votes": [{"a": true}, {"a": false}, {"a": "true"}, {"a": 0}, {"b": 1}]
}""")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name.last", "Anderson"),
        ("age", 37),
        ("nothing", None),
        ("children.#", 3),
        ("children.1", "Alex"),
        ("children.3", MISSING),
        ("children.01", "Alex"),
        ("child*.2", "Jack"),
        ("c?ildren.0", "Sara"),
        ("fav\\.movie", "Deer Hunter"),
        ("friends.#.first", ["Dale", "Roger", "Jane"]),
        ("friends.#.nothing", []),
        ("friends.1.last", "Craig"),
        ('friends.#(last=="Murphy").first', "Dale"),
        ('friends.#(last=="Murphy")#.first', ["Dale", "Jane"]),
        ("friends.#(age>45)#.last", ["Craig", "Murphy"]),
        ('friends.#(first%"D*").last', "Murphy"),
        ('friends.#(first!%"D*").last', "Craig"),
        ('friends.#(nets.#(=="fb"))#.first', ["Dale", "Roger"]),
        ("friends.#(age>100)", MISSING),
        ("friends.#(age>100)#", []),
        ("friends.#(first", MISSING),
        ("votes.#(a==~true)#", [{"a": True}, {"a": "true"}]),
        ("votes.#(a==~false)#", [{"a": False}, {"a": 0}, {"b": 1}]),
        ("votes.#(a==~null)#", [{"b": 1}]),
        ("votes.#(b==~*)#", [{"b": 1}]),
        ("children|@reverse", ["Jack", "Alex", "Sara"]),
        ("children.@reverse.0", "Jack"),
        ("name.@keys", ["first", "last"]),
        ("name|@values|1", "Anderson"),
        ("@this.age", 37),
        ("@unknown", MISSING),
        ("[age,nothing,missing]", [37, None]),
        ('{age,"n":name.first,friends.#}', {"age": 37, "n": "Tom", "_": 3}),
        ('[@this].#(age==37).name.first', "Tom"),
        ("friends.#.nets|@flatten|#", 7),
        ("missing|[age]", []),
        ("!5", 5),
        ("..0.age", 37),
        ("name.first.more", MISSING),
        ("", MISSING),
    ],
)  # fmt: skip
def test_paths(path: str, value: Any) -> None:
    assert get(DOCUMENT, path) == value


@pytest.mark.parametrize("text", [b"", b"{", b"NaN", b'{"a":Infinity}', b"[" * 200_000, b'"\n"'])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(NotJson):
        parse(text)


@given(st.text(st.sampled_from('abc.|#()[]{}"\\*?@!:=<>%~,01 '), max_size=30))
def test_any_path_comes_to_an_end(path: str) -> None:
    assert exists(DOCUMENT, path) == (get(DOCUMENT, path) is not MISSING)


def test_wildcards_take_no_longer_for_many_stars() -> None:
    assert not exists({"a" * 200: 1}, "*a" * 60 + "b")


@pytest.mark.parametrize(("number", "holds"), [("1" + "0" * 400, True), ("-1" + "0" * 400, False)])
def test_numbers_that_are_too_large_are_infinite(number: str, holds: bool) -> None:
    assert exists(parse(f'{{"a":[{{"b":{number}}}]}}'), "a.#(b>5)") == holds
