"""Nodes that have a model at the origin alone, and the origin is a directory that gives 25 MB/s."""

import contextlib
import os
import pathlib
import signal

from net_nodes import PATIENCE, Cluster, wait_until

from nodes import fuse_directory  # by the path that net_nodes sets

ORIGIN_SPEED = 25_000_000  # bytes/s, as much as a link of 200 Mbit/s


class SlowOrigin:
    """A directory that a FUSE server shows at ORIGIN_SPEED, to all of its readers together."""
    name = "the origin's server"

    def __init__(self, pid, real):
        self.pid, self.real = pid, real  # of the server; the directory behind it

    def sent(self):
        """Bytes that the server has read for others."""
        lines = pathlib.Path(f"/proc/{self.pid}/io").read_text().splitlines()
        return int(dict(line.split(": ") for line in lines)["rchar"])


@contextlib.contextmanager
def slow_directory(real, where):
    """`real` at ORIGIN_SPEED. The server is killed before the unmount: a program in another mount namespace can hold a copy
    of the mount, and the server then outlives the unmount."""
    with fuse_directory(real, where, f"--read-rate={ORIGIN_SPEED}") as pid:
        try:
            yield SlowOrigin(pid, real)
        finally:
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def nodes_with_origin(where, count, *options):
    """(`count` nodes, their SlowOrigin). `options` are those of their daemons."""
    real, slow = where / "real", where / "origin"
    real.mkdir()
    with slow_directory(real, slow) as origin, Cluster(where, slow, peers=True) as cluster:
        yield [cluster.node(*options) for _ in range(count)], origin


def publish_at_origin(nodes, origin, source):
    """Publishes the directory as "model" on one more node, which then ends. That node writes past the FUSE server, whose page
    cache stays empty."""
    cluster = nodes[0].cluster
    cluster.origin = origin.real
    publisher = cluster.node(path=cluster.directory / "publisher")
    cluster.publish(publisher, source, "model")
    publisher.daemon.stop()
    wait_until(lambda: all(len(node.daemon.ask("peers")["peers"]) == len(nodes) for node in nodes), seconds_max=PATIENCE,
               pause=0.1)
