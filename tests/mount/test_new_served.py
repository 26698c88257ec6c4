"""new/ of a store on overlayfs: the server itself writes, as for an ordinary user or on a kernel without passthrough."""
import errno
import mmap
import os
import shutil

import pytest

from weftlib import (Mount, Store, files_below, overlay_over, random_bytes, random_tensors, run, write_model)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def served(tmp_path):
    with overlay_over(tmp_path / "lower", tmp_path) as merged, Mount(Store(merged / "store"), tmp_path / "mnt",
                                                                    "publish") as mount:
        yield mount


def publish(mount):
    os.rename(mount / "new/m", mount / "new/m@")


def test_what_is_written_is_published(served, tmp_path):
    model = write_model(tmp_path / "model", random_tensors(6, 1 << 20, seed="served"), files=[("a/config.json", b"{}")])
    shutil.copytree(model, served / "new/m")
    publish(served)
    assert files_below(served / "models/m/1") == files_below(model)
    run(["cp", "-a", model, served / "new/m"])
    with open(served / "new/m/a/config.json", "r+b") as file:
        file.write(b"[1]")
        file.seek(1 << 20)
        file.write(b"end")
    publish(served)
    assert (served / "models/m/2/a/config.json").read_bytes() == b"[1]" + bytes((1 << 20) - 3) + b"end"
    served.store.assert_sound()


def test_who_writes_makes_it_busy_and_who_reads_does_not(served):
    (served / "new/m").mkdir()
    with open(served / "new/m/x", "wb") as writer:
        writer.write(b"x" * 70_000)
        writer.flush()
        with open(served / "new/m/x", "rb") as reader:
            with pytest.raises(OSError) as failed:
                publish(served)
            assert failed.value.errno == errno.EBUSY
            writer.close()
            publish(served)
            assert reader.read() == b"x" * 70_000


def test_a_mapping_makes_it_busy(served):
    """As long as it can change the file; then what it wrote is in the version."""
    (served / "new/m").mkdir()
    with open(served / "new/m/x", "w+b") as file:
        file.write(random_bytes(1 << 20, 1))
        file.flush()
        mapping = mmap.mmap(file.fileno(), 1 << 20)
    mapping[70_000] = 7
    with pytest.raises(OSError) as failed:
        publish(served)
    assert failed.value.errno == errno.EBUSY
    mapping[80_000] = 8
    mapping.close()
    publish(served)
    content = (served / "models/m/1/x").read_bytes()
    assert content[70_000] == 7 and content[80_000] == 8
