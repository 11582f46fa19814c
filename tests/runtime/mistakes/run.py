#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py PROGRAM REGEX: a program with a deliberate mistake must be reported, and its control must be clean.

Runs PROGRAM five times with other seeds: each must fail and print what matches REGEX. Then five times with
the argument "control": each must succeed and print nothing of a sanitizer. No run may take longer than a minute.

Exit: 0 all as expected, 1 not, 2 bad usage.
"""

import re
import subprocess
import sys

RUNS = 5
SECONDS = 60


def run(program, mode, seed):
    """Exit code (None: too slow) and all that was printed."""
    try:
        result = subprocess.run(
            [program, mode, str(seed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as late:
        return None, (late.output or b"").decode(errors="replace")
    return result.returncode, result.stdout


def problem_of(mode, code, text, expected):
    if code is None:
        return f"did not end within {SECONDS} s"
    if mode == "control":
        if code != 0:
            return f"the control exits with {code}"
        return "a sanitizer complains about the control" if "Sanitizer" in text else None
    if not expected.search(text):
        return f"nothing matches '{expected.pattern}'"
    return "the report does not fail the program" if code == 0 else None


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    program, expected = sys.argv[1], re.compile(sys.argv[2])
    failures = 0
    for mode in ("mistake", "control"):
        for seed in range(1, RUNS + 1):
            code, text = run(program, mode, seed)
            problem = problem_of(mode, code, text, expected)
            print(f"{mode}, seed {seed}: {problem or 'as expected'}")
            if problem:
                failures += 1
                print(text)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
