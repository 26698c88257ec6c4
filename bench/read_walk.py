"""Part `walk`: names and attributes of a model's published files and of its layers, against copies of the same trees on
the store's file system. The models: 1,000 published files, and 1,000 tensors in one file.

Cold is after dropping the kernel's caches; the mount is then a fresh one, too."""

import pathlib
import shutil
import statistics
import subprocess
import time

import measure
from measure import Pairs, interval
from read_set import unmount

COUNT = 1000  # of files, and of tensors
WARM_MAX, COLD_MAX = 1.3, 2.0
HEAD = ("| what | weft | peer | weft ÷ peer: median (95 % interval) | goal | met | pairs |\n"
        "|---|---|---|---|---|---|---|")


def row(pairs, name, goal=None):
    ratios = [ours / peer for ours, peer in zip(pairs.ours, pairs.peers)]
    low, high = interval(ratios)
    median = statistics.median(ratios)
    met = "| |" if goal is None else f"| ≤ {goal:.1f} | {'yes' if median <= goal else 'NO'}"
    return (f"| {name} | {1000 * statistics.median(pairs.ours):.1f} ms | {1000 * statistics.median(pairs.peers):.1f} ms "
            f"| {median:.2f} ({low:.2f} to {high:.2f}) {met} | {len(ratios)} |")


class Walk:
    """Ways to look at everything below a directory."""

    def __init__(self, top):
        self.top = pathlib.Path(top)
        self.files = sorted(path.relative_to(top) for path in self.top.rglob("*"))

    def ways(self):
        return {"find -type f": ["find", ".", "-type", "f"], "ls -lR": ["ls", "-lR", "."],
                f"stat of all {len(self.files)} entries": ["xargs", "-0", "stat", "-c", "%s %h %b"]}

    def seconds(self, command):
        names = b"\0".join(bytes(path) for path in self.files) if command[0] == "xargs" else b""
        begin = time.perf_counter()
        subprocess.run(command, cwd=self.top, input=names, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin


class Mounted:
    """The mount, taken away and made anew for each cold walk."""

    def __init__(self, bench, store, where, *options):
        self.bench, self.store, self.where, self.options = bench, store, where, options

    def mount(self):
        self.where.mkdir(exist_ok=True)
        words = ["-o", ",".join(self.options)] if self.options else []
        measure.run(self.bench.build / "fuse/mount.weft", self.store, self.where, *words)

    def again(self):
        unmount(self.where)
        self.mount()

    def version(self, tree, model):
        return self.where / tree / model / "1"


def cold(walk, command, before=None):
    if before:
        before()
    measure.drop_caches()
    return walk.seconds(command)


def warm_rows(bench, ours, plain, label, goal):
    for name, command in plain.ways().items():
        pairs = Pairs.alternate(bench.pairs, lambda: ours.seconds(command), lambda: plain.seconds(command), warm_up=2)
        print(row(pairs, f"{name}, {label}", goal), flush=True)


def cold_rows(bench, mounted, ours, plain):
    for name, command in plain.ways().items():
        pairs = Pairs.alternate(bench.pairs, lambda: cold(ours, command, mounted.again), lambda: cold(plain, command))
        print(row(pairs, f"{name}, cold", COLD_MAX), flush=True)


def write_files(bench):
    """A model of COUNT small files in directories of ten."""
    top = bench.dir / "files"
    for number in range(COUNT):
        path = top / f"part{number // 10}" / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"number": {number}}}\n' * 50)
    return top


def extracted(bench, version, tree):
    """A copy of a mounted directory on the store's file system."""
    copy = bench.dir / f"extracted-{tree}"
    measure.run("cp", "-a", version, copy)
    bench.undo.callback(shutil.rmtree, copy)
    return copy


def walk_tree(bench, mounted, tree, model):
    version = mounted.version(tree, model)
    ours, plain = Walk(version), Walk(extracted(bench, version, tree))
    if ours.files != plain.files:
        raise RuntimeError("the copy has other names than the version")
    print(f"\n{tree}/{model}/1, {len(ours.files)} names; peer: a copy on the store's file system\n\n{HEAD}")
    warm_rows(bench, ours, plain, "warm", WARM_MAX)
    cold_rows(bench, mounted, ours, plain)
    mounted.options = ("xattr",)
    mounted.again()
    warm_rows(bench, ours, plain, "warm, -o xattr", None)
    mounted.options = ()
    mounted.again()


def run(bench):
    store = bench.store()
    bench.publish(store, write_files(bench), "files")
    bench.publish(store, bench.model("walked", COUNT, 16 << 20), "tensors")
    mounted = Mounted(bench, store, bench.dir / "mnt")
    mounted.mount()
    bench.undo.callback(unmount, mounted.where)
    for tree, model in (("models", "files"), ("layers", "tensors")):
        walk_tree(bench, mounted, tree, model)
