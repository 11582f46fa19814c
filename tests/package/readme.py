#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the programs that a Markdown page shows.

    <!-- example: name -->
    ```cpp
    ...a full program...
    ```
    <!-- output: name -->
    ```text
    ...what it prints, when the page shows that...
    ```

Two programs that talk to each other run together: `<!-- example: engine, beside trainer -->`.
Each ```cpp block of the page must be such an example, or say why not: `<!-- no example: reason -->`.
Each is built against the installed package and run; it must exit 0, and print what the page says.
"""

import argparse
import pathlib
import re
import subprocess
import sys

BLOCK = re.compile(r"(?:^<!--\s*(no example|example|output)\s*:\s*(.*?)\s*-->[ \t]*\n\s*)?^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)

CMAKE = """# made by tests/package/readme.py
cmake_minimum_required(VERSION 3.25)
project(readme LANGUAGES CXX)
find_package(weightcast REQUIRED COMPONENTS weightcast io gloo)
"""


def blocks_of(page):
    """(examples, outputs, partners, problems): code, text and companion by name."""
    examples, outputs, partners, problems = {}, {}, {}, []
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        kind, name, language, body = match.groups()
        line = text.count("\n", 0, match.start(3)) + 1
        where = f"{page}:{line}"
        if kind == "output":
            outputs[name] = body
        elif language == "cpp" and kind is None:
            problems.append(f"{where}: a C++ block without '<!-- example: name -->' or '<!-- no example: reason -->'")
        elif language == "cpp" and kind == "example":
            name, _, partner = (part.strip() for part in name.partition(", beside "))
            if partner:
                partners[name] = partner
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                problems.append(f"{where}: '{name}' is no name for an example: a-z, 0-9 and _")
            elif name in examples:
                problems.append(f"{where}: a second example '{name}'")
            else:
                examples[name] = body
        elif kind == "example":
            problems.append(f"{where}: '{name}' is marked as an example, but its block is no ```cpp")
    for name in outputs.keys() - examples.keys():
        problems.append(f"{page}: an output of '{name}', but no example of that name")
    for name, partner in partners.items():
        if partner not in examples:
            problems.append(f"{page}: '{name}' runs beside '{partner}', which is no example")
    return examples, outputs, partners, problems


def run_together(build, names, folder):
    """[(name, exit code or None, stdout, stderr)] of programs that run at the same time."""
    running = [
        (name, subprocess.Popen([build / name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder))
        for name in names
    ]
    results = []
    for name, process in running:
        try:
            out, err = process.communicate(timeout=120)
            results.append((name, process.returncode, out, err))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            results.append((name, None, "", ""))
    return results


def main():
    parser = argparse.ArgumentParser(description="Builds and runs the programs that a Markdown page shows.")
    parser.add_argument("--prefix", type=pathlib.Path, required=True, help="where weightcast is installed")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--extract-only", action="store_true", help="check the markers, build nothing")
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    options = parser.parse_args()

    options.work.mkdir(parents=True, exist_ok=True)
    failures = 0
    programs = {}
    outputs = {}
    beside = {}
    for page in options.pages:
        examples, shown, partners, problems = blocks_of(page)
        for problem in problems:
            print(problem)
        failures += len(problems)
        for name, body in examples.items():
            programs[f"{page.stem.lower()}_{name}"] = body
        for name, partner in partners.items():
            beside[f"{page.stem.lower()}_{name}"] = f"{page.stem.lower()}_{partner}"
        for name, body in shown.items():
            outputs[f"{page.stem.lower()}_{name}"] = body
    print(f"{len(programs)} examples: {', '.join(programs) or 'none'}")
    if not programs:
        print("no example at all: this check would prove nothing")
        return 1
    if options.extract_only:
        return 1 if failures else 0

    lists = CMAKE
    for name, body in programs.items():
        path = options.work / f"{name}.cpp"
        if not path.exists() or path.read_text(encoding="utf-8") != body:
            path.write_text(body, encoding="utf-8")
        lists += f"add_executable({name} {name}.cpp)\n"
        lists += f"target_link_libraries({name} PRIVATE weightcast::weightcast weightcast::io weightcast::gloo)\n"
    (options.work / "CMakeLists.txt").write_text(lists, encoding="utf-8")
    build = options.work / "build"
    configure = [options.cmake, "-G", "Ninja", "-S", options.work, "-B", build]
    configure += [f"-DCMAKE_PREFIX_PATH={options.prefix}", f"-DCMAKE_CXX_COMPILER={options.compiler}"]
    subprocess.run(configure, check=True)
    if subprocess.run([options.cmake, "--build", build, "--parallel", "2", "--", "-k", "0"]).returncode:
        print("an example does not compile")
        return 1
    groups = [[name] + [n for n, partner in beside.items() if partner == name] for name in programs if name not in beside]
    for name, code, out, err in (row for names in groups for row in run_together(build, names, options.work)):
        if code is None:
            print(f"{name}: still runs after 120 s")
            failures += 1
        elif code != 0:
            print(f"{name}: exit {code}\n{out}{err}")
            failures += 1
        elif name in outputs and out != outputs[name]:
            print(f"{name}: the page shows\n{outputs[name]}but it prints\n{out}")
            failures += 1
        else:
            print(f"{name}: ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
