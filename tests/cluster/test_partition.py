"""Links that are cut, and hosts that vanish: when they are back, nodes that have nobody else read from each
other as soon as users may expect it, whatever TCP below the fabric had given up hope of."""
import concurrent.futures
import contextlib
import errno
import time

import pytest

from clusterlib import PROVIDERS, can_make_networks
from nodes import MODEL_FILE, SECONDS_MAX, Cluster
from weftlib import random_tensors, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
# TCP doubles its pauses. It sends again about 26 s after the cut, and then at 52 s: too late for SECONDS_MAX.
CUT_SECONDS = 29
TRY_PAUSE = 5
PORT = 7711


class Pair:
    """A node that will be cut off, and one that stays; either has a model that is read before the cut, one during it, and
    one after."""

    def __init__(self, cluster, lost, kept):
        self.cluster, self.lost, self.kept = cluster, lost, kept
        self.sources = {}
        for node in (lost, kept):
            for when in ("before", "during", "after"):
                self.publish(node, when)

    def name(self, node, when):
        other = self.lost if node is self.kept else self.kept
        return f"{node.directory.name}-{other.directory.name}-{when}"

    def publish(self, node, when):
        name = self.name(node, when)
        source = write_model(self.cluster.directory / name, random_tensors(3, 1 << 20, seed=name))
        self.cluster.publish(node, source, name)
        self.sources[name] = (source / MODEL_FILE).read_bytes()

    def directions(self):
        return [(self.lost, self.kept), (self.kept, self.lost)]

    def read(self, holder, mount, when):
        """What it ends with: 0, if the bytes came that were published."""
        name = self.name(holder, when)
        file = mount.version(name, 1) / MODEL_FILE
        try:
            got = file.read_bytes()
        except OSError as failure:
            assert failure.errno == errno.EIO
            return failure.errno
        assert got == self.sources[name]
        return 0

    def fails_until(self, holder, mount, end):
        """Reads while nobody can answer: each ends in time."""
        while time.monotonic() < end:
            begun = time.monotonic()
            assert self.read(holder, mount, "during") == errno.EIO
            assert time.monotonic() - begun < SECONDS_MAX
            time.sleep(max(0, min(TRY_PAUSE, end - time.monotonic())))

    def seconds_until_read(self, holder, mount, begun):
        while self.read(holder, mount, "after") != 0:
            assert time.monotonic() - begun < 20 * SECONDS_MAX
            time.sleep(0.1)
        return time.monotonic() - begun


def both_ways(pool, pairs, mounts, work):
    """Each pair, in each direction, at once: work(pair, holder, mount of the other)."""
    jobs = {(pair, holder): pool.submit(work, pair, holder, mounts[reader])
            for pair in pairs for holder, reader in pair.directions()}
    return {who: job.result() for who, job in jobs.items()}


@contextlib.contextmanager
def cut_off(hosts, how):
    with contextlib.ExitStack() as stack:
        for host in hosts:
            stack.callback(host.mend)
            how(host)
        yield


def test_links_that_are_cut(networks, tmp_path):
    with contextlib.ExitStack() as stack:
        pairs = []
        for number, provider in enumerate(PROVIDERS):
            directory = tmp_path / str(number)
            directory.mkdir()
            cluster = stack.enter_context(Cluster(directory, peers=True))
            kept, silent, down = cluster.some(3, "--provider", provider)
            cluster.network.know_each_other()
            pairs += [Pair(cluster, silent, kept), Pair(cluster, down, kept)]
        mounts = {node: stack.enter_context(node.mounted()) for pair in pairs[::2] for node in pair.cluster.nodes}
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(4 * len(PROVIDERS)))
        read = both_ways(pool, pairs, mounts, lambda pair, holder, mount: pair.read(holder, mount, "before"))
        assert set(read.values()) == {0}
        with cut_off([pair.lost.host for pair in pairs[::2]], lambda host: host.cut()), \
                cut_off([pair.lost.host for pair in pairs[1::2]], lambda host: host.down()):
            end = time.monotonic() + CUT_SECONDS
            both_ways(pool, pairs, mounts, lambda pair, holder, mount: pair.fails_until(holder, mount, end))
        begun = time.monotonic()
        took = both_ways(pool, pairs, mounts, lambda pair, holder, mount: pair.seconds_until_read(holder, mount, begun))
        assert max(took.values()) < SECONDS_MAX


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_host_that_lost_its_power(cluster, provider):
    """Its daemon is what it was before to those that stayed: of the same address and, as in a container, of the same
    process id. They have not heard that its connections ended."""
    kept = cluster.node("--provider", provider)
    lost = cluster.node("--provider", provider, "--listen", f"{cluster.network.next_address()}:{PORT}")
    lost.daemon.kill()
    lost.daemon.wrapper = [*lost.host.inside, "unshare", "--pid", "--fork", "--kill-child"]
    lost.daemon.start()
    pair = Pair(cluster, lost, kept)
    with lost.mounted() as lost_mount, kept.mounted() as kept_mount:
        assert pair.read(kept, lost_mount, "before") == 0
        time.sleep(2)  # what they have is told: nothing of it is on its way
        lost.host.vanish()
        lost.daemon.kill()
        lost.host.up()
        lost.daemon.start()
        begun = time.monotonic()
        for holder, mount in ((kept, lost_mount), (lost, kept_mount)):
            seconds = pair.seconds_until_read(holder, mount, begun)
            assert seconds < SECONDS_MAX
