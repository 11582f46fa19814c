#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what CMake and Meson install: the same headers with the same bytes, and .pc files that say the same."""

import argparse
import os
import pathlib
import subprocess
import sys

QUESTIONS = ["--modversion", "--cflags", "--libs", "--print-requires", "--print-provides"]


def headers_of(prefix):
    include = prefix / "include"
    return {path.relative_to(include).as_posix(): path.read_bytes() for path in include.rglob("*") if path.is_file()}


def modules_of(prefix):
    """Each .pc file with the answers that pkg-config gives from it, the prefix taken out."""
    answers = {}
    for path in prefix.rglob("*.pc"):
        environment = {**os.environ, "PKG_CONFIG_PATH": str(path.parent)}
        said = []
        for question in QUESTIONS:
            result = subprocess.run(
                ["pkg-config", question, path.stem], capture_output=True, text=True, env=environment
            )
            words = []
            for word in (result.stdout + result.stderr).split():
                if word.startswith("-I"):
                    word = "-I" + os.path.normpath(word[2:])
                words.append(word.replace(str(prefix), "PREFIX"))
            said.append(f"{question}: {' '.join(words)}")
        answers[path.name] = said
    return answers


def main():
    parser = argparse.ArgumentParser(description="Compares what CMake and Meson install.")
    parser.add_argument("cmake_prefix", type=pathlib.Path)
    parser.add_argument("meson_prefix", type=pathlib.Path)
    options = parser.parse_args()
    differences = 0
    for kind, read in (("header", headers_of), ("pkg-config file", modules_of)):
        by_cmake, by_meson = read(options.cmake_prefix.resolve()), read(options.meson_prefix.resolve())
        if not by_cmake:
            print(f"CMake installed no {kind}")
            differences += 1
        for name in sorted(by_cmake.keys() | by_meson.keys()):
            if name not in by_meson:
                print(f"{kind} {name}: installed by CMake only")
            elif name not in by_cmake:
                print(f"{kind} {name}: installed by Meson only")
            elif by_cmake[name] != by_meson[name]:
                print(f"{kind} {name}: not the same")
                if kind != "header":
                    print(f"    CMake: {by_cmake[name]}\n    Meson: {by_meson[name]}")
            else:
                continue
            differences += 1
        print(f"{len(by_cmake)} of kind '{kind}' compared")
    print(f"{differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
