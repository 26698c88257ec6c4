"""What `cmake --install` puts in place."""
import os
import re
import shutil
import tomllib

import pytest

from daemonlib import WEFTD
from weftlib import BUILD, MOUNT_WEFT, WEFT, environment, run

FILES = """
etc/weft/weft.conf.example
usr/bin/weft
usr/lib/systemd/system/weft-scrub.service
usr/lib/systemd/system/weft-scrub.timer
usr/lib/systemd/system/weftd.service
usr/lib/systemd/user/weftd.service
usr/lib/sysusers.d/weftd.conf
usr/lib/tmpfiles.d/weftd.conf
usr/sbin/mount.fuse.weft
usr/sbin/mount.weft
usr/sbin/weftd
usr/share/bash-completion/completions/weft
usr/share/doc/weft/README.md
usr/share/doc/weft/changelog.gz
usr/share/doc/weft/copyright
usr/share/doc/weftd/changelog.gz
usr/share/doc/weftd/copyright
usr/share/fish/vendor_completions.d/weft.fish
usr/share/man/man1/weft.1.gz
usr/share/man/man5/weft-store.5.gz
usr/share/man/man5/weft.conf.5.gz
usr/share/man/man7/weft-cluster.7.gz
usr/share/man/man7/weft-find.7.gz
usr/share/man/man7/weft-registry.7.gz
usr/share/man/man7/weft.7.gz
usr/share/man/man8/mount.weft.8.gz
usr/share/man/man8/weftd.8.gz
usr/share/weftd/weft.json
usr/share/weftd/weft.rules.yml
usr/share/zsh/site-functions/_weft
""".split()
VERSION = re.compile(r"\d+\.\d+\.\d+ \(commit ([0-9a-f]{12,64}|unknown), (\w+)\)")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    if not (BUILD / "cmake_install.cmake").exists():
        pytest.skip("these programs were not built here")
    root = tmp_path_factory.mktemp("root")
    run(["cmake", "--install", BUILD, "--prefix", "/usr"], env=environment(DESTDIR=str(root)))
    return root


def test_each_file_is_in_its_place(installed):
    found = [path.relative_to(installed).as_posix() for path in installed.rglob("*") if not path.is_dir()]
    assert sorted(found) == FILES


def test_programs_and_the_units(installed):
    unit = (installed / "usr/lib/systemd/system/weftd.service").read_text()
    assert "\nExecStart=/usr/sbin/weftd --config /etc/weft/weft.conf\n" in unit
    assert "\nExecStart=/usr/bin/weft " in (installed / "usr/lib/systemd/system/weft-scrub.service").read_text()
    assert "\nType=notify\n" in unit  # which test_readiness_and_end shows
    assert run([installed / "usr/sbin/mount.fuse.weft", "--version"]).stdout.startswith("mount.weft ")


def test_version_names_the_commit_and_the_build_type(installed):
    """In one line, the same for all programs, and then the program's own path."""
    texts = set()
    for program in ("bin/weft", "sbin/weftd", "sbin/mount.weft"):
        path = installed / "usr" / program
        name, text = run([path, "--version"]).stdout.removesuffix(f", {path.resolve()}\n").split(" ", 1)
        assert name == program.split("/")[1]
        texts.add(text)
    build_type = re.search(r"^CMAKE_BUILD_TYPE:\w+=(\w+)$", (BUILD / "CMakeCache.txt").read_text(), flags=re.M)[1]
    assert len(texts) == 1
    assert VERSION.fullmatch(texts.pop())[2] == build_type


def test_status_names_the_program_that_answers(installed, store):
    """Each of two installations names itself."""
    for weft in (installed / "usr/bin/weft", WEFT):
        said = run([weft, "--store", store.path, "status"]).stdout
        assert f"\nprogram   {weft.resolve()}, version " in said


def test_programs_find_each_other_without_a_path(installed, tmp_path):
    """The installed ones, and those of the build folder."""
    for weft in (installed / "usr/bin/weft", WEFT):
        said = run([weft, "mount", "--upgrade", tmp_path], check=False, env=environment(PATH="/nowhere")).stderr
        assert said == f"weft: {tmp_path}: no weft file system is mounted here\n"
    assert (MOUNT_WEFT.parent / "weft").samefile(WEFT)


def test_the_example_has_every_setting(installed, store):
    example = installed / "etc/weft/weft.conf.example"
    every = tomllib.loads(re.sub(r"^#(?=\w+ = |\[\[)", "", example.read_text(), flags=re.M))
    tables = {key: value for key, value in every.items() if isinstance(value, dict)}
    keys = (every.keys() - tables.keys()) | {f"{table}.{key}" for table, rows in tables.items() for key in rows}
    options = re.findall(r"^  (--[a-z-]+) [A-Z]", run([WEFTD, "--help"]).stdout, flags=re.M)
    assert {"--" + re.sub("[_.]", "-", key) for key in keys} == set(options)
    assert run([WEFTD, "--check", "--config", example, "--store", store.path]).stderr == ""


@pytest.fixture(scope="module")
def units(installed, tmp_path_factory):
    """The units of systemd that are installed and that `weft cluster init` writes, by their folder: system or user."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here, which Debian's package systemd has")
    folders = {name: tmp_path_factory.mktemp(name) for name in ("system", "user")}
    for name, folder in folders.items():
        for unit in (installed / "usr/lib/systemd" / name).iterdir():  # systemd looks for the programs that they name
            (folder / unit.name).write_text(unit.read_text().replace("=/usr/", f"={installed}/usr/"))
    folders["runtime"] = tmp_path_factory.mktemp("runtime")
    planned = run([WEFT, "cluster", "init", "--dry-run", "--listen", "10.0.0.1"], check=False)
    if "no program etcd here" not in planned.stderr:
        text = re.search(r"^file \S+/weft-etcd.service .*\n((?:    .*\n|\n)+)", planned.stdout, flags=re.M)[1]
        (folders["system"] / "weft-etcd.service").write_text(re.sub("^    ", "", text, flags=re.M))
    return folders


def analyzed(units, scope, *words):
    """What systemd-analyze says. It wants a directory for the socket of a user's manager, although it starts none."""
    return run(["systemd-analyze", f"--{scope}", *words], check=False, env=environment(XDG_RUNTIME_DIR=units["runtime"]))


@pytest.mark.parametrize("scope", ["system", "user"])
def test_systemd_takes_the_units(units, scope):
    """Without a word: keys that it does not know it ignores, and says so."""
    done = analyzed(units, scope, "verify", "--man=no", *sorted(units[scope].iterdir()))
    said = [line for line in done.stderr.splitlines() if "weft" in line]
    assert done.returncode == 0 and not said, done.stderr


@pytest.mark.parametrize("scope", ["system", "user"])
def test_units_are_confined(units, scope, tmp_path):
    """systemd rates the exposure of a service from 0 to 10, in tenths here. It takes a user's service for one of root with
    all capabilities, so the test says what such a service has: an ordinary user and none."""
    services = sorted(units[scope].glob("*.service"))
    assert {"weftd.service"} <= {path.name for path in services}
    for service in services:
        copy = tmp_path / service.name
        rights = "User=nobody\nCapabilityBoundingSet=\n" if scope == "user" else ""
        copy.write_text(service.read_text().replace("[Service]\n", f"[Service]\n{rights}"))
        done = analyzed(units, scope, "security", "--offline=true", "--no-pager", "--threshold=40", copy)
        assert done.returncode == 0, done.stdout + done.stderr


def test_units_leave_what_the_programs_need(units):
    """These settings pass `verify`, and weft cannot work with them: it opens files by openat2(2), which RestrictSUIDSGID
    forbids, and RDMA needs devices of any name and locked memory."""
    for unit in [*units["system"].glob("weft[d-]*.service"), *units["user"].glob("*.service")]:
        if unit.name != "weft-etcd.service":
            assert "\nRestrictSUIDSGID=" not in unit.read_text(), unit
    weftd = (units["system"] / "weftd.service").read_text()
    assert not re.search(r"^(PrivateDevices|DeviceAllow|DevicePolicy|ProtectClock|StateDirectory)=", weftd, flags=re.M)
    assert "\nLimitMEMLOCK=infinity\n" in weftd and "AF_NETLINK" in weftd and "CAP_LEASE" in weftd


def test_systemd_makes_the_group_and_the_place_of_the_store(installed, tmp_path):
    """A place that exists keeps its mode."""
    if os.geteuid() != 0 or not (shutil.which("systemd-sysusers") and shutil.which("systemd-tmpfiles")):
        pytest.skip("not root, or no systemd here")
    (tmp_path / "etc").mkdir()
    shutil.copytree(installed / "usr/lib", tmp_path / "usr/lib")
    run(["systemd-sysusers", f"--root={tmp_path}", "weftd.conf"])
    group = int(re.search(r"^weft:x:(\d+):$", (tmp_path / "etc/group").read_text(), flags=re.M)[1])
    store = tmp_path / "var/lib/weft"
    for mode in (0o750, 0o2755):
        run(["systemd-tmpfiles", f"--root={tmp_path}", "--create", "weftd.conf"])
        assert (store.stat().st_gid, store.stat().st_mode & 0o7777) == (group, mode)
        store.chmod(0o2755)
