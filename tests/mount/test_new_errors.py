"""Publishes in new/ that fail: the errno names the cause, the draft stays as it is, and later the same rename succeeds."""
import errno
import os
import signal
import subprocess
import sys

import pytest

from weftlib import (MOUNT_WEFT, Mount, Store, environment, files_below, random_tensors, refused_by, run,
                     safetensors_bytes, wait_until, write_model)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
MIB = 1 << 20
# Renames, and says with which errno that ended. Python's own handler would hide EINTR.
RENAME = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGCHLD):
    signal.signal(number, lambda *_: None)
try:
    os.rename(*sys.argv[1:])
    print(0)
except OSError as error:
    print(error.errno)
"""


@pytest.fixture
def mounted(tmp_path):
    with Mount(Store(tmp_path / "store"), tmp_path / "mnt", "publish,drafts_max=64G") as mount:
        yield mount


def assert_stays(draft, before, why):
    """The draft is what it was, beside the file that says why it is no version."""
    content = files_below(draft)
    assert why in content.pop(".weft.error").decode()
    assert content == before


def test_a_name_that_hides_a_model(mounted):
    """And one that a model hides."""
    new = mounted / "new"
    write_model(new / "x", random_tensors(1, 4096, seed="first"))
    os.mkdir(new / "org")
    os.rename(new / "x", new / "org/m@")
    before = files_below(write_model(new / "x", random_tensors(1, 4096, seed="second")))
    refused_by(errno.EEXIST, os.rename, new / "x", new / "org@")
    assert_stays(new / "x", before, "org")
    os.mkdir(new / "org/m")
    refused_by(errno.EEXIST, os.rename, new / "x", new / "org/m/inner@")
    assert_stays(new / "x", before, "org/m")
    assert sorted(os.listdir(mounted / "models")) == ["org"]
    assert os.listdir(mounted / "models/org") == ["m"]
    os.rename(new / "x", new / "org/n@")
    assert files_below(mounted / "models/org/n/1") == before


def test_no_space_to_publish(small_disk, tmp_path):
    """The tensors that are new are copied out of a file that has known ones too."""
    first = random_tensors(8, MIB // 2, seed="first")
    second = first | dict(list(random_tensors(8, MIB // 2, seed="second").items())[:4])
    with Mount(Store(small_disk / "store"), tmp_path / "mnt", "publish,drafts_max=8M") as mount:
        draft = mount / "new/m"
        write_model(draft, first)
        os.rename(draft, mount / "new/m@")
        before = files_below(write_model(draft, second))
        state = mount.store.state()
        free = os.statvfs(small_disk)
        with open(small_disk / "filler", "wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, free.f_bavail * free.f_bsize - MIB)
        refused_by(errno.ENOSPC, os.rename, draft, mount / "new/m@")
        (small_disk / "filler").unlink()
        assert_stays(draft, before, "")
        assert mount.store.state() == state
        os.rename(draft, mount / "new/m@")
        assert files_below(mount / "models/m/2") == before
        mount.store.assert_sound()


def signalled(mounted, draft, number):
    """What RENAME says that gets a signal while the import of the draft runs."""
    draft.mkdir()
    with open(draft / "x", "wb") as file:
        file.truncate(6 << 30)  # without a block: hashing it takes seconds
    (draft / "y").write_bytes(b"y")
    publishing = mounted.store.path / "drafts/publishing"
    program = subprocess.Popen([sys.executable, "-c", RENAME, draft, f"{draft}@"], stdout=subprocess.PIPE, text=True)
    wait_until(lambda: any((folder / "answer").exists() for folder in publishing.iterdir()))
    program.send_signal(number)
    said, _ = program.communicate(timeout=120)
    return int(said)


def test_another_signal(mounted):
    """As a loader of PyTorch has a handler of SIGCHLD."""
    assert signalled(mounted, mounted / "new/m", signal.SIGCHLD) == 0
    assert (mounted / "models/m/1/x").stat().st_size == 6 << 30


def test_ctrl_c(mounted):
    """The program that renames is interrupted while the import runs."""
    draft = mounted / "new/m"
    assert signalled(mounted, draft, signal.SIGINT) == errno.EINTR
    assert sorted(os.listdir(draft)) in (["x", "y"], [".weft.error", "x", "y"])
    assert (draft / "x").stat().st_size == 6 << 30 and (draft / "y").read_bytes() == b"y"
    assert mounted.store.json("ls")["models"] == []
    os.truncate(draft / "x", 5)
    os.rename(draft, f"{draft}@")
    assert files_below(mounted / "models/m/1") == {"x": bytes(5), "y": b"y"}


def test_a_file_that_is_no_model(mounted):
    """NAME.weft.error says why, and goes when the file has become a version."""
    new = mounted / "new"
    draft, error = new / "w.safetensors", new / "w.safetensors.weft.error"
    draft.write_bytes(b"\x10\0\0\0\0\0\0\0{")
    refused_by(errno.EINVAL, os.rename, draft, new / "m@")
    assert draft.read_bytes() == b"\x10\0\0\0\0\0\0\0{"
    assert "w.safetensors" in error.read_text()
    with open(draft, "wb") as file:
        file.write(safetensors_bytes(random_tensors(1, 4096, seed="file")))
        file.flush()
        refused_by(errno.EBUSY, os.rename, draft, new / "m@")
    assert "somebody has it open for writing" in error.read_text()
    content = draft.read_bytes()
    os.rename(draft, new / "m@")
    assert files_below(mounted / "models/m/1") == {"w.safetensors": content}
    assert os.listdir(new) == []


def test_without_the_program_that_imports(tmp_path):
    """mount.weft looks for weft beside itself."""
    alone = tmp_path / "mount.weft"
    alone.write_bytes(MOUNT_WEFT.read_bytes())
    alone.chmod(0o755)
    mount = Mount(Store(tmp_path / "store"), tmp_path / "mnt")
    mount.path.mkdir()
    try:
        run([alone, mount.store.path, mount.path, "-o", "publish"], env=environment(PATH="/usr/sbin:/usr/bin:/sbin:/bin"))
        before = files_below(write_model(mount / "new/m", random_tensors(1, 4096, seed="alone")))
        refused_by(errno.EIO, os.rename, mount / "new/m", mount / "new/m@")
        assert_stays(mount / "new/m", before, "did not run")
    finally:
        mount.unmount()
