"""Part `members` of the bench of data sets: members of several tars, warm, at random: as files, and by index.npy and pread,
against the same files on the store's file system. The mount has default options."""

import contextlib
import os
import pathlib
import random
import sys
import tarfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import numpy  # noqa: E402

from measure import PAIR_HEAD, Pairs  # noqa: E402
from user_mount import UserMount  # noqa: E402
from weftlib import Store  # noqa: E402

SHARDS, MEMBERS, BYTES, READ = 8, 250, 110_000, 4000


def write(source, native):
    """The tars, and their members as files."""
    source.mkdir()
    for shard in range(SHARDS):
        files = native / f"{shard:02}.tar"
        files.mkdir(parents=True)
        with tarfile.open(source / files.name, "w") as tar:
            for number in range(MEMBERS):
                (files / f"{number:05}").write_bytes(os.urandom(BYTES))
                tar.add(files / f"{number:05}", f"{number:05}")


class Sides:
    """Random members of the tars in a mount: (tar, number) of each read."""

    def __init__(self, mount, native):
        draw = random.Random(1)
        self.reads = [(f"{draw.randrange(SHARDS):02}.tar", draw.randrange(MEMBERS)) for _ in range(READ)]
        self.native, self.records = native, mount.path / "records/set/1"
        names = sorted(path.name for path in native.iterdir())
        self.rows = {name: numpy.load(self.records / name / "index.npy").tolist() for name in names}
        self.tars = {name: os.open(mount.path / "datasets/set/1" / name, os.O_RDONLY) for name in names}

    def close(self):
        for tar in self.tars.values():
            os.close(tar)

    def files(self, place, below):
        """Seconds of reading the members as files."""
        directories = {name: place / name / below for name in self.tars}
        begin = time.perf_counter()
        for name, number in self.reads:
            fd = os.open(directories[name] / f"{number:05}", os.O_RDONLY)
            os.read(fd, BYTES)
            os.close(fd)
        return time.perf_counter() - begin

    def ours(self):
        return self.files(self.records, "files")

    def peer(self):
        return self.files(self.native, ".")

    def by_index(self):
        """Seconds of reading them by offset and length."""
        begin = time.perf_counter()
        for name, number in self.reads:
            offset, length = self.rows[name][number]
            os.pread(self.tars[name], length, offset)
        return time.perf_counter() - begin


def run(_build, directory, args):
    write(directory / "source", directory / "native")
    store = Store(directory / "store")
    store.weft("import", "--dataset", directory / "source", "--name", "set")
    with UserMount(store, directory / "mnt") as mount, contextlib.closing(Sides(mount, directory / "native")) as sides:
        print(f"{SHARDS} tars, each with {MEMBERS} members of {BYTES} bytes, {READ} reads, default mount options; peer: the "
              f"members as files of the\nfile system\n\n{PAIR_HEAD}")
        for name, ours, goal in (("as files, warm", sides.ours, 0.4), ("by index.npy, warm", sides.by_index, 1.5)):
            print(Pairs.alternate(args.pairs, ours, sides.peer, warm_up=1).row(name, goal), flush=True)
    print(flush=True)
