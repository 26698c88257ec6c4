"""What the version of the kernel gives a mount of root's: passthrough and restarts from Linux 6.9 on, neither before."""
import errno
import json
import os
import signal

import pytest

from weftlib import HAS_LINUX_6_9, is_alive, is_mounted, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="passthrough needs root")


def status_of(mount):
    return json.loads((mount / ".weft/status").read_text())["mount"]


def test_the_mode_follows_from_the_kernel(mounted, small_model):
    """And without passthrough the status gives the reason; the bytes are the same."""
    status = status_of(mounted)
    assert status["mode"] == ("passthrough" if HAS_LINUX_6_9 else "cached")
    assert HAS_LINUX_6_9 or "Linux 6.9" in status["mode_reason"]
    assert HAS_LINUX_6_9 == ("restart_problem" not in status)
    published = (small_model / "model.safetensors").read_bytes()
    with open(mounted.version("org/small", 1) / "model.safetensors", "rb") as file:
        assert file.read() == published
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        assert file.read() == published


def test_a_lost_server_is_followed_or_ends_the_mount(mounted):
    """Before Linux 6.9 nobody hangs: open files fail, the mount goes away, and the next mount reads."""
    model = mounted.version("org/small", 1) / "model.safetensors"
    view = mounted.tensors("org/small", 1) / "layer.0.weight.npy"
    before, expected = status_of(mounted), model.read_bytes()
    with open(model, "rb", buffering=0) as held, open(view, "rb", buffering=0) as held_view:
        os.posix_fadvise(held_view.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.kill(before["pid"], signal.SIGKILL)
        wait_until(lambda: not is_alive(before["pid"]))
        if HAS_LINUX_6_9:
            assert held.read() == expected and held_view.read()
            assert status_of(mounted)["restarts"] == before["restarts"] + 1
            return
        with pytest.raises(OSError) as failed:
            held_view.read()
        assert failed.value.errno in (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO)
    wait_until(lambda: not is_mounted(mounted.path) and not is_alive(before["supervisor_pid"]))
    mounted.store.weft("mount", mounted.path)
    assert model.read_bytes() == expected


def test_an_upgrade_is_made_or_refused(mounted):
    """Before Linux 6.9 it is refused with the reason, and the mount stays as it is."""
    before = status_of(mounted)
    done = mounted.store.weft("mount", "--upgrade", mounted.path, check=False)
    assert (done.returncode == 0) == HAS_LINUX_6_9, done.stderr
    assert HAS_LINUX_6_9 or "Linux 6.9" in done.stderr
    after = status_of(mounted)
    assert (after["pid"] != before["pid"]) == HAS_LINUX_6_9
    assert after["supervisor_pid"] == before["supervisor_pid"]
