"""Coverage-guided fuzzing of the decoders, by hand.

    cd tests/node && python fuzz_decoders.py -max_total_time=60

Needs `pip install atheris`. Any exception but `MessageError` is a finding, and so is a warning.
"""

from __future__ import annotations

import sys
import warnings


def main() -> None:
    import atheris

    with atheris.instrument_imports(include=["walklearn.node", "test_messages"]):
        import test_messages

    warnings.simplefilter("error")
    sorts = list(test_messages.DECODERS)

    def one_input(content: bytes) -> None:
        if content:
            test_messages.check(sorts[content[0] % len(sorts)], content[1:])

    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
