"""Part `flush` of the publish bench: small publishes while a large version goes from memory to the disk, against the same
with nothing to write. etcd is on a file system of its own, in memory."""

import pathlib
import statistics
import tempfile
import time

import numpy

from net_nodes import MIB, Cluster, wait_until

SMALL = 4096
FACTOR = 2.0  # of p99, with a flush ÷ without


def small_publishes(node, source, seconds):
    """Seconds of each, one after the other, for so long."""
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        (source / "x.bin").write_bytes(numpy.random.bytes(SMALL))
        begin = time.perf_counter()
        node.store.publish(source, name="small", durability="memory")
        times.append(time.perf_counter() - begin)
    return times


def p99(times):
    return statistics.quantiles(times, n=100)[98] if len(times) > 1 else times[0]


def run(_build, directory, args):
    with tempfile.TemporaryDirectory(prefix="weft-bench.", dir="/dev/shm") as memory:
        with Cluster(directory, etcd_directory=pathlib.Path(memory) / "etcd") as cluster:
            measure(cluster.node(), directory, args)


def measure(node, directory, args):
    small, large = directory / "small", directory / "large"
    small.mkdir()
    large.mkdir()
    small_publishes(node, small, 1)
    alone, beside, flushed = [], [], 0
    for _ in range(args.pairs):
        wait_until(lambda: node.daemon.status()["memory"]["versions"] == 0, seconds_max=120, pause=0.05)
        alone += small_publishes(node, small, 2)
        (large / "x.bin").write_bytes(numpy.random.bytes(args.megabytes * MIB))
        node.store.publish(large, name="large", durability="memory")
        beside += small_publishes(node, small, 2)
        flushed += node.daemon.status()["memory"]["bytes"] < args.megabytes * MIB
        node.store.weft("rm", "--all", "large")
        node.store.weft("gc", "--quiet")
    ratio = p99(beside) / p99(alone)
    print(f"A publish of {SMALL} bytes into memory, with the command that asks for it. p99 alone {p99(alone) * 1000:.1f} ms "
          f"({len(alone)} publishes), while {args.megabytes} MB of another version go to the disk {p99(beside) * 1000:.1f} ms "
          f"({len(beside)}): {ratio:.2f} times; the goal is {FACTOR}: {'yes' if ratio <= FACTOR else 'NO'}. Medians "
          f"{statistics.median(alone) * 1000:.1f} and {statistics.median(beside) * 1000:.1f} ms. In {flushed} of {args.pairs} "
          "rounds the flush went on meanwhile.\n", flush=True)
