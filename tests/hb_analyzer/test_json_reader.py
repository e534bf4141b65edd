"""JSON values that know their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hb_analyzer.json_reader import Node, PatternError, describe, parse_json, read_json


def error_of(call: object) -> str:
    with pytest.raises(PatternError) as caught:
        call()  # type: ignore[operator]
    return str(caught.value)


def test_path_of_a_nested_value() -> None:
    node = parse_json('{"a": [{"b": 1}]}', "f").require("a").elements()[0].require("b")
    assert node.path == "$.a[0].b"
    assert node.integer(0) == 1


def test_wrong_types() -> None:
    node = Node(True, "f", "$.x")
    assert error_of(lambda: node.integer(0)) == "f: $.x: expected an integer, got true"
    assert error_of(node.string) == "f: $.x: expected a string, got true"
    assert error_of(node.elements) == "f: $.x: expected a list, got true"
    assert error_of(node.mapping) == "f: $.x: expected an object, got true"
    assert error_of(Node(0, "f").boolean) == "f: $: expected true or false, got 0"
    assert error_of(Node(" ", "f").name) == "f: $: expected a name, got an empty string"
    assert error_of(lambda: Node(2, "f").integer(3)) == "f: $: expected an integer of at least 3, got 2"
    assert error_of(lambda: Node("c", "f").choice(("b", "a"))) == 'f: $: expected one of a, b, got "c"'
    assert error_of(lambda: Node({}, "f").require("k")) == 'f: $: missing key "k"'


def test_unknown_keys_are_returned_and_misspelled_ones_refused() -> None:
    node = Node({"comment": 1, "label": 2}, "f")
    assert node.unknown_keys(("label",)) == ["comment"]
    misspelled = Node({"signal_inn": 1}, "f")
    assert error_of(lambda: misspelled.unknown_keys(("signal_in",))) == (
        'f: $: unknown key "signal_inn"; did you mean "signal_in"?'
    )


def test_one_or_many() -> None:
    assert Node(None, "f").one_or_many() == []
    assert [n.path for n in Node("x", "f").one_or_many()] == ["$"]
    assert [n.path for n in Node(["x", "y"], "f").one_or_many()] == ["$[0]", "$[1]"]


def test_description_is_short() -> None:
    assert describe({}) == "an object"
    assert describe([]) == "a list"
    assert describe(None) == "null"
    assert len(describe("x" * 500)) <= 41


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "f:1:2: not JSON: Expecting property name enclosed in double quotes"),
        ('{\n "a": tru}', "f:2:7: not JSON: Expecting value"),
        ('{"a": 1, "a": 2}', 'f: key "a" appears twice in one object'),
        ("[" * 100_000, "f: not a pattern: nested too deeply"),
    ],
)
def test_not_json(text: str, message: str) -> None:
    assert error_of(lambda: parse_json(text, "f")) == message


def test_a_number_of_many_digits_is_an_error_not_a_traceback() -> None:
    assert error_of(lambda: parse_json("1" * 5000, "f")).startswith("f: not JSON: ")


def test_unreadable_files(tmp_path: Path) -> None:
    missing = tmp_path / "missing.json"
    assert error_of(lambda: read_json(missing)) == f"{missing}: No such file or directory"
    assert error_of(lambda: read_json(tmp_path)) == f"{tmp_path}: Is a directory"
    binary = tmp_path / "binary.json"
    binary.write_bytes(b'{"a": "\xff"}')
    assert error_of(lambda: read_json(binary)) == f"{binary}: not UTF-8 text (byte 7)"


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "bom.json"
    file.write_bytes(b"\xef\xbb\xbf{}")
    assert read_json(file).value == {}
