"""Part `small` of the net bench: a tree of many small files of a peer, read file by file through a mount, against cp -r of
the same tree from a mounted sshfs."""

import random
import subprocess
import time

from measure import PAIR_HEAD, Pairs, drop_caches
from net_nodes import Account, Cluster, cold_mount, publish
from net_others import Sshd, sshfs

from daemonlib import metrics  # by the path that net_nodes sets

FILES, IN_A_DIRECTORY = 20_000, 500
BYTES_MIN, BYTES_MAX = 200, 3_000


def write_tree(directory):
    draw = random.Random("small")
    for number in range(FILES):
        path = directory / f"{number // IN_A_DIRECTORY:03}/{number:05}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw.randbytes(draw.randrange(BYTES_MIN, BYTES_MAX)))
    return directory


def copied(source, target):
    """Seconds of `cp -r`."""
    begin = time.perf_counter()
    subprocess.run(["cp", "-r", source, target], check=True)
    took = time.perf_counter() - begin
    subprocess.run(["rm", "-rf", target], check=True)
    return took


def requests(node):
    """Reads of peers that succeeded or failed."""
    return metrics(node.daemon.ask("metrics")["text"])['weft_fetches_total{source="peer"}']


class Copier:
    """Copies the published tree, of which the node has nothing."""

    def __init__(self, holder, node):
        self.holder, self.node, self.account, self.requests = holder, node, Account(), []

    def __call__(self):
        with cold_mount(self.node, moves=FILES * BYTES_MIN) as mount:
            before = requests(self.node)
            with self.account.measured_mount(mount, self.holder, self.node):
                took = copied(mount.version("small", 1), self.node.directory / "copy")
            self.requests.append(requests(self.node) - before)
        return took


def run(_build, directory, args):
    tree = write_tree(directory / "tree")
    print(f"{FILES} files of {BYTES_MIN} to {BYTES_MAX} bytes, cp -r, default mount options, links not shaped; peer: the same "
          f"from a mounted sshfs\n\n{PAIR_HEAD}")
    (directory / "nodes").mkdir()
    with Cluster(directory / "nodes", peers=True) as cluster:
        one, two = (cluster.node("--provider", args.provider) for _ in range(2))
        publish(cluster, one, tree, "small")
        ours = Copier(one, two)
        with Sshd(one.host, directory) as sshd:
            def theirs():
                drop_caches()
                with sshfs(sshd, two.host, tree, directory / "sshfs") as mount:
                    took = copied(mount, directory / "copy")
                (directory / "sshfs").rmdir()
                return took
            print(Pairs.alternate(args.pairs, ours, theirs).row("peer: cp -r from sshfs"), flush=True)
    print(f"\n- requests to the peer: {max(ours.requests):.0f} at most; {ours.account.text()}")
