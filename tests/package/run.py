#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the package and uses it as others would. Each command is one test; `install` comes first.

Exit: 0 good, 1 not, 77 a tool that this needs is missing (shown as skipped).
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
CONSUMER = HERE / "consumer"


class Skip(Exception):
    pass


def run(*command, **options):
    print("+", *command, flush=True)
    subprocess.run([str(word) for word in command], check=True, **options)


def fresh(directory):
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def need(tool):
    if shutil.which(tool) is None:
        raise Skip(f"no {tool} here")


class Package:
    def __init__(self, options):
        self.source, self.build, self.work = options.source, options.build, options.work
        self.compiler, self.cmake = options.compiler, options.cmake
        self.prefix = self.work / "installed-by-cmake"

    def configure(self, source, build, *arguments):
        run(self.cmake, "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_CXX_COMPILER={self.compiler}", *arguments)
        run(self.cmake, "--build", build)

    def install(self):
        fresh(self.prefix)
        run(self.cmake, "--install", self.build, "--prefix", self.prefix, "--component", "weightcast")

    def find_package(self):
        build = fresh(self.work / "find_package")
        self.configure(CONSUMER / "find_package", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run(build / "consumer")

    def add_subdirectory(self):
        build = fresh(self.work / "add_subdirectory")
        self.configure(CONSUMER / "add_subdirectory", build, f"-DWEIGHTCAST_SOURCE_DIR={self.source}")
        run(build / "consumer")

    def pkg_config(self):
        need("pkg-config")
        build = fresh(self.work / "pkg_config")
        module_paths = {str(path.parent) for path in self.prefix.rglob("*.pc")}
        environment = {**os.environ, "PKG_CONFIG_PATH": ":".join(sorted(module_paths))}
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "weightcast", "weightcast-io", "weightcast-gloo"],
            capture_output=True, text=True, check=True, env=environment,
        ).stdout.split()
        if f"-I{self.prefix / 'include'}" not in [os.path.normpath(flag) if not flag.startswith("-I") else "-I" + os.path.normpath(flag[2:]) for flag in flags]:
            raise RuntimeError(f"pkg-config does not point into the installed package: {flags}")
        run(self.compiler, "-std=c++20", CONSUMER / "main.cpp", "-o", build / "consumer", *flags)
        run(build / "consumer")

    def meson_subproject(self):
        need("meson")
        work = fresh(self.work / "meson_subproject")
        shutil.copy(CONSUMER / "meson_subproject" / "meson.build", work)
        shutil.copy(CONSUMER / "main.cpp", work)
        (work / "subprojects").mkdir()
        (work / "subprojects" / "weightcast").symlink_to(self.source)
        environment = {**os.environ, "CXX": self.compiler}
        run("meson", "setup", work / "build", work, env=environment)
        run("meson", "compile", "-C", work / "build")
        run(work / "build" / "consumer")

    def compare_installs(self):
        need("meson")
        build = fresh(self.work / "meson_install") / "build"
        prefix = fresh(self.work / "installed-by-meson")
        environment = {**os.environ, "CXX": self.compiler}
        off = [f"-D{name}=disabled" for name in ("tests", "tools", "benchmarks", "examples")]
        run("meson", "setup", build, self.source, f"--prefix={prefix}", *off, env=environment)
        run("meson", "install", "-C", build)
        run(sys.executable, HERE / "compare_installs.py", self.prefix, prefix)

    def readme(self):
        run(
            sys.executable, HERE / "readme.py", "--prefix", self.prefix, "--work", self.work / "readme",
            "--compiler", self.compiler, "--cmake", self.cmake, self.source / "README.md",
            *sorted((self.source / "docs").rglob("*.md")),
        )


COMMANDS = ["install", "find_package", "add_subdirectory", "pkg_config", "meson_subproject", "compare_installs", "readme"]


def main():
    parser = argparse.ArgumentParser(description="Installs the package and uses it as others would.")
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a configured build tree")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("command", choices=COMMANDS)
    options = parser.parse_args()
    try:
        getattr(Package(options), options.command)()
    except Skip as reason:
        print(f"skipped: {reason}")
        return 77
    except (subprocess.CalledProcessError, RuntimeError) as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
