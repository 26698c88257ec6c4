"""Exports by root into a directory that another user owns and changes all the time."""
import contextlib
import itertools
import multiprocessing
import os
import shutil
import signal
import time

import pytest

from weftlib import NOBODY, WEFT, files_below, random_tensors, run, write_model

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root and another user")

ROUNDS = 12

def swap_without_end(out, elsewhere):
    """As the owner of `out`: puts a link to `elsewhere` in the place of each directory there. Out of `out` the owner
    cannot move what belongs to root."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    for count in itertools.count():
        for entry in os.scandir(out):
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("aside-"):
                with contextlib.suppress(OSError):
                    os.rename(entry.path, out / f"aside-{count}-{entry.name}")
                    os.symlink(elsewhere, entry.path)


@pytest.fixture
def swapped(open_dir):
    """A directory of a user, where a process of the user swaps directories for links into a directory of root's."""
    (open_dir / "out").mkdir()
    os.chown(open_dir / "out", NOBODY, NOBODY)
    elsewhere = open_dir / "root"
    for directory in (elsewhere, elsewhere / "d"):
        directory.mkdir(mode=0o755)
        for number in range(200):
            (directory / f"{number:03d}.txt").write_text("root's")
    swapper = multiprocessing.get_context("fork").Process(
        target=swap_without_end, args=(open_dir / "out", elsewhere))
    swapper.start()
    yield open_dir / "out", elsewhere
    swapper.kill()
    swapper.join()


@pytest.fixture
def many(store, tmp_path):
    """A model with files of the names that root's directory has."""
    files = [(f"d/{number:03d}.txt", b"published %d" % number) for number in range(200)]
    model = write_model(tmp_path / "many", random_tensors(2, 4096, seed="many"), files=files)
    (model / "model.safetensors").rename(model / "zzz.safetensors")  # comes last
    store.publish(model, name="m")
    return store


def test_interrupted_exports_leave_roots_files(swapped, many):
    out, elsewhere = swapped
    before = files_below(elsewhere)
    for number in range(ROUNDS):
        export = many.start("export", "m", out)
        time.sleep(0.03 * number)  # from before its first file to after its last
        export.send_signal(signal.SIGINT)
        export.communicate()
        assert files_below(elsewhere) == before
        empty(out)


def test_failed_exports_leave_roots_files(swapped, many):
    """The last file is damaged, so that each export fails after it wrote the others."""
    out, elsewhere = swapped
    before = files_below(elsewhere)
    last = random_tensors(2, 4096, seed="many")["layer.1.weight"][2]
    damage(many, last)
    for _ in range(ROUNDS):
        assert many.weft("export", "m", out, check=False).returncode == 1
        assert files_below(elsewhere) == before
        empty(out)


def empty(out):
    """The next export wants an empty directory; what the swapper left there would refuse it."""
    for entry in os.scandir(out):
        if entry.is_symlink():
            os.unlink(entry.path)
        else:
            shutil.rmtree(entry.path, ignore_errors=True)


def damage(store, content):
    """Flips a bit of these bytes in the store's packs."""
    for pack in (store.path / "packs").glob("*.pack"):
        data = pack.read_bytes()
        at = data.find(content)
        if at >= 0:
            with open(pack, "r+b") as file:
                file.seek(at)
                file.write(bytes([data[at] ^ 1]))
            return
    raise AssertionError("no pack holds these bytes")


def test_export_into_the_directory_of_a_user(open_dir, many, tmp_path):
    """Without an attack: the files, and nothing hidden beside them."""
    out = open_dir / "out"
    out.mkdir()
    os.chown(out, NOBODY, NOBODY)
    many.weft("export", "m", out)
    assert files_below(out) == files_below(tmp_path / "many")
    assert sorted(os.listdir(out)) == ["config.json", "d", "zzz.safetensors"]


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("call", ["openat2", "newfstatat", "fsync", "unlinkat"])
def test_an_export_whose_call_failed_leaves_nothing(store, tmp_path, call):
    """Each call of this name fails once: also the look at a file or directory that the export has just made."""
    model = write_model(tmp_path / "m", random_tensors(1, 4096, seed="failed"), files=[("d/e/f.txt", b"f")])
    store.publish(model, name="m")
    out, failed = tmp_path / "out", 0
    for number in range(1, 500):
        inject = f"inject={call}:error=EIO:when={number}"
        done = run(["strace", "-f", "-o", tmp_path / "trace", "-e", inject, WEFT, "--store", store.path, "export", "m", out],
                   check=False)
        if "(INJECTED)" not in (tmp_path / "trace").read_text():
            break
        failed += done.returncode != 0
        assert out.exists() == (done.returncode == 0), f"{call} {number}: {done.stderr}"
        shutil.rmtree(out, ignore_errors=True)
    assert failed > 0
