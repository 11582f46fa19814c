#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists source files for Meson, which has no wildcards: one path a line, relative to the source root.

    sources.py ROOT glob PATTERN...            files that match
    sources.py ROOT headers COMPONENT OUT      writes a file for each header of the component into OUT, and one
                                               that includes them all, and lists what it wrote
Run `meson setup --reconfigure` after adding a file.
"""

import pathlib
import re
import sys


def component_of(header):
    """The rule of cmake/WeightcastTargets.cmake."""
    if re.match(r"weightcast/[a-z]+/concepts\.hpp$", header):
        return "core"
    if re.match(r"weightcast/comm/(detail/)?gloo", header):
        return "gloo"
    if re.match(r"weightcast/io(/|\.hpp)", header):
        return "io"
    if re.match(r"weightcast/(model|plan|engine|session|weightcast)(/|\.hpp)", header):
        return "weightcast"
    return "core"


def write(path, text):
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    print(path.as_posix())


def main():
    root = pathlib.Path(sys.argv[1])
    if sys.argv[2] == "glob":
        for pattern in sys.argv[3:]:
            for path in sorted(root.glob(pattern)):
                print(path.relative_to(root).as_posix())
        return 0
    component, out = sys.argv[3], pathlib.Path(sys.argv[4])
    include = root / "include"
    headers = sorted(path.relative_to(include).as_posix() for path in include.rglob("*.hpp"))
    headers = [header for header in headers if component_of(header) == component]
    if not headers:
        return 0
    out.mkdir(parents=True, exist_ok=True)
    for header in headers:
        name = re.sub(r"[^A-Za-z0-9]", "_", header)
        write(out / f"{name}.cpp", f"#include <{header}>\n#include <{header}>\n")
    everything = "".join(f"#include <{header}>\n" for header in headers)
    write(out / "everything.cpp", everything + "\nint main() {}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
