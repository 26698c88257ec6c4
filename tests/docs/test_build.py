"""The defaults of the build, and what it says about missing packages. Nothing is compiled."""
import json
import re

import pytest

from weftlib import TOP, environment, run


def configure(build, *words, **variables):
    return run(["cmake", "-S", TOP, "-B", build, *words], check=False, env=environment(**variables))


def generated(build):
    """The sources that a configuration writes, with the time of the last change."""
    return {path: path.stat().st_mtime_ns for suffix in ("cc", "cxx", "hxx") for path in build.rglob(f"*.{suffix}")}


def test_without_a_preset(tmp_path):
    """A release of the programs alone, whose warnings are no errors. A second configuration changes no source."""
    done = configure(tmp_path)
    assert done.returncode == 0, done.stderr
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (tmp_path / "CMakeCache.txt").read_text(), flags=re.M))
    assert cache["CMAKE_BUILD_TYPE"] == "Release"
    assert [cache[name] for name in ("WEFT_TESTS", "WEFT_BENCH", "WEFT_WERROR")] == ["OFF"] * 3
    before = generated(tmp_path)
    assert tmp_path / "pch.cc" in before
    assert configure(tmp_path).returncode == 0
    assert generated(tmp_path) == before


def test_presets():
    """Warnings are errors for developers and CI, and not in the demo. CMake 3.22 reads version 3."""
    presets = json.loads((TOP / "CMakePresets.json").read_text())
    variables = {}
    for preset in presets["configurePresets"]:
        variables[preset["name"]] = variables.get(preset.get("inherits"), {}) | preset["cacheVariables"]
    strict = {name for name, values in variables.items() if values["WEFT_WERROR"] == "ON"}
    assert strict == {"base", "release", "debug", "dev", "asan", "tsan", "fuzz"}
    assert presets["version"] == 3
    assert presets["cmakeMinimumRequired"] == {"major": 3, "minor": 22, "patch": 0}
    assert (TOP / "CMakeLists.txt").read_text().startswith("cmake_minimum_required(VERSION 3.22)\n")


def test_missing_packages_are_named_at_once(tmp_path):
    """The development packages that scripts/packages installs to build, and that of the tests."""
    hidden = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("fmt", "spdlog", "OpenSSL", "CURL")]
    done = configure(tmp_path / "build", "-DWEFT_TESTS=ON", "-DCMAKE_IGNORE_PATH=/usr/include", *hidden,
                     PKG_CONFIG_LIBDIR=str(tmp_path))
    listed = re.search(r"^build=\((.*?)\)", (TOP / "scripts/packages").read_text(), flags=re.M | re.S)[1].split()
    expected = {package for package in listed if package.endswith("-dev")} | {"doctest-dev"}
    assert done.returncode != 0 and done.stderr.count("CMake Error") == 1
    assert set(re.findall(r"[\w+-]+-dev\b", done.stderr)) == expected


@pytest.fixture
def checkout(tmp_path):
    path = tmp_path / "checkout"
    (path / "folder").mkdir(parents=True)
    run(["git", "init", "-q", path])
    run(["git", "-C", path, "-c", "user.name=me", "-c", "user.email=me@here", "commit", "-q", "--allow-empty", "-m", "x"])
    return path


def commit_of(source, out):
    run(["cmake", "-D", f"SOURCE={source}", "-D", f"IN={TOP}/src/base/version/version.cc.in", "-D", f"OUT={out}", "-P",
         TOP / "cmake/commit.cmake"])
    return re.search(r"commit (\w+)", out.read_text())[1]


def test_the_commit_of_a_version(checkout, tmp_path):
    """A tarball has none, also where it is unpacked in a checkout of something else."""
    head = run(["git", "-C", checkout, "rev-parse", "HEAD"]).stdout
    assert head.startswith(commit_of(checkout, tmp_path / "out.cc"))
    assert commit_of(checkout / "folder", tmp_path / "out.cc") == "unknown"
    assert commit_of(tmp_path, tmp_path / "out.cc") == "unknown"
