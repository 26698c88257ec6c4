"""A publish that is answered with an error does not appear later, whichever of its system calls begin to fail and go on to."""
import collections
import shutil

import pytest

from weftlib import WEFT, Store, run

CALLS = ["openat", "pwrite64", "writev", "pwritev", "fsync", "fdatasync", "msync", "ftruncate", "rename", "mmap"]
UNKNOWN = "whether it was done is not known"


def failing(call, number, error, words):
    """What weft says when its so manyth call of this name fails, and all later ones."""
    inject = f"inject={call}:error={error}:when={number}+"
    return run(["strace", "-f", "-o", "/dev/null", "-e", inject, *words], check=False)


def calls_before_main(log):
    """How often the dynamic loader makes each call. A program that does not start publishes nothing."""
    run(["strace", "-o", log, "-e", "trace=" + ",".join(CALLS), "-E", "LD_TRACE_LOADED_OBJECTS=1", WEFT])
    return collections.Counter(line.split("(")[0] for line in log.read_text().splitlines())


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EMFILE"])
def test_what_failed_does_not_appear(tmp_path, error):
    first, second = tmp_path / "first.bin", tmp_path / "second.bin"
    first.write_bytes(b"first")
    second.write_bytes(b"second")
    whole = tmp_path / "whole"
    Store(whole).publish(first, name="m")
    path = tmp_path / "store"
    failed = 0
    earlier = calls_before_main(tmp_path / "log")
    for call in CALLS:
        for number in range(earlier[call] + 1, 500):
            shutil.copytree(whole, path)
            store = object.__new__(Store)
            store.path = path
            said = failing(call, number, error, [WEFT, "--store", path, "import", second, "--name", "m"])
            if said.returncode == 0:
                shutil.rmtree(path)
                break
            failed += 1
            store.weft("tag", "m@1", "later")  # a writer replays the journal
            there = [one["version"] for one in store.json("log", "m")["versions"]]
            assert there == [1] or UNKNOWN in said.stderr, f"{call} {number}: {said.stderr}"
            shutil.rmtree(path)
    assert failed > 10
