#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time to compile a file that includes a header of weightcast, against one with five standard headers.

Usage: compile_time.py [--runs N] [--all]     --all lists every public leaf header
"""
import argparse
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASELINE = "#include <ranges>\n#include <vector>\n#include <string>\n#include <thread>\n#include <memory>\n"


def seconds(source: str, folder: pathlib.Path, compiler: str) -> float:
    file = folder / "one.cpp"
    file.write_text(source + "int main() {}\n")
    command = [compiler, "-std=c++20", "-c", "-I", str(ROOT / "include"), str(file), "-o", str(folder / "one.o")]
    begin = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--compiler", default="g++")
    arguments = parser.parse_args()

    headers = ["core.hpp", "concepts.hpp", "weightcast.hpp"]
    if arguments.all:
        leaves = sorted((ROOT / "include/weightcast").glob("*/*.hpp"))
        headers += [str(leaf.relative_to(ROOT / "include/weightcast")) for leaf in leaves]

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        sources = {"five standard headers": BASELINE}
        sources |= {h: f"#include <weightcast/{h}>\n" for h in headers}
        times: dict[str, list[float]] = {key: [] for key in sources}
        for _ in range(arguments.runs):  # interleaved, so that a drift of the machine meets all of them
            for key, source in sources.items():
                times[key].append(seconds(source, folder, arguments.compiler))
    base = statistics.median(times["five standard headers"])
    print(f"compile time, {arguments.compiler} -O0, median of {arguments.runs}, ratio to the five standard headers")
    for key, values in times.items():
        print(f"  {key:<44} {statistics.median(values):6.2f} s  {statistics.median(values) / base:5.2f}")


if __name__ == "__main__":
    main()
