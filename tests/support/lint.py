#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over what a build tree compiles: programs, and the headers through one file a target.

With --tests the test files too, each of which takes long: Boost.Test's macros are much code.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import time


def files_of(build, root, tests):
    chosen = set()
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(entry["file"])
        generated = path.is_relative_to(build)
        if generated and path.name != "everything.cpp":
            continue
        if path.name.endswith("_test.cpp") and not tests:
            continue
        if path.is_relative_to(root):
            chosen.add(path)
    return sorted(chosen)


def lint(options, path):
    # g++'s command line is not quite clang's; our own macros are the same for both.
    command = [options.clang_tidy, "-p", options.build, "--quiet"]
    command += ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-unused-command-line-argument"]
    command += ["--extra-arg=-Wno-ignored-optimization-argument", "--extra-arg=-Wno-ignored-gch"]
    if path.name.endswith("_test.cpp"):
        command.append("--checks=-clang-analyzer-*")
    start = time.monotonic()
    result = subprocess.run(
        [*map(str, command), str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    return path, result.returncode, result.stdout, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description="Runs clang-tidy over what a build tree compiles.")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--clang-tidy", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tests", action="store_true", help="the test files too")
    options = parser.parse_args()
    options.build = options.build.resolve()
    root = pathlib.Path(__file__).resolve().parents[2]

    files = files_of(options.build, root, options.tests)
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs) as pool:
        for path, code, printed, seconds in pool.map(lambda path: lint(options, path), files):
            print(f"{path.relative_to(root)}: {'good' if code == 0 else 'BAD'} ({seconds:.1f} s)", flush=True)
            if code != 0:
                failures += 1
                print(printed)
    print(f"lint: {len(files)} files, {failures} with findings")
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())
