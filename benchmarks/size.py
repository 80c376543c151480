"""Lines of code, docstrings and tests of each package: `python -m benchmarks.size [--check]`.

A line of code holds at least one token that is neither a comment nor part of a docstring. Blank
lines and comments are not counted. The tests of a package are the lines of code in the directory of
the same name in `tests`; the last line also counts their
docstrings.

`--check` exits with 1 if `src` has more lines of code than its target.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
MAX_CODE = 31_500

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def count_lines(source: str) -> tuple[int, int]:
    """Return the number of lines of code and of docstrings in Python source.

    >>> count_lines('''def area(r):
    ...     \"\"\"Area of a disc.\"\"\"
    ...     # A comment, and a blank line:
    ...
    ...     return 3.14 * r * r''')
    (2, 1)
    """
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docstrings), len(docstrings)


def count_packages(root: Path) -> tuple[Counter[str], Counter[str]]:
    """Return the lines of code and of docstrings of each package or module directly in a folder."""
    code, docstrings = Counter[str](), Counter[str]()
    for file in root.rglob("*.py"):
        name = file.relative_to(root).parts[0].removesuffix(".py")
        lines = count_lines(file.read_text(encoding="utf-8"))
        code[name] += lines[0]
        docstrings[name] += lines[1]
    return code, docstrings


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 if the target is missed")
    options = parser.parse_args()
    code, docstrings = count_packages(PROJECT / "src" / "walklearn")
    test_code, test_docstrings = count_packages(PROJECT / "tests")
    row = "{:<14}{:>8}{:>12}{:>8}"
    print(row.format("package", "code", "docstrings", "tests"))
    for name in sorted({*code, *test_code}, key=lambda name: (-code[name], name)):
        tests = f"{test_code[name]:,}" if name in test_code else ""
        print(row.format(name, f"{code[name]:,}", f"{docstrings[name]:,}", tests))
    total = code.total()
    print(row.format("total", f"{total:,}", f"{docstrings.total():,}", f"{test_code.total():,}"))
    print(f"tests with their docstrings: {(test_code + test_docstrings).total():,}")
    if total > MAX_CODE:
        print(f"missed: {total:,} lines of code in src, target ≤ {MAX_CODE:,}")
    sys.exit(1 if options.check and total > MAX_CODE else 0)


if __name__ == "__main__":
    main()
