"""The pattern of weft.7 by which a server swaps its model, as it stands on the page."""
import itertools
import os
import re
import threading
import time

import pytest
from test_man_pages import rendered

from weftlib import Mount, Store, rounds, wait_until

FILES = 4
SWAPS = rounds(80, 2000)


def pattern():
    lines = rendered("weft.7").splitlines()
    begin = next(i for i, line in enumerate(lines) if re.match(r" +import json, os$", line))
    indent = re.match(" +", lines[begin])[0]
    source = [line[len(indent):] for line in
              itertools.takewhile(lambda line: not line or line.startswith(indent), lines[begin:])]
    assert len([line for line in source if line]) <= 10
    return "\n".join(source)


@pytest.fixture
def mount(tmp_path):
    """With two versions of m, each of several files that say which it is; the tag prod is at version 1."""
    store = Store(tmp_path / "store")
    for number in (1, 2):
        directory = tmp_path / f"version{number}"
        directory.mkdir()
        for file in range(FILES):
            (directory / f"part{file}.bin").write_bytes(str(number).encode() * 1000)
        store.publish(directory, name="m")
    store.weft("tag", "m@1", "prod")
    with Mount(store, tmp_path / "mnt") as mounted:
        yield mounted


def load(path):
    """The versions that its files are of, each opened by itself."""
    found = set()
    for name in sorted(os.listdir(path)):
        with open(os.path.join(path, name), "rb") as file:
            found.add(file.read()[:1].decode())
    return found


@pytest.mark.long
def test_swaps(mount):
    """Four loaders follow a tag that moves all the while: each load is one version, and the last is the present one."""
    names = {}
    exec(pattern(), names)  # pylint: disable=exec-used
    loads, over = [[] for _ in range(4)], threading.Event()

    def follow(mine):
        for path in names["versions"]("m", "prod", mount.path):
            mine.append((os.path.basename(path), load(path)))
            if over.is_set():
                return

    threads = [threading.Thread(target=follow, args=(mine,), daemon=True) for mine in loads]
    for thread in threads:
        thread.start()
    wait_until(lambda: all(loads))
    for swap in range(SWAPS):
        mount.store.weft("tag", f"m@{2 - swap % 2}", "prod")
    mount.store.weft("tag", "m@2", "prod")
    wait_until(lambda: all(mine[-1][0] == "2" for mine in loads))
    over.set()
    mount.store.weft("tag", "m@1", "prod")
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert all(found == {number} for mine in loads for number, found in mine)
    assert all(len(mine) > 2 for mine in loads)


def mixes(mount, path, seconds=5):
    """Whether some load by this path, while the tag moves, has files of two versions."""
    over = threading.Event()

    def swap():
        for number in itertools.cycle([2, 1]):
            mount.store.weft("tag", f"m@{number}", "prod")
            if over.is_set():
                return

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if len(load(path())) > 1:
                return True
        return False
    finally:
        over.set()
        swapper.join()


def test_what_a_load_sees(mount):
    """By a link, files of two versions; by what the link leads to, or from a directory that is entered once, one."""
    link = mount.path / "models/m/prod"
    assert mixes(mount, lambda: link, seconds=60)
    assert not mixes(mount, lambda: os.path.realpath(link), seconds=2)
    fd = os.open(link, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert not mixes(mount, lambda: f"/proc/self/fd/{fd}", seconds=2)
    finally:
        os.close(fd)


def test_a_removed_version_is_not_mixed(mount):
    """What is open reads on; what is not fails."""
    path = os.path.realpath(mount.path / "models/m/2")
    with open(f"{path}/part0.bin", "rb") as file:
        mount.store.weft("rm", "--force", "m@2")
        wait_until(lambda: not os.path.exists(path))
        assert file.read() == b"2" * 1000
        with pytest.raises(FileNotFoundError):
            load(path)
