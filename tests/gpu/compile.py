#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles .cu files with nvcc, without CMake's CUDA language (CMake 3.25 ignores C++20 for nvcc silently).

nvcc is taken from $WEIGHTCAST_NVCC, the PATH, /usr/local/cuda, or where `./dev install-deps nvcc` unpacks
the PyPI wheels. Exit: 0 compiled, 1 not, 77 there is no nvcc (shown as skipped).
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def candidates():
    yield os.environ.get("WEIGHTCAST_NVCC")
    yield shutil.which("nvcc")
    yield "/usr/local/cuda/bin/nvcc"
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    yield from sorted(pathlib.Path(cache, "weightcast").glob("nvcc-*/nvidia/cu*/bin/nvcc"), reverse=True)


def find_nvcc():
    """The first nvcc that runs, and the last line of its --version."""
    for candidate in candidates():
        if candidate and os.access(candidate, os.X_OK):
            said = subprocess.run([candidate, "--version"], capture_output=True, text=True)
            if said.returncode == 0:
                return str(candidate), said.stdout.splitlines()[-1]
    return None, None


def main():
    parser = argparse.ArgumentParser(description="Compiles .cu files with nvcc.")
    parser.add_argument("--include", action="append", default=[], metavar="DIR")
    parser.add_argument("sources", nargs="+")
    options = parser.parse_args()

    nvcc, version = find_nvcc()
    if nvcc is None:
        print("skipped: no nvcc in the PATH, in /usr/local/cuda or in the cache (./dev install-deps nvcc)")
        return 77
    print(version)
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        for source in options.sources:
            command = [nvcc, "-std=c++20", "-arch=sm_90", "-Werror", "all-warnings", "-c", source]
            command += ["-o", str(pathlib.Path(directory, "object.o"))]
            for include in options.include:
                command.append(f"-I{include}")
            print(" ".join(command), flush=True)
            failed |= subprocess.run(command).returncode
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
