"""Part `members` of the bench of data sets: members of a tar, warm, at random: as files, and by index.npy and pread, against
the same files on the store's file system."""

import os
import pathlib
import random
import sys
import tarfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import numpy  # noqa: E402

from measure import PAIR_HEAD, Pairs  # noqa: E402
from weftlib import Mount, Store  # noqa: E402

MEMBERS, BYTES, READ = 2000, 110_000, 4000


def run(_build, directory, args):
    source, native = directory / "source", directory / "native"
    source.mkdir()
    native.mkdir()
    with tarfile.open(source / "train.tar", "w") as tar:
        for number in range(MEMBERS):
            (native / f"{number:05}").write_bytes(os.urandom(BYTES))
            tar.add(native / f"{number:05}", f"{number:05}")
    store = Store(directory / "store")
    store.weft("import", "--dataset", source, "--name", "set")
    numbers = random.Random(1).choices(range(MEMBERS), k=READ)
    with Mount(store, directory / "mnt") as mount:
        records = mount.path / "records/set/1/train.tar"
        rows = numpy.load(records / "index.npy").tolist()
        container = os.open(mount.path / "datasets/set/1/train.tar", os.O_RDONLY)

        def files(place):
            begin = time.perf_counter()
            for number in numbers:
                fd = os.open(place / f"{number:05}", os.O_RDONLY)
                os.read(fd, BYTES)
                os.close(fd)
            return time.perf_counter() - begin

        def by_index():
            begin = time.perf_counter()
            for number in numbers:
                offset, length = rows[number]
                os.pread(container, length, offset)
            return time.perf_counter() - begin

        print(f"{MEMBERS} members of {BYTES} bytes, {READ} reads; peer: the members as files of the file system\n\n{PAIR_HEAD}")
        print(Pairs.alternate(args.pairs, lambda: files(records / "files"), lambda: files(native), warm_up=1).row(
            "as files, warm", 0.4), flush=True)
        print(Pairs.alternate(args.pairs, by_index, lambda: files(native), warm_up=1).row("by index.npy, warm", 1.5),
              flush=True)
        os.close(container)
    print(flush=True)
