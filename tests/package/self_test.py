#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the checkers of this folder: each must go red for each way to be wrong."""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
PC = "prefix={prefix}\nincludedir=${{prefix}}/include\n\nName: a\nDescription: a\nVersion: {version}\nCflags: -I${{includedir}}\nLibs: {libs}\n"


def install(prefix, header="int a();\n", version="1", libs="-la", name="a.hpp"):
    (prefix / "include" / "a").mkdir(parents=True)
    (prefix / "include" / "a" / name).write_text(header)
    (prefix / "lib" / "pkgconfig").mkdir(parents=True)
    (prefix / "lib" / "pkgconfig" / "a.pc").write_text(PC.format(prefix=prefix, version=version, libs=libs))


INSTALLS = [
    ("the same", {}, 0, "0 differences"),
    ("other bytes", {"header": "int b();\n"}, 1, "header a/a.hpp: not the same"),
    ("another header", {"name": "b.hpp"}, 1, "header a/b.hpp: installed by Meson only"),
    ("another version", {"version": "2"}, 1, "pkg-config file a.pc: not the same"),
    ("other libraries", {"libs": "-lb"}, 1, "pkg-config file a.pc: not the same"),
]

EXAMPLE = "<!-- example: one -->\n```cpp\nint main() {}\n```\n"
PAGES = [
    ("an example", "Text.\n\n" + EXAMPLE, 0, "1 examples: page_one"),
    ("one excused", EXAMPLE + "<!-- no example: a fragment -->\n```cpp\nx\n```\n", 0, "1 examples"),
    ("other languages", EXAMPLE + "```bash\nls\n```\n```\nplain\n```\n", 0, "1 examples"),
    ("unmarked", EXAMPLE + "```cpp\nint main() {}\n```\n", 1, "page.md:5: a C++ block without"),
    ("twice", EXAMPLE + EXAMPLE, 1, "a second example 'one'"),
    ("a bad name", EXAMPLE.replace("one", "One thing"), 1, "is no name"),
    ("a stray output", EXAMPLE + "<!-- output: two -->\n```text\nx\n```\n", 1, "an output of 'two'"),
    ("two at the same time", EXAMPLE + EXAMPLE.replace("one", "two, beside one"), 0, "2 examples: page_one, page_two"),
    ("beside nobody", EXAMPLE.replace("one", "one, beside two"), 1, "runs beside 'two', which is no example"),
    ("none", "Text.\n", 1, "no example at all"),
]


def check(name, command, code, printed):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode == code and printed in result.stdout:
        print(f"{name}: ok")
        return 0
    print(f"{name}: expected exit {code} and '{printed}', got exit {result.returncode} and:")
    print(result.stdout + result.stderr)
    return 1


def main():
    failures = 0
    for name, change, code, printed in INSTALLS:
        with tempfile.TemporaryDirectory() as directory:
            one, other = pathlib.Path(directory, "one"), pathlib.Path(directory, "other")
            install(one)
            install(other, **change)
            failures += check(name, [sys.executable, HERE / "compare_installs.py", one, other], code, printed)
    for name, text, code, printed in PAGES:
        with tempfile.TemporaryDirectory() as directory:
            page = pathlib.Path(directory, "page.md")
            page.write_text(text)
            command = [sys.executable, HERE / "readme.py", "--prefix", directory, "--work", directory]
            failures += check(name, [*command, "--extract-only", page], code, printed)
    print(f"{len(INSTALLS) + len(PAGES)} checks, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
