"""Part `flush` of the publish bench: small publishes while a large version goes from memory to the disk, against the same
with nothing to write. It is a best case: the store alone is on the disk, and etcd, the origin and the published files lie in
memory."""

import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy

from measure import p99
from net_nodes import MIB, Cluster, wait_until
from weftlib import WEFT, environment

SMALL = 4096
LARGE = 3  # times --megabytes, so that the flush takes a while
FACTOR = 2.0  # of p99, with a flush ÷ without


def small_publishes(node, source, go_on):
    """Seconds of each, one after the other, as long as `go_on()` says so."""
    times = []
    while go_on():
        (source / "x.bin").write_bytes(numpy.random.bytes(SMALL))
        begin = time.perf_counter()
        node.store.publish(source, name="small", durability="memory")
        times.append(time.perf_counter() - begin)
    return times


def for_seconds(seconds):
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


def run(_build, directory, args):
    with tempfile.TemporaryDirectory(prefix="weft-bench.", dir="/dev/shm") as memory:
        memory = pathlib.Path(memory)
        with Cluster(directory, origin=memory / "origin", etcd_directory=memory / "etcd") as cluster:
            measure(cluster.node(), memory, args)


def measure(node, memory, args):
    small, large = memory / "small", memory / "large"
    size = LARGE * args.megabytes * MIB
    small.mkdir()
    large.mkdir()
    small_publishes(node, small, for_seconds(1))
    alone, beside = [], []
    for _ in range(args.pairs):
        wait_until(lambda: node.daemon.status()["memory"]["versions"] == 0, seconds_max=120, pause=0.05)
        alone += small_publishes(node, small, for_seconds(2))
        with open(large / "x.bin", "wb") as file:
            for _ in range(LARGE):
                file.write(numpy.random.bytes(size // LARGE))
        node.store.publish(large, name="large", durability="memory")
        with subprocess.Popen([WEFT, "--store", node.store.path, "wait", "--durable", "large"],
                              env=environment(), stdout=subprocess.DEVNULL) as flush:
            beside += small_publishes(node, small, lambda: flush.poll() is None)
        node.store.weft("rm", "--all", "large")
        node.store.weft("gc", "--quiet")
    ratio = p99(beside) / p99(alone)
    print(f"Best case: the origin and etcd lie in memory. A publish of {SMALL} bytes, durability memory, with the command that "
          f"asks for it. p99 alone {p99(alone) * 1000:.1f} ms "
          f"({len(alone)} publishes), while {size // MIB} MB of another version go to the disk {p99(beside) * 1000:.1f} ms "
          f"({len(beside)}): {ratio:.2f} times; the goal is {FACTOR}: {'yes' if ratio <= FACTOR else 'NO'}. Medians "
          f"{statistics.median(alone) * 1000:.1f} and {statistics.median(beside) * 1000:.1f} ms.\n", flush=True)
