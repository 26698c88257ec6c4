"""Part `write` of scripts/bench publish: writing a draft into new/ against the store's own file system, and the rename that
publishes it against one pass that hashes the same bytes. On a tmpfs and on a disk. As root, on an idle machine."""

import concurrent.futures
import contextlib
import hashlib
import json
import mmap
import os
import pathlib
import shutil
import statistics
import tempfile
import time

import measure
from measure import PAIR_HEAD, Pairs, median_text, settle, touch_memory

MIB = 1 << 20
PIECE = 16 * MIB
CHUNK = MIB  # what a blob's chunks are hashed by


def fill(size):
    """Bytes that no compression, and no other draft, shares."""
    return os.urandom(min(size, PIECE))


def write_seconds(path, size, piece):
    begin = time.perf_counter()
    with open(path, "wb", buffering=0) as file:
        for _ in range(size // len(piece)):
            file.write(piece)
    return time.perf_counter() - begin


def map_seconds(path, size, piece):
    begin = time.perf_counter()
    with open(path, "w+b", buffering=0) as file:
        file.truncate(size)
        with mmap.mmap(file.fileno(), size) as mapped:
            for at in range(0, size, len(piece)):
                mapped[at:at + len(piece)] = piece
    return time.perf_counter() - begin


WAYS = {"write(2)": write_seconds, "a shared mapping": map_seconds}


def hash_seconds(path):
    """SHA-256 of each chunk, by all cores, as a blob's name needs it."""
    size = path.stat().st_size
    with open(path, "rb") as file, mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as mapped:
        view = memoryview(mapped)

        def digest(at):
            return hashlib.sha256(view[at:at + CHUNK]).digest()

        begin = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for _ in pool.map(digest, range(0, size, CHUNK), chunksize=16):
                pass
        took = time.perf_counter() - begin
        view.release()
    return took


class Area:
    """A store on one file system, and its mount."""

    def __init__(self, name, directory, build, undo):
        self.name, self.directory = name, pathlib.Path(directory)
        self.weft = build / "src/cli/weft"
        self.store, self.mount = self.directory / "store", self.directory / "mnt"
        measure.run(self.weft, "--store", self.store, "init")
        self.mount.mkdir()
        measure.run(build / "fuse/mount.weft", self.store, self.mount, "-o", "publish",
            env={"PATH": f"{self.weft.parent}:/usr/sbin:/usr/bin:/sbin:/bin"})
        undo.callback(measure.run, "umount", self.mount)
        self.draft, self.native = self.mount / "new/m", self.directory / "native"
        self.native.mkdir()
        self.requests = 0

    def writes(self):
        """WRITE requests that the server has got: none of what the kernel writes by itself."""
        return json.loads((self.mount / ".weft/status").read_text())["mount"]["writes"]

    def ours(self, way, size):
        shutil.rmtree(self.draft, ignore_errors=True)
        self.draft.mkdir()
        piece = fill(size)
        settle()
        before = self.writes()
        took = way(self.draft / "x", size, piece)
        self.requests += self.writes() - before
        return took

    def theirs(self, way, size):
        path = self.native / "x"
        path.unlink(missing_ok=True)
        piece = fill(size)
        settle()
        took = way(path, size, piece)
        path.unlink()
        return took

    def rename_and_hash(self, size):
        """Of new bytes: the file becomes the pack. The hash is over the published file, whose pages are warm as well."""
        shutil.rmtree(self.draft, ignore_errors=True)
        self.draft.mkdir()
        with open(self.draft / "x", "wb") as file:
            for _ in range(size // CHUNK):
                file.write(os.urandom(CHUNK))
        settle()
        begin = time.perf_counter()
        os.rename(self.draft, f"{self.draft}@")
        took = time.perf_counter() - begin
        return took, hash_seconds(self.mount / "models/m/latest/x")


def measure_area(area, pairs, size):
    print(f"\n{area.name}, {size // MIB} MiB, mount options publish\n\n{PAIR_HEAD}")
    goal = 0.95 if area.name == "tmpfs" else None
    for name, way in WAYS.items():
        touch_memory(2 * size, area.directory)
        both = Pairs.alternate(pairs, lambda way=way: area.ours(way, size), lambda way=way: area.theirs(way, size), warm_up=1)
        print(both.row(f"{name} into new/, against the file system itself", goal), flush=True)
    touch_memory(2 * size, area.directory)
    both = Pairs()
    for _ in range(pairs):
        both.add(*area.rename_and_hash(size))
    print(both.row("the rename, against one pass that hashes", None), flush=True)
    ratios = [ours / theirs for ours, theirs in zip(both.ours, both.peers)]
    print(f"\nrename ÷ hash pass: {statistics.median(ratios):.2f}; {median_text(both.ours, 's')[0]}. "
          f"WRITE requests of the server in all runs: {area.requests}.")


def run(build, directory, args):
    with contextlib.ExitStack() as undo:
        for name, parent in ("tmpfs", "/dev/shm"), ("disk", directory):
            place = undo.enter_context(tempfile.TemporaryDirectory(prefix="weft-bench.", dir=parent))
            with contextlib.ExitStack() as mounts:
                measure_area(Area(name, place, build, mounts), args.pairs, args.megabytes * MIB)
