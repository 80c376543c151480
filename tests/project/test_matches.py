"""Tests match the names and values in messages; only `test_messages.py` quotes sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
FOUR_WORDS = re.compile(r"[A-Za-z]+(?: [a-z]+){3}")


def matched(tree: ast.Module) -> Iterator[str]:
    """Yield the texts after `match=`, and those in tuples where `match=` takes a variable."""
    nodes = list(ast.walk(tree))
    patterns = [
        node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "match"
    ]
    if any(isinstance(part, ast.Name) for each in patterns for part in ast.walk(each)):
        patterns += [each for node in nodes if isinstance(node, ast.Tuple) for each in node.elts]
    for pattern in patterns:
        parts = pattern.values if isinstance(pattern, ast.JoinedStr) else [pattern]
        yield from (str(part.value) for part in parts if isinstance(part, ast.Constant))


def test_messages_are_quoted_in_one_place() -> None:
    quotes = [
        f"{file.relative_to(TESTS)}: {text}"
        for file in sorted(TESTS.rglob("test_*.py"))
        if file.name != "test_messages.py"
        for text in matched(ast.parse(file.read_text(encoding="utf-8")))
        if FOUR_WORDS.search(text)
    ]
    assert not quotes, "\n".join(quotes)
