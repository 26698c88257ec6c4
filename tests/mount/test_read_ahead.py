"""The readahead that a mount sets is its own, whatever shows at its directory by then."""
import os
import pathlib
import signal

import pytest

from weftlib import Mount, run, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def read_ahead(device):
    path = pathlib.Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    return int(path.read_text())


@pytest.fixture
def disk(tmp_path):
    """A file system on a block device of its own."""
    place, image = tmp_path / "disk", tmp_path / "image"
    place.mkdir()
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    run(["mkfs.ext4", "-q", "-F", image])
    run(["mount", "-o", "loop", image, place])
    yield place
    run(["umount", place])


def test_a_server_after_a_lazy_unmount_sets_nothing_below(disk, store, small_model, tmp_path):
    store.publish(small_model, name="m")
    log = tmp_path / "weft.log"
    below = read_ahead(os.stat(disk).st_dev)
    with Mount(store, disk / "mnt", options=f"log={log}") as mount:
        own = os.stat(mount.path).st_dev
        assert read_ahead(own) == 4096
        with open(mount.version("m", 1) / "model.safetensors", "rb") as held:
            servers = mount.server_pids()
            run(["umount", "-l", mount.path])
            pathlib.Path(f"/sys/class/bdi/{os.major(own)}:{os.minor(own)}/read_ahead_kb").write_text("256")
            os.kill(max(servers), signal.SIGKILL)
            wait_until(lambda: log.read_text().count("serving") == 2)
            assert read_ahead(own) == 4096
            assert read_ahead(os.stat(disk).st_dev) == below
            assert held.read() == (small_model / "model.safetensors").read_bytes()
        wait_until(lambda: not mount.server_pids(), seconds_max=30)
    assert read_ahead(os.stat(disk).st_dev) == below


def test_a_server_after_a_lazy_unmount_sets_nothing_of_the_next_mount(store, small_model, tmp_path):
    """Another mount of weft shows there by then."""
    store.publish(small_model, name="m")
    log = tmp_path / "weft.log"
    with Mount(store, tmp_path / "mnt", options=f"log={log}") as first:
        with open(first.version("m", 1) / "model.safetensors", "rb") as held:
            servers = first.server_pids()
            run(["umount", "-l", first.path])
            with Mount(store, tmp_path / "mnt") as second:
                other = os.stat(second.path).st_dev
                pathlib.Path(f"/sys/class/bdi/{os.major(other)}:{os.minor(other)}/read_ahead_kb").write_text("256")
                os.kill(max(servers), signal.SIGKILL)
                wait_until(lambda: log.read_text().count("serving") == 2)
                assert read_ahead(other) == 256
                assert held.read()
                held.close()
                wait_until(lambda: not set(first.server_pids()) & set(servers), seconds_max=30)
