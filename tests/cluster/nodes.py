"""Nodes of a cluster as tests of bytes need them: a store, a weftd, a mount each; one etcd; one origin for all."""
import contextlib
import errno
import os
import pathlib
import signal
import time

from clusterlib import Etcd, Network
from daemonlib import Daemon, metrics
from power import StoreOn
from weftlib import PATIENCE, Mount, Store, run, wait_until

MESSAGES = ("weft_request_duration_seconds_count", "weft_fetches_total", "weft_fetched_manifests_total")
MODEL_FILE = "model.safetensors"  # of what write_model() writes
SECONDS_MAX = 20 * PATIENCE  # within which everything ends well, or with a clear errno
SILENCE_SECONDS = 10  # after the last byte or sign of life a read gives up: weft.7
HALF_OPEN_SECONDS_MAX = 6.5 * PATIENCE  # within which a hello that was made with the key, and goes no further, is forgotten
KNOWN_SECONDS = 3 * PATIENCE  # after a fetch, until other nodes know that the node has the whole version
CLOSED_SECONDS_MAX = 1.5 * PATIENCE  # within which a stranger, or a session that hears nonsense, is closed: 1, and the asking


class Node:
    def __init__(self, cluster, host, directory, *options, machine=None):
        self.cluster, self.host, self.directory, self.machine = cluster, host, directory, machine
        self.options = options
        self.store = StoreOn(machine, directory / "store") if machine else Store(directory / "store")
        self.daemon = Daemon(self.store, "--name", directory.name, "--cluster", "test", "--etcd-endpoints",
                             cluster.etcd.endpoint, "--key-file", cluster.key, *cluster.options(host), *options,
                             wrapper=[*host.inside, *(machine.inside if machine else [])])
        if machine:  # the log outlives the disk
            self.daemon.log = machine.boot.parent / "weftd.log"

    def mounted(self, options=None):
        return Mount(self.store, self.directory / "mnt", options)

    def figures(self):
        return metrics(self.daemon.ask("metrics")["text"])

    def fetched(self, source=None):
        """Bytes that came from there, since the daemon started."""
        source = source or ("peer" if self.cluster.peers else "origin")
        return self.figures().get(f'weft_fetched_bytes_total{{source="{source}"}}', 0)

    def asked(self):
        """What mounts have asked this node's daemon for, and how often."""
        samples = metrics(self.daemon.ask("metrics")["text"])
        return {name: count for name, count in samples.items()
                if name.startswith("weft_request_duration_seconds_count") and ('"resolve"' in name or '"bring"' in name)}

    def messages(self):
        """All that its daemon was asked for, but how it is, and all that it asked others for to answer."""
        samples = metrics(self.daemon.ask("metrics")["text"])
        return {name: count for name, count in samples.items() if name.startswith(MESSAGES)
                and not any(f'"{request}"' in name for request in ("status", "health", "peers", "metrics", "mount"))}

    def exchange(self):
        """What its daemon says of what it and its peers tell and give each other."""
        return self.daemon.status()["exchange"]

    def holds(self, spec):
        """Fetches the whole version. Other nodes know of this copy afterwards."""
        self.store.weft("prefetch", spec)
        time.sleep(KNOWN_SECONDS)

    def knows(self, spec):
        return spec in self.store.weft("ls", spec.split("@")[0], "--names", check=False).stdout.split()


def errno_of(path):
    """What reading the whole file ends with; 0 when it was read."""
    try:
        path.read_bytes()
        return 0
    except OSError as failure:
        return failure.errno


def comes_right_on(node, source):
    """Whether a node's mount reads as it should within the time; until then reads may fail, each in time, but bring
    nothing wrong."""
    expected = (source / MODEL_FILE).read_bytes()
    with node.mounted() as mount:
        def right():
            begin = time.monotonic()
            try:
                got = (mount.version("model", 1) / MODEL_FILE).read_bytes()
            except OSError as failure:
                assert failure.errno == errno.EIO
                return False
            finally:
                assert time.monotonic() - begin < SECONDS_MAX
            assert got == expected
            return True
        wait_until(right, seconds_max=SECONDS_MAX, pause=0.2)


def resident(node):
    """RssAnon + RssShmem of its daemon; bytes. What a sanitizer keeps beside each byte counts too: bounds on it grow with
    PATIENCE."""
    text = pathlib.Path(f"/proc/{node.daemon.pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in text.splitlines())
    return sum(int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))


def descriptors(node):
    """That its daemon has open."""
    return len(os.listdir(f"/proc/{node.daemon.pid}/fd"))


def cluster_key(path):
    """A file with a key that only its owner can read."""
    path.touch(mode=0o600)
    path.write_bytes(os.urandom(32))
    return path


class Cluster:
    """As a context: all that it started ends with it."""

    def __init__(self, directory, origin=None, peers=False, etcd_directory=None):
        """With `peers` the nodes read from each other, and there is no origin but a given one."""
        self.directory, self.peers, self.etcd_directory = directory, peers, etcd_directory or directory / "etcd"
        self.origin = origin or (None if peers else directory / "origin")
        if self.origin:
            self.origin.mkdir(exist_ok=True)
        self.key = cluster_key(directory / "key")
        self.nodes = []

    def options(self, host):
        return [*(["--origin", self.origin] if self.origin else []),
                *(["--listen", host.address] if self.peers else ["--provider", "none"])]

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        try:
            self.network = self.stack.enter_context(Network())
            self.etcd = self.stack.enter_context(Etcd(self.network.host(), self.etcd_directory))
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *exception):
        self.stack.close()

    def node(self, *options, path=None, machine=None):
        """With `machine` (power.py) on the disk of that."""
        node = self.starting(*options, path=path, machine=machine)
        node.daemon.wait_ready()
        return node

    def starting(self, *options, path=None, machine=None):
        """A node whose daemon is not ready yet."""
        directory = path or (machine.where if machine else self.directory) / f"node{len(self.nodes) + 1}"
        directory.mkdir(exist_ok=True)
        node = Node(self, self.network.host(), directory, *options, machine=machine)
        node.daemon.ready = False
        self.stack.enter_context(node.daemon)
        node.daemon.ready = True
        self.nodes.append(node)
        return node

    def some(self, count, *options):
        """So many nodes, whose daemons start beside each other. Those of a cluster with peers know all members."""
        made = [self.starting(*options) for _ in range(count)]
        for node in made:
            node.daemon.wait_ready()
        for node in made if self.peers else []:
            wait_until(lambda node=node: len(node.daemon.ask("peers")["peers"]) >= len(self.nodes), seconds_max=SECONDS_MAX)
        return made

    def publish(self, node, path, name, **options):
        """Publishes, and waits until it is at the origin and every node knows it; MODEL@NUMBER."""
        node.store.publish(path, name=name, **options)
        number = node.store.json("log", name)["versions"][0]["version"]
        spec = f"{name}@{number}"
        if self.origin:
            node.store.weft("stage-out", spec)
        for other in self.nodes:
            wait_until(lambda other=other: other.knows(spec), seconds_max=SECONDS_MAX, pause=0.01)
        return spec


@contextlib.contextmanager
def fuse_directory(source, where, *options):
    """`source` once more, by a FUSE server that can be stopped and go on; its process id. Options are bindfs's."""
    where.mkdir(exist_ok=True)
    run(["bindfs", *options, source, where])
    processes = [entry for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()]
    found = [int(entry.name) for entry in processes if is_bindfs(entry, where)]
    try:
        yield found[0]
    finally:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        if run(["umount", where], check=False).returncode != 0:
            run(["umount", "-l", where])


def is_bindfs(entry, where):
    with contextlib.suppress(OSError):
        words = (entry / "cmdline").read_bytes().split(b"\0")
        return words[0].endswith(b"bindfs") and os.fsencode(where) in words
    return False
