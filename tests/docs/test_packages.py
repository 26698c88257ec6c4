"""What scripts/package makes, as far as it shows without a build: the configurations of packages and of the static program,
the scripts of a package, and the wheel."""
import base64
import gzip
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

from weftlib import TOP, environment, run

DEBIAN = TOP / "cmake/debian"
SCRIPTS = ["postinst", "prerm", "postrm"]
MACHINE = os.uname().machine


def configured(build, *words):
    run(["cmake", "-G", "Ninja", "-S", TOP, "-B", build, *words], env=environment(SOURCE_DATE_EPOCH="1764450000"))
    return build


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return configured(tmp_path_factory.mktemp("package"), "-DCMAKE_INSTALL_PREFIX=/usr")


@pytest.fixture(scope="module")
def settings(package):
    """The variables of cpack."""
    return dict(re.findall(r'^set\((CPACK_\w+) "([^"]*)"\)$', (package / "CPackConfig.cmake").read_text(), flags=re.M))


def test_a_package_of_each_component(settings):
    assert settings["CPACK_COMPONENTS_ALL"] == "weft;weftd"
    assert settings["CPACK_INSTALL_PREFIX"] == "/usr"
    assert settings["CPACK_PACKAGE_DIRECTORY"] == str(TOP / "build/packages")
    for name in ("CPACK_DEB_COMPONENT_INSTALL", "CPACK_DEBIAN_PACKAGE_SHLIBDEPS", "CPACK_STRIP_FILES"):
        assert settings[name] == "ON"
    version = settings["CPACK_DEBIAN_PACKAGE_VERSION"]
    assert settings["CPACK_DEBIAN_WEFTD_PACKAGE_DEPENDS"] == f"weft (= {version}), passwd"
    for component in ("WEFT", "WEFTD"):
        summary, *lines = settings[f"CPACK_DEBIAN_{component}_DESCRIPTION"].split("\n")
        assert len(summary) < 80 and not summary.startswith(component.lower())
        assert lines and all(len(line) < 80 for line in lines)
        assert not [line for line in lines if not line or line != line.strip()]  # cpack indents them


def test_control_files_exist(settings):
    """The settings that a package brings are marked, and its scripts run."""
    extra = {component: [pathlib.Path(path) for path in settings[f"CPACK_DEBIAN_{component}_PACKAGE_CONTROL_EXTRA"].split(";")]
             for component in ("WEFT", "WEFTD")}
    assert [path.name for path in extra["WEFTD"]] == ["conffiles", *SCRIPTS]
    assert [path.name for path in extra["WEFT"]] == ["postrm"]
    for path in extra["WEFT"] + extra["WEFTD"]:
        assert os.access(path, os.X_OK) == (path.name != "conffiles")
        if path.name != "conffiles":
            run(["sh", "-n", path])
    assert extra["WEFTD"][0].read_text() == "/etc/weft/weft.conf.example\n"


def test_changelog(package, settings):
    """It names the version of the package. Equal times give equal texts."""
    text = (package / "installed/changelog").read_text()
    assert text.startswith(f"weft ({settings['CPACK_DEBIAN_PACKAGE_VERSION']}) ")
    assert text.endswith(f" -- {settings['CPACK_PACKAGE_CONTACT']}  Sat, 29 Nov 2025 21:00:00 +0000\n")


def test_compressed_when_installed(package, tmp_path):
    """cmake/install_compressed.cmake: whole, and without a time, so that equal texts are equal files."""
    words = [f"-Dfile={TOP}/man/weft.1", "-Ddirectory=share/man/man1", f"-Dwork={tmp_path}",
             f"-DCMAKE_INSTALL_PREFIX={tmp_path}"]
    run(["cmake", *words, "-P", TOP / "cmake/install_compressed.cmake"])
    page = tmp_path / "share/man/man1/weft.1.gz"
    assert gzip.decompress(page.read_bytes()) == (TOP / "man/weft.1").read_bytes()
    assert page.read_bytes()[4:8] == bytes(4) and page.stat().st_mode & 0o777 == 0o644
    assert "man/weft.1\"" in (package / "cmake_install.cmake").read_text()


@pytest.mark.parametrize(("action", "calls"), [("remove", "--quiet disable weftd.service weft-scrub.timer"), ("upgrade", "")])
def test_a_removal_stops_the_units(tmp_path, action, calls):
    """An upgrade lets them run."""
    (tmp_path / "systemctl").write_text(f"#!/bin/sh\necho \"$@\" >>{tmp_path}/calls\n")
    (tmp_path / "systemctl").chmod(0o755)
    (tmp_path / "calls").touch()
    run([DEBIAN / "weftd/prerm", action], env={"PATH": str(tmp_path)})
    stops = calls and pathlib.Path("/run/systemd/system").is_dir()
    expected = ["stop weftd.service weft-scrub.timer weft-scrub.service"] * bool(stops) + [calls] * bool(calls)
    assert (tmp_path / "calls").read_text().splitlines() == expected


def test_the_static_program_links_archives(tmp_path):
    build = configured(tmp_path, "-DWEFT_STATIC=ON")
    rules = (build / "build.ninja").read_text()
    link = re.search(r"^build src/cli/weft: .*?(?:\n  .*)+", rules, flags=re.M)[0]
    libraries = re.search(r"LINK_LIBRARIES = (.*)", link)[1].split()
    assert "-static" in re.search(r"LINK_FLAGS = (.*)", link)[1].split()
    for name in ("fuse3", "lmdb", "xxhash", "zstd", "crypto"):
        assert [word for word in libraries if word.endswith(f"/lib{name}.a")]
    assert not [word for word in libraries if ".so" in word or "fabric" in word]
    sources = rules + "".join(unit.read_text() for unit in build.glob("src/os/lookups/**/Unity/*.cxx"))
    assert "users_in_lists.cc" in sources and "users_by_name_service.cc" not in sources
    assert "daemon/weftd" not in rules
    assert os.readlink(build / "fuse/mount.weft") == "../src/cli/weft"
    assert os.readlink(build / "installed/mount.weft") == "../bin/weft"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of a program that prints its words."""
    area = tmp_path_factory.mktemp("wheel")
    (area / "program").write_text("#!/bin/sh\necho \"$(basename \"$0\")\" \"$@\"\n")
    words = [sys.executable, TOP / "scripts/lib/make_wheel.py", area / "program", "1.2.3", MACHINE, area]
    return pathlib.Path(run(words, env=environment(SOURCE_DATE_EPOCH="1764450000")).stdout.strip())


def test_a_wheel_has_what_pip_checks(wheel):
    tags = wheel.stem.split("-")
    assert tags[:4] == ["weft", "1.2.3", "py3", "none"]
    with zipfile.ZipFile(wheel) as archive:
        info = {entry.filename: entry for entry in archive.infolist()}
        data = {name: archive.read(name) for name in info}
    below = "weft-1.2.3"
    assert list(info) == [f"{below}.data/scripts/mount.weft", f"{below}.data/scripts/weft", f"{below}.dist-info/METADATA",
                          f"{below}.dist-info/WHEEL", f"{below}.dist-info/copyright", f"{below}.dist-info/RECORD"]
    assert {entry.date_time for entry in info.values()} == {(2025, 11, 29, 21, 0, 0)}
    for name, entry in info.items():
        assert entry.external_attr >> 16 == (0o100755 if ".data/scripts/" in name else 0o100644)
    said = re.findall(r"^Tag: py3-none-(\w+)$", data[f"{below}.dist-info/WHEEL"].decode(), flags=re.M)
    assert said == tags[4].split(".") and all(tag.endswith(f"_{MACHINE}") for tag in said)
    record = dict(line.split(",", 1) for line in data[f"{below}.dist-info/RECORD"].decode().splitlines())
    assert record.pop(f"{below}.dist-info/RECORD") == ","
    for name, line in record.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data[name]).digest()).decode().rstrip("=")
        assert line == f"sha256={digest},{len(data[name])}"
    assert set(record) | {f"{below}.dist-info/RECORD"} == set(data)


def test_pip_installs_the_wheel(wheel, tmp_path):
    """mount.weft calls the weft beside it, also through a link, as from /sbin."""
    run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", tmp_path, wheel],
        env=environment(PIP_DISABLE_PIP_VERSION_CHECK="1"))
    assert subprocess.check_output([tmp_path / "bin/weft", "ls"], text=True) == "weft ls\n"
    (tmp_path / "linked").symlink_to("bin/mount.weft")
    for program in (tmp_path / "bin/mount.weft", tmp_path / "linked"):
        assert subprocess.check_output([program, "a b", "/mnt"], text=True) == "weft mount.weft a b /mnt\n"


def test_only_packages_that_are_known():
    done = run([TOP / "scripts/package", "rpm"], check=False)
    assert done.returncode == 2 and "scripts/package check" in done.stderr
