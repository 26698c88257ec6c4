"""What the parts of scripts/bench net share: nodes that read from each other, and the raw loop between the same hosts."""

import contextlib
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

from measure import drop_caches, seconds

TESTS = pathlib.Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "cluster")]
from clusterlib import Wire  # noqa: E402
from nodes import Cluster  # noqa: E402
from weftlib import WEFT, random_tensors, run, wait_until, write_model  # noqa: E402

FILE = "model.safetensors"
MIB = 1 << 20
PATIENCE = 60


def publish(cluster, node, path, name):
    """Published there, and known to every node."""
    node.store.publish(path, name=name)
    spec = f"{name}@1"
    for other in cluster.nodes:
        wait_until(lambda other=other: other.knows(spec), seconds_max=PATIENCE, pause=0.01)
    return spec


def forget(node):
    """The node has no bytes of others any more, nor has the kernel; who can give them has them in memory. Nothing is on
    its way to a disk: that would be the next reader's loss."""
    wait_until(lambda: node.daemon.status()["fetched"]["transfers"] == 0, seconds_max=PATIENCE, pause=0.05)
    node.store.weft("evict", "--all")
    os.sync()
    drop_caches()
    others = [other.directory / "store" for other in node.cluster.nodes if other is not node]
    for giver in [*others, *filter(None, [node.cluster.origin])]:
        for path in giver.rglob("*.pack"):
            if path.stat().st_size >= MIB:
                warm(path)


@contextlib.contextmanager
def cold_mount(node, options=None, moves=0):
    """A mount of a node that has no bytes of others. So many have to come before it ends: else nothing was measured."""
    forget(node)
    before = node.fetched("peer") + node.fetched("origin")
    with node.mounted(options) as mount:
        yield mount
    wait_until(lambda: node.daemon.status()["fetched"]["transfers"] == 0, seconds_max=PATIENCE, pause=0.05)
    os.sync()
    moved = node.fetched("peer") + node.fetched("origin") - before
    if moved < moves:
        raise RuntimeError(f"expected {moves} bytes to come, got {moved}: the node had them")


def warm(path):
    run(["cat", path], stdout=subprocess.DEVNULL)


def cat(path):
    return seconds("sh", "-c", 'exec cat "$1" >/dev/null', "sh", path)


class Cores:
    """CPU seconds of processes, of the whole machine, over a piece of work."""

    def __init__(self):
        self.busy = []

    @staticmethod
    def used():
        fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        ticks = [int(field) for field in fields]
        idle = ticks[3] + ticks[4]
        return sum(ticks), idle

    @contextlib.contextmanager
    def measured(self):
        total, idle = self.used()
        yield
        total_after, idle_after = self.used()
        self.busy.append(1 - (idle_after - idle) / max(1, total_after - total))


def processes():
    """Process id -> (its parent's, CPU seconds of its own and of its children that have ended)."""
    out = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                out[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return out


def tree_seconds(roots):
    """CPU seconds of these processes and of all below them."""
    known = processes()
    left, seconds_used = list(roots), 0.0
    while left:
        pid = left.pop()
        seconds_used += known.get(pid, (0, 0.0))[1]
        left += [child for child, (parent, _) in known.items() if parent == pid]
    return seconds_used


def own_seconds():
    """CPU seconds of this process and of those that it has run to their end."""
    return sum(used.ru_utime + used.ru_stime
               for used in (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


class Account:
    """CPU seconds of one side of a comparison, by who took them, over each piece of work: their mean, as the kernel counts
    in steps of 10 ms. And how busy the machine was: what it does for the links in softirqs is whoever's it interrupts."""

    def __init__(self):
        self.rows, self.cores = [], Cores()

    @contextlib.contextmanager
    def measured(self, reader=True, **roots):
        """Of each name the processes and all below them; of `reader`, what this process and those that it runs take."""
        before, own = {name: tree_seconds(pids) for name, pids in roots.items()}, own_seconds()
        with self.cores.measured():
            yield
        took = {"reader": own_seconds() - own} if reader else {}
        self.rows.append({name: tree_seconds(pids) - before[name] for name, pids in roots.items()} | took)

    def measured_mount(self, mount, *nodes):
        """Of the daemons of these nodes, the mount, and whoever reads through it."""
        return self.measured(mount=mount.server_pids(),
                             **{f"weftd of {node.directory.name}": [node.daemon.pid] for node in nodes})

    def text(self):
        means = {name: statistics.mean(row[name] for row in self.rows) for name in self.rows[0]}
        parts = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
        busy = statistics.median(self.cores.busy)
        return f"{sum(means.values()):.3f} s of a core ({parts}); the machine was busy {busy:.0%}"


class Raw:
    """The raw loop: `holder` serves a file, `reader` reads it; hosts of a network. A context."""

    def __init__(self, build, provider, holder, reader, path):
        self.program, self.provider = build / "bench/weft_bench_net_raw", provider
        self.holder, self.reader, self.path = holder, reader, path

    def __enter__(self):
        self.server = subprocess.Popen(
            [*self.holder.inside, self.program, "serve", self.provider, self.holder.address, self.path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.where = self.server.stdout.readline().split()
        if len(self.where) != 3:
            self.__exit__()
            raise RuntimeError(f"the raw loop does not serve over {self.provider}")
        return self

    def __exit__(self, *exception):
        self.server.stdin.close()
        try:
            self.server.wait(5)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()

    def read(self, into, block, depth, size):
        """(seconds, CPU seconds of the reader, microseconds of the median block)."""
        out = run([*self.reader.inside, self.program, "read", self.provider, self.reader.address, into, block, depth,
                   size, *self.where]).stdout
        return tuple(float(word) for word in out.split())


def answers(host, port):
    """Whether somebody listens there."""
    script = f"import socket; socket.create_connection(('{host.address}', {port}), 1)"
    return subprocess.run([*host.inside, "python3", "-c", script], stderr=subprocess.DEVNULL, check=False).returncode == 0


def peer_reads(node):
    """Bytes that the node has read from windows of others since its daemon began, kept or not."""
    return node.exchange()["read_bytes"]


def run_each(parts, directory, args):
    """part(its own new directory, args) for each."""
    for number, part in enumerate(parts):
        where = directory / str(number)
        where.mkdir()
        part(where, args)


__all__ = ["Account", "Cluster", "Cores", "FILE", "MIB", "PATIENCE", "Raw", "WEFT", "Wire", "answers", "cat", "cold_mount",
           "forget", "peer_reads", "publish", "random_tensors", "run", "run_each",
           "time", "tree_seconds", "wait_until", "warm", "write_model"]
