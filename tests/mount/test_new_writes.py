"""How much a publish of a draft writes to the disk."""
import contextlib
import json
import os

import pytest

from daemonlib import Daemon
from weftlib import Mount, Store, random_tensors, run, write_model

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
MIB = 1 << 20
TENSORS, CHANGED = 100, 25  # of one MiB each


def written(pid):
    """Bytes that the process and its children that have ended made dirty."""
    with open(f"/proc/{pid}/io", encoding="ascii") as io:
        return next(int(line.split()[1]) for line in io if line.startswith("write_bytes:"))


def disk_bytes(store):
    """Of each file that holds content or says where it lies."""
    return {path: path.stat().st_blocks * 512
            for folder in ("packs", "manifests") for path in (store.path / folder).rglob("*") if path.is_file()}


class Publisher:
    def __init__(self, mount, daemon):
        self.mount, self.daemon = mount, daemon

    def processes(self):
        server = json.loads((self.mount / ".weft/status").read_text())["mount"]["pid"]
        return [server, *([self.daemon.pid] if self.daemon else [])]

    def publish(self, tensors):
        """Bytes that the rename of such a draft wrote, and those that the store has since."""
        draft = write_model(self.mount / "new/m", tensors)
        os.sync()
        pids, store = self.processes(), self.mount.store
        before, held = sum(map(written, pids)), disk_bytes(store)
        os.rename(draft, f"{draft}@")
        done = sum(map(written, pids)) - before
        return done, sum(size for path, size in disk_bytes(store).items() if path not in held)


@pytest.fixture(name="publisher", params=["without weftd", "weftd"])
def a_publisher(request, tmp_path):
    if run(["stat", "-f", "-c", "%T", tmp_path]).stdout.strip() != "ext2/ext3":
        pytest.skip("what a process writes is counted on a disk, and drafts are adopted there")
    with contextlib.ExitStack() as stack:
        store = Store(tmp_path / "store")
        daemon = stack.enter_context(Daemon(store)) if request.param == "weftd" else None
        yield Publisher(stack.enter_context(Mount(store, tmp_path / "mnt", "publish")), daemon)
        store.assert_sound()


def test_a_derived_draft_writes_its_new_bytes_once(publisher):
    first = random_tensors(TENSORS, MIB, seed="first")
    second = first | dict(list(random_tensors(TENSORS, MIB, seed="second").items())[:CHANGED])
    done, _ = publisher.publish(first)
    assert done < 0.01 * TENSORS * MIB, "of an unknown draft, the file itself becomes the pack"
    done, held = publisher.publish(second)
    print(f"new: {CHANGED * MIB:,} bytes; written: {done:,}; files of the store: {held:,}")
    assert CHANGED * MIB <= held <= 1.05 * CHANGED * MIB
    assert CHANGED * MIB <= done <= 1.05 * CHANGED * MIB
    assert (publisher.mount / "models/m/2/model.safetensors").read_bytes()[-MIB:] == \
        (publisher.mount / "models/m/1/model.safetensors").read_bytes()[-MIB:]
