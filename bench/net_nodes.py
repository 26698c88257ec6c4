"""What the parts of scripts/bench net share: nodes that read from each other, and the raw loop between the same hosts."""

import contextlib
import json
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
from clusterlib import PROVIDERS, Trunk, Wire  # noqa: E402
from daemonlib import WEFTD  # noqa: E402
from nodes import Cluster  # noqa: E402
from user_mount import UserMount, options_text  # noqa: E402
from weftlib import WEFT, random_tensors, run, safetensors_bytes, wait_until, write_model  # noqa: E402

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


def mounted(node, options=None):
    """A mount of a node, with default options if none is given. A context."""
    return UserMount(node.store, node.directory / "mnt", options)


def shape(nodes, mbit):
    """Bounds each node's link to so many Mbit/s each way. A fast link needs a larger burst to reach its rate."""
    for node in nodes:
        node.host.shape(f"{mbit}mbit", burst="2m" if mbit >= 1000 else "256k")


def arrived(node):
    """Bytes that the node has fetched since its daemon started."""
    return node.fetched("peer") + node.fetched("origin")


def wait_idle(*nodes, seconds_max=PATIENCE):
    """Waits until no node fetches anything."""
    for node in nodes:
        wait_until(lambda node=node: node.daemon.status()["fetched"]["transfers"] == 0, seconds_max=seconds_max, pause=0.05)


def forget(*nodes, seconds_max=PATIENCE):
    """These nodes lose all fetched bytes, also in the page cache. The nodes and the origin that serve them have their packs
    in memory. No write-back is left, because it would slow down the next reader."""
    wait_idle(*nodes, seconds_max=seconds_max)
    for node in nodes:
        node.store.weft("evict", "--all")
    os.sync()
    drop_caches()
    cluster = nodes[0].cluster
    servers = [other.directory / "store" for other in cluster.nodes if other not in nodes]
    for server in [*servers, *filter(None, [cluster.origin])]:
        for path in server.rglob("*.pack"):
            if path.stat().st_size >= MIB:
                warm(path)


@contextlib.contextmanager
def cold_mounts(nodes, options=None, moves=0):
    """Mounts of nodes that have no bytes of others. So many bytes have to arrive at each node before its mount ends, because
    otherwise the bench has measured nothing."""
    forget(*nodes)
    before = [arrived(node) for node in nodes]
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(mounted(node, options)) for node in nodes]
    wait_idle(*nodes)
    os.sync()
    for node, had in zip(nodes, before):
        if arrived(node) - had < moves:
            raise RuntimeError(f"expected {moves} bytes to arrive, got {arrived(node) - had}: the node had them")


@contextlib.contextmanager
def cold_mount(node, options=None, moves=0):
    """The same with one node."""
    with cold_mounts([node], options, moves) as (mount,):
        yield mount


def warm(path):
    run(["cat", path], stdout=subprocess.DEVNULL)


def cat(*paths):
    """Seconds of reading the files one after the other."""
    return seconds("sh", "-c", 'exec cat "$@" >/dev/null', "sh", *paths)


def containers(directory):
    """The safetensors files of a version, in order."""
    return sorted(directory.glob("*.safetensors"))


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


def write_shards(directory, tensors, count):
    """A model directory: config.json, `count` safetensors shards, and their index as transformers writes it."""
    directory.mkdir(parents=True)
    (directory / "config.json").write_text('{"model_type": "plain"}\n')
    names, weight_map = list(tensors), {}
    for i in range(count):
        shard = f"model-{i + 1:05}-of-{count:05}.safetensors"
        part = names[i * len(names) // count:(i + 1) * len(names) // count]
        (directory / shard).write_bytes(safetensors_bytes({name: tensors[name] for name in part}))
        weight_map |= dict.fromkeys(part, shard)
    index = {"metadata": {"total_size": sum(len(data) for _, _, data in tensors.values())}, "weight_map": weight_map}
    (directory / f"{FILE}.index.json").write_text(json.dumps(index, indent=2) + "\n")
    return directory


def run_each(parts, directory, args):
    """part(its own new directory, args) for each."""
    for number, part in enumerate(parts):
        where = directory / str(number)
        where.mkdir()
        part(where, args)


__all__ = ["Account", "Cluster", "Cores", "FILE", "MIB", "PATIENCE", "Raw", "Trunk", "WEFT", "WEFTD", "Wire", "answers",
           "arrived", "cat", "cold_mount", "cold_mounts", "containers", "forget", "mounted", "options_text", "peer_reads",
           "publish", "random_tensors", "run", "run_each", "shape", "time", "tree_seconds", "wait_idle", "wait_until", "warm",
           "write_model", "write_shards"]
