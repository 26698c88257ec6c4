"""What `cmake --install` puts in place."""
import shutil

import pytest

from weftlib import BUILD, run


@pytest.fixture
def installed(tmp_path):
    if not (BUILD / "cmake_install.cmake").exists():
        pytest.skip("these programs were not built here")
    run(["cmake", "--install", BUILD, "--prefix", tmp_path / "usr"])
    return tmp_path / "usr"


def test_programs_and_the_unit_are_installed(installed):
    for program in ("bin/weft", "sbin/weftd", "sbin/mount.weft"):
        assert run([installed / program, "--version"]).stdout
    assert run([installed / "sbin/mount.fuse.weft", "--version"]).stdout.startswith("mount.weft ")
    unit = (installed / "lib/systemd/system/weftd.service").read_text()
    assert f"\nExecStart={installed}/sbin/weftd --config /etc/weft/weft.conf\n" in unit
    assert f"\nExecStart={installed}/bin/weft " in (installed / "lib/systemd/system/weft-scrub.service").read_text()
    assert "\nType=notify\n" in unit  # which test_readiness_and_end shows


def test_systemd_takes_the_unit(installed):
    """Without a word: keys that it does not know it ignores, and says so."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here")
    units = sorted((installed / "lib/systemd/system").iterdir())
    assert [unit.name for unit in units] == ["weft-scrub.service", "weft-scrub.timer", "weftd.service"]
    done = run(["systemd-analyze", "verify", "--man=no", *units], check=False)
    said = [line for line in done.stderr.splitlines() if "weft" in line]
    assert done.returncode == 0 and not said, done.stderr
