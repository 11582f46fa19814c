#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the driver of the must-fail tests: it must go red for each way in which such a test can be wrong."""

import argparse
import pathlib
import subprocess
import sys
import tempfile

DRIVER = pathlib.Path(__file__).with_name("run.py")

BODY = """
#include <memory>
#if WEIGHTCAST_CASE == 1
std::unique_ptr<int> copy(std::unique_ptr<int> const& from) { return from; }
#elif WEIGHTCAST_CASE == 2
static_assert(sizeof(int) == 0, "the second sentence");
#endif
"""
BOTH = "// case 1: deleted\n// case 2: the second sentence\n"

# name, file, expected exit code, what the driver must print
CHECKS = [
    ("all as expected", BOTH + BODY, 0, "3 cases, 0 failures"),
    ("by compiler", "// case 1 [gcc]: deleted\n// case 1 [clang]: deleted\n// case 2: second sentence\n" + BODY, 0, "0 failures"),
    ("two patterns", "// case 1: deleted\n// case 1: unique_ptr\n// case 2: the second sentence\n" + BODY, 0, "0 failures"),
    ("a wrong expectation", "// case 1: deleted\n// case 2: another sentence\n" + BODY, 1, "does not say 'another sentence'"),
    ("one of two patterns wrong", "// case 1: deleted\n// case 1: moonshine\n// case 2: the second sentence\n" + BODY, 1, "does not say 'moonshine'"),
    ("a control that does not compile", BOTH + BODY + "\n#include <no_such_header>\n", 1, "the control does not compile"),
    ("a case that compiles", BOTH + "// case 3: anything\n" + BODY.replace("#endif", "#elif WEIGHTCAST_CASE == 3\n#endif"), 1, "compiles, but must not"),
    ("a case without expectation", "// case 1: deleted\n" + BODY, 1, "case 2 states no expected diagnostic"),
    ("an expectation without a case", BOTH + "// case 7: x\n" + BODY, 1, "case 7 has an expected diagnostic but no code"),
    ("an empty expectation", "// case 1:\n// case 2: the second sentence\n" + BODY, 1, "is empty"),
    ("an echo of the source", "// case 1: return from\n// case 2: the second sentence\n" + BODY, 1, "does not say 'return from'"),
    ("no regular expression", "// case 1: (\n// case 2: the second sentence\n" + BODY, 1, "no regular expression"),
    ("no case at all", "int control;\n", 1, "holds no case"),
]


def main():
    parser = argparse.ArgumentParser(description="Checks the driver of the must-fail tests.")
    parser.add_argument("--compiler", required=True)
    options = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        for name, text, code, printed in CHECKS:
            source = pathlib.Path(directory) / "example.cpp"
            source.write_text(text, encoding="utf-8")
            result = subprocess.run(
                [sys.executable, str(DRIVER), "--compiler", options.compiler, str(source)],
                capture_output=True,
                text=True,
            )
            if result.returncode == code and printed in result.stdout:
                print(f"{name}: ok")
                continue
            failures += 1
            print(f"{name}: expected exit {code} and '{printed}', got exit {result.returncode} and:")
            print(result.stdout + result.stderr)
    print(f"{len(CHECKS)} checks, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
