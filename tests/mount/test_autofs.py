"""Mounts that automount makes when somebody visits them, and takes away again."""
import contextlib
import os
import pathlib
import shutil
import signal

import pytest

from weftlib import in_mount_namespace, needs_mtab, programs_for_everybody, run

SECONDS_MAX = 20  # for one visit, which mounts


def why_not():
    """Why automount cannot be used here; "" if it can."""
    if os.geteuid() != 0:
        return "automount needs root"
    if not shutil.which("automount"):
        return "automount is not installed (scripts/packages test)"
    kinds = pathlib.Path("/proc/filesystems")
    if "autofs" not in kinds.read_text().split():
        run(["sh", "-c", "modprobe autofs4 || modprobe autofs"], check=False)
    return "" if "autofs" in kinds.read_text().split() else "this kernel has no autofs, and modprobe autofs4 fails"


@pytest.fixture(autouse=True)
def usable():
    if why := why_not():
        pytest.skip(why)
    needs_mtab()


def kill_all_of(namespace):
    """Ends all processes of a mount namespace. Even a visitor that waits for an automount can be killed."""
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if os.readlink(entry / "ns/mnt") == namespace:
                os.kill(int(entry.name), signal.SIGKILL)


def automounted(area, maps, script):
    """Runs `script` beside an automount whose master map is `maps`, and returns what the script prints. Its mounts and
    its files in /run are seen by nobody else. Its processes end with it."""
    (area / "sbin").mkdir()
    programs_for_everybody(area / "sbin")
    (area / "sbin/mount.fuse.weft").symlink_to("mount.weft")
    (area / "master").write_text(maps)
    try:
        return in_mount_namespace(f"""
            readlink /proc/self/ns/mnt >{area}/namespace
            mount -t overlay -o ro,lowerdir={area}/sbin:/usr/sbin overlay /usr/sbin
            mount -t tmpfs tmpfs /run
            visit() {{ timeout --kill-after=1 {SECONDS_MAX} "$@"; }}
            is_shown() {{ grep -q " $1 fuse.weft " /proc/self/mounts; }}
            until_so() {{
                for _ in $(seq 1000); do ! "$@" || return 0; sleep 0.02; done
                echo "not so after 20 s: $*" >&2
                return 1
            }}
            is_gone() {{ ! is_shown "$1"; }}
            is_ready() {{ grep -q " autofs " /proc/self/mounts; }}
            automount --foreground --dont-check-daemon --timeout 600 {area}/master >{area}/automount.log 2>&1 &
            automount=$!
            until_so is_ready
            {script}""").stdout
    finally:
        kill_all_of((area / "namespace").read_text().strip())


def test_indirect_map(store, small_model, tmp_path):
    """A visit mounts, an expiry unmounts and ends the server, and the next visit mounts again."""
    store.publish(small_model, name="m")
    (tmp_path / "auto").mkdir()
    (tmp_path / "map").write_text(f"weft -fstype=weft,attr_timeout=1 :{store.path}\n")
    where = tmp_path / "auto/weft"
    said = automounted(tmp_path, f"{tmp_path}/auto file:{tmp_path}/map\n", f"""
        visit cmp {where}/models/m/1/config.json {small_model}/config.json
        is_shown {where}
        kill -USR1 $automount
        until_so is_gone {where}
        visit ls {where}/models/m
        is_shown {where}
        kill $automount
        wait $automount
        is_gone {where}""")
    assert said.split() == ["1", "latest"]


def test_direct_map(store, small_model, tmp_path):
    """The mount point is a file system of automount itself, so that each walk to it asks automount."""
    store.publish(small_model, name="m")
    where = tmp_path / "weft"
    (tmp_path / "map").write_text(f"{where} -fstype=fuse.weft,attr_timeout=1 :{store.path}\n")
    automounted(tmp_path, f"/- file:{tmp_path}/map\n", f"""
        visit cmp {where}/models/m/1/config.json {small_model}/config.json
        is_shown {where}
        visit cat {where}/.weft/status >/dev/null""")


def test_two_visitors_at_once(store, small_model, tmp_path):
    """Both wait for the one mount that the first of them asks for."""
    store.publish(small_model, name="m")
    (tmp_path / "auto").mkdir()
    (tmp_path / "map").write_text(f"* -fstype=weft :{store.path}\n")
    automounted(tmp_path, f"{tmp_path}/auto file:{tmp_path}/map\n", f"""
        visit cat {tmp_path}/auto/one/models/m/1/config.json >/dev/null & one=$!
        visit cat {tmp_path}/auto/one/models/m/latest/config.json >/dev/null & two=$!
        visit cat {tmp_path}/auto/three/models/m/1/config.json >/dev/null
        wait $one
        wait $two""")
