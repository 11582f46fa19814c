#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the JUnit files that ctest wrote: `N passed, N failed, N skipped`.

A Boost.Test program counts as its test cases, anything else as one.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree

LEFT = re.compile(r'Leaving test case "')
SKIPPED = re.compile(r'Test case "[^"]+" is skipped because (?!disabled)')
FAILED = re.compile(r"^\s+(\d+) test cases? out of \d+ failed", re.MULTILINE)


def count(case):
    """passed, failed, skipped of one <testcase>."""
    status = case.get("status")
    output = "".join(element.text or "" for element in case.iter("system-out"))
    if status in ("notrun", "disabled") or case.find("skipped") is not None:
        return 0, 0, 1
    ran = len(LEFT.findall(output))
    skipped = len(SKIPPED.findall(output))
    if status == "run":
        return (ran, 0, skipped) if ran + skipped else (1, 0, 0)
    failed = max(1, sum(int(number) for number in FAILED.findall(output)))
    return max(0, ran - failed), failed, skipped


def main():
    totals = [0, 0, 0]
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        if not path.exists():
            continue
        for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            totals = [total + more for total, more in zip(totals, count(case))]
    print("{} passed, {} failed, {} skipped".format(*totals))
    return 1 if totals[1] else 0


if __name__ == "__main__":
    sys.exit(main())
