"""Part `cold` of the cluster bench: a file that only the origin has, read through a mount; against `cat` of the native
file on that origin. Every byte is verified by SHA-256 on the way, and kept in the node's store."""

import os
import pathlib
import statistics
import sys
import tempfile
import time

from measure import PAIR_HEAD, Pairs, drop_caches, seconds, touch_memory

TESTS = pathlib.Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "cluster")]
from nodes import Cluster  # noqa: E402
from weftlib import random_tensors, write_model  # noqa: E402

FILE = "model.safetensors"
TICKS = os.sysconf("SC_CLK_TCK")


def core_seconds(pids):
    """User and system time of processes, all their threads."""
    total = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def cat(path):
    return seconds("sh", "-c", 'exec cat "$1" >/dev/null', "sh", path)


class Cold:
    def __init__(self, node, mount, native):
        self.node, self.mount, self.native = node, mount, native
        self.cores = []

    def ours(self):
        self.node.store.weft("evict", "--all")
        self.memory_at_hand()
        pids = [self.node.daemon.pid, *self.mount.server_pids()]
        before = core_seconds(pids)
        took = cat(self.mount.version("cold", 1) / FILE)
        self.cores.append(core_seconds(pids) - before)
        return took

    def peer(self):
        self.memory_at_hand()
        return cat(self.native)

    def memory_at_hand(self):
        drop_caches()
        touch_memory(2 * self.native.stat().st_size, self.native.parent)


def read_at(cluster, directory, place, args, native):
    node = cluster.node(path=directory)
    while not node.knows("cold@1"):
        time.sleep(0.01)
    for policy in ("stream", "fetch"):
        with node.mounted(f"cold={policy}") as mount:
            cold = Cold(node, mount, native)
            measured = Pairs.alternate(args.pairs, cold.ours, cold.peer, warm_up=1)
            print(measured.row(f"cold={policy}, store on {place}", 0.8), flush=True)
            gib = native.stat().st_size / (1 << 30)
            yield (f"cold={policy}, store on {place}: {statistics.median(cold.cores) / gib:.2f} s of a core for each "
                   "GiB, SHA-256 included")


def run(_build, directory, args):
    model = write_model(directory / "model", random_tensors(16, args.megabytes // 16 << 20, seed="cold"))
    with Cluster(directory) as cluster, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        cluster.publish(cluster.node(), model, "cold")
        native = cluster.origin / "native.safetensors"
        native.write_bytes((model / FILE).read_bytes())
        print("Cold: the origin alone has the bytes; peer: `cat` of the native file on the origin\n\n" + PAIR_HEAD)
        notes = [*read_at(cluster, directory / "reader", "the same disk", args, native),
                 *read_at(cluster, pathlib.Path(memory) / "reader", "tmpfs", args, native)]
    print("\n" + "\n".join(f"- {note}" for note in notes))
