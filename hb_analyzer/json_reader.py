"""Typed access to a JSON document in which every error knows its file and its JSON path."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


class PatternError(Exception):
    """Bad input: ``str()`` is the one line for the user: file, JSON path, what is wrong."""

    def __init__(self, file: str, path: str, message: str) -> None:
        super().__init__(f"{file}: {path}: {message}" if path else f"{file}: {message}")
        self.file, self.path, self.message = file, path, message


class Node:
    """A JSON value together with its place, e.g. ``$.warp_groups[0].phases[2]``."""

    def __init__(self, value: Any, file: str, path: str = "$") -> None:
        self.value, self.file, self.path = value, file, path

    def error(self, message: str) -> PatternError:
        return PatternError(self.file, self.path, message)

    def wrong_type(self, expected: str) -> PatternError:
        return self.error(f"expected {expected}, got {describe(self.value)}")

    # -- scalars

    def string(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong_type("a string")
        return self.value

    def name(self) -> str:
        """A string that is not blank."""
        text = self.string()
        if not text.strip():
            raise self.error("expected a name, got an empty string")
        return text

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong_type("true or false")
        return self.value

    def integer(self, minimum: int, maximum: int | None = None) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.wrong_type("an integer")
        if self.value < minimum:
            raise self.error(f"expected an integer of at least {minimum}, got {self.value}")
        if maximum is not None and self.value > maximum:
            raise self.error(f"expected an integer of at most {maximum}, got {self.value}")
        return self.value

    def choice(self, allowed: Iterable[str]) -> str:
        text = self.string()
        if text not in allowed:
            raise self.error(f"expected one of {', '.join(sorted(allowed))}, got {describe(text)}")
        return text

    # -- containers

    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    def mapping(self) -> dict[str, Any]:
        """An object as it is."""
        if not isinstance(self.value, dict):
            raise self.wrong_type("an object")
        return self.value

    def items(self) -> Iterator[tuple[str, Node]]:
        """The members of an object."""
        for key, value in self.mapping().items():
            yield key, Node(value, self.file, f"{self.path}.{key}")

    def elements(self) -> list[Node]:
        """The elements of a list."""
        if not isinstance(self.value, list):
            raise self.wrong_type("a list")
        return [Node(value, self.file, f"{self.path}[{i}]") for i, value in enumerate(self.value)]

    def one_or_many(self) -> list[Node]:
        """``null``: nothing; a list: its elements; anything else: itself."""
        if self.value is None:
            return []
        return self.elements() if isinstance(self.value, list) else [self]

    def get(self, key: str) -> Node | None:
        """A member of an object, or None where it is absent. A member that is ``null`` is present."""
        members = self.mapping()
        return Node(members[key], self.file, f"{self.path}.{key}") if key in members else None

    def require(self, key: str) -> Node:
        node = self.get(key)
        if node is None:
            raise self.error(f'missing key "{key}"')
        return node

    def unknown_keys(self, known: Iterable[str]) -> list[str]:
        """The keys of this object that ``known`` lacks. Raises if one looks like a misspelling of a known key: ignoring
        that one would silently change what the pattern says."""
        known = list(known)
        unknown = [key for key, _ in self.items() if key not in known]
        for key in unknown:
            if close := difflib.get_close_matches(key, known, n=1, cutoff=0.8):
                raise self.error(f'unknown key "{key}"; did you mean "{close[0]}"?')
        return unknown


def describe(value: Any) -> str:
    """A JSON value for an error message, on one line and not too long."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + '..."'


def read_json(path: Path) -> Node:
    """Parse a file. Raises PatternError: unreadable, not UTF-8, not JSON (with line and column), or a key twice."""
    file = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PatternError(file, "", error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        raise PatternError(file, "", f"not UTF-8 text (byte {error.start})") from None
    return parse_json(text, file)


def parse_json(text: str, file: str) -> Node:
    """As :func:`read_json`, from text; ``file`` is used in messages only."""

    def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                raise PatternError(file, "", f'key "{key}" appears twice in one object')
            result[key] = value
        return result

    try:
        return Node(json.loads(text, object_pairs_hook=no_duplicates), file)
    except json.JSONDecodeError as error:
        raise PatternError(f"{file}:{error.lineno}:{error.colno}", "", f"not JSON: {error.msg}") from None
    except RecursionError:
        raise PatternError(file, "", "not a pattern: nested too deeply") from None
    except ValueError as error:  # e.g. an integer of thousands of digits
        raise PatternError(file, "", f"not JSON: {error}") from None
