#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that code does not compile, and that the compiler says why.

A file in this folder holds numbered cases:

    // case 1: a proof is never copied
    // case 2 [gcc]: use of deleted function
    // case 2 [clang]: call to deleted constructor
    #if WEIGHTCAST_CASE == 1
    ...
    #elif WEIGHTCAST_CASE == 2
    ...
    #endif

What follows the colon is a regular expression (Python's) that must match what the compiler prints; several
lines for one case must all match. A line with [gcc] or [clang] counts for that compiler only. Case 0 is the
file without any of the cases: it must compile, so that a case cannot fail for another reason, such as a
missing include. Source lines that the compiler would echo are not matched, and quotation marks are plain (LC_ALL=C).

Exit: 0 all as expected, 1 not, 2 bad usage.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

EXPECTATION = re.compile(r"^[ \t]*//[ \t]*case[ \t]+(\d+)[ \t]*(?:\[(\w+)\])?[ \t]*:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|elif)\b.*?\bWEIGHTCAST_CASE[ \t]*==[ \t]*(\d+)", re.MULTILINE)


def family_of(compiler):
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    return "clang" if "clang" in version else "gcc"


def read_cases(source, family):
    """The expected patterns by case number; problems of the file itself as a list of sentences."""
    text = source.read_text(encoding="utf-8")
    problems = []
    patterns = {}
    mentioned = set()
    for number, only, pattern in EXPECTATION.findall(text):
        number = int(number)
        mentioned.add(number)
        if number == 0:
            problems.append("case 0 is the control that compiles: it expects no diagnostic")
        if only not in ("", "gcc", "clang"):
            problems.append(f"case {number}: unknown compiler [{only}], expected [gcc] or [clang]")
        if not pattern:
            problems.append(f"case {number}: the expected diagnostic is empty")
            continue
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            problems.append(f"case {number}: '{pattern}' is no regular expression: {error}")
            continue
        if only in ("", family):
            patterns.setdefault(number, []).append(compiled)
    present = {int(number) for number in CONDITION.findall(text)} - {0}
    for number in sorted(present - mentioned):
        problems.append(f"case {number} states no expected diagnostic")
    for number in sorted(mentioned - present - {0}):
        problems.append(f"case {number} has an expected diagnostic but no code (#if WEIGHTCAST_CASE == {number})")
    for number in sorted(present & mentioned):
        if number not in patterns:
            problems.append(f"case {number} states no expected diagnostic for {family}")
    if not present:
        problems.append("the file holds no case")
    return patterns, problems


def compile_case(options, family, source, number):
    command = [options.compiler, "-std=c++20", "-fsyntax-only", f"-DWEIGHTCAST_CASE={number}"]
    # Source lines are not echoed: a pattern shall match what the compiler says, not what we wrote.
    command.append("-fno-caret-diagnostics" if family == "clang" else "-fno-diagnostics-show-caret")
    command += [f"-I{directory}" for directory in options.include]
    command += options.flag
    command.append(str(source))
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},  # plain quotation marks, no translation
    )


def judge(number, result, patterns):
    """None when the case is as expected, else a sentence."""
    if number == 0:
        return None if result.returncode == 0 else "the control does not compile"
    if result.returncode == 0:
        return "compiles, but must not"
    for pattern in patterns:
        if not pattern.search(result.stdout):
            return f"fails, but the compiler does not say '{pattern.pattern}'"
    return None


def main():
    parser = argparse.ArgumentParser(description="Checks that code does not compile, for the stated reason.")
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[], metavar="DIR")
    parser.add_argument("--flag", action="append", default=[], help="passed to the compiler as it is")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quiet", action="store_true", help="print failures only")
    parser.add_argument("sources", nargs="+", type=pathlib.Path)
    options = parser.parse_args()

    family = family_of(options.compiler)
    failures = 0
    work = []
    for source in options.sources:
        patterns, problems = read_cases(source, family)
        for problem in problems:
            print(f"{source}: {problem}")
        failures += len(problems)
        work += [(source, number, patterns.get(number, [])) for number in [0, *sorted(patterns)]]

    with concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs) as pool:
        results = pool.map(lambda item: compile_case(options, family, item[0], item[1]), work)
        for (source, number, patterns), result in zip(work, results):
            objection = judge(number, result, patterns)
            if objection is None:
                if not options.quiet:
                    print(f"{source}: case {number}: as expected")
                continue
            failures += 1
            print(f"{source}: case {number}: {objection}")
            lines = result.stdout.splitlines()
            print("\n".join("    " + line for line in lines[:60]))
            if len(lines) > 60:
                print(f"    ... {len(lines) - 60} more lines")
    print(f"{len(work)} cases, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
