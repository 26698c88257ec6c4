"""How long questions about lineage take that need no data."""

import contextlib
import os
import pathlib
import time

import measure

GOAL_MS = 10
REPEATS = 21


@contextlib.contextmanager
def mounted(build, store, where):
    where.mkdir(exist_ok=True)
    measure.run(build / "fuse/mount.weft", store, where)
    try:
        yield where
    finally:
        measure.run("umount", where)


def milliseconds(path):
    """From open to the last byte, as cat does it."""
    begin = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        read = 0
        while chunk := file.read(1 << 17):
            read += len(chunk)
    assert read == size
    return (time.perf_counter() - begin) * 1000


def row(what, values):
    text, median = measure.median_text(values, "ms")
    print(f"| {what} | {text} | ≤ {GOAL_MS} ms | {'yes' if median <= GOAL_MS else 'NO'} | {len(values)} |")


def read_lineage(build, area, depth):
    store = area / "chain"
    measure.run(build / "bench/weft_bench_lineage_tree", "chain", store, depth)
    file = pathlib.Path("lineage/chain") / str(depth) / "ancestors"
    cold = []
    for _ in range(REPEATS):
        with mounted(build, store, area / "mnt") as mnt:
            cold.append(milliseconds(mnt / file))
    with mounted(build, store, area / "mnt") as mnt:
        lines = (mnt / file).read_text().count("\n")
        assert lines == depth, lines
        warm = [milliseconds(mnt / file) for _ in range(REPEATS)]
        cat = [measure.seconds("cat", mnt / file) * 1000 for _ in range(REPEATS)]
    row(f"`cat lineage/…/ancestors`, depth {depth:,}, first read of a fresh mount", cold)
    row("the same, again (the mount rendered it before)", warm)
    row("the same, with starting cat", cat)


def diff_manifests(build, area):
    store = area / "manifests"
    measure.run(build / "bench/weft_bench_lineage_tree", "manifests", store)
    weft = build / "src/cli/weft"
    out = measure.run(weft, "--store", store, "diff", "big@1", "big@2")
    assert out.count("\n~ ") == 30 + 1 and out.count("\n= ") == 270, out[:400]  # and the file
    values = [measure.seconds(weft, "--store", store, "diff", "big@1", "big@2") * 1000 for _ in range(REPEATS)]
    row("`weft diff`, 300 tensors, 7.0 billion parameters, 30 changed, with starting weft", values)


def run(build, directory, args):
    print("\n| what | median (95 % interval) | goal | met | runs |\n|---|---|---|---|---|")
    read_lineage(build, directory, 100 if args.quick else 1000)
    diff_manifests(build, directory)
