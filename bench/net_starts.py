"""Rows of the net bench in which nodes start to read one model at once: the case, the start, and pairs of one node and all."""

import collections
import contextlib
import dataclasses
import pathlib
import statistics
import subprocess
import tempfile

from measure import Pairs, interval, touch_memory
from net_cases import WAYS
from net_nodes import (FILE, MIB, Account, Cluster, Wire, arrived, containers, forget, mounted, options_text, publish,
                       random_tensors, shape, wait_idle, write_model, write_shards)
from net_programs import Cat, LoadFile, get_ready, programs, read_each

TENSOR = 2 * MIB
SHARDS = 32
IDLE_SECONDS_MAX = 1800  # transfers may go on for long after their readers gave up
TOUCHED_SHARE_MAX = 0.75  # of free memory: a larger share can push the senders' packs out of the page cache
TOUCHED = ("Before each start the memory that stores, mounts and loaders will fill is touched. The machine's host takes free "
           "memory back,\nand giving it again costs CPU seconds that are not weft's.")


@dataclasses.dataclass
class Case:
    """A row: nodes that read, Mbit/s of each link, bytes of the model, mount options, the way to read."""
    nodes: int
    mbit: int
    size: int
    options: str | None = None
    way: str = "cat"

    def model(self, directory):
        tensors = random_tensors(self.size // TENSOR, TENSOR, seed="together")
        if self.way == "shards":
            return write_shards(directory / "model", tensors, SHARDS)
        return write_model(directory / "model", tensors)

    def kind(self):
        """Of the programs that read."""
        return LoadFile if self.way == "load_file" else Cat

    @contextlib.contextmanager
    def programs(self, directory):
        """A program for each node that reads."""
        warm_up = write_model(directory / "warm-up", random_tensors(1, 4096, seed="warm-up")) / FILE
        with programs(self.kind(), self.nodes, warm_up) as made:
            yield made

    def memory(self):
        """Bytes that a node's read of the model fills: the pages of the store's pack and of the mount, and the tensors of
        load_file."""
        return (3 if self.way == "load_file" else 2) * self.size

    def text(self):
        return f"{self.size // MIB} MiB, {WAYS[self.way]}"

    def links(self):
        return f"{self.nodes}, {self.mbit} Mbit/s"

    def cells(self):
        """The first cells of its row."""
        return [self.links(), self.text(), options_text(self.options)]


class Holder:
    """A node that has the model and sends it to others."""
    name = "the holder's weftd"

    def __init__(self, node):
        self.node = node

    @property
    def pid(self):
        return self.node.daemon.pid

    def sent(self):
        """Bytes that its interface has sent."""
        return Wire(self.node.host).sent


def free_memory():
    """Bytes."""
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)["MemFree"].split()[0]) * 1024


class Start:
    """Some nodes start to read the model at once, and nobody but the holder has any of it: a Holder, or a SlowOrigin. A call
    returns its seconds."""

    def __init__(self, case, holder, nodes, readers):
        self.case, self.holder, self.nodes, self.readers = case, holder, nodes, readers
        self.copies, self.failures, self.reads, self.account = [], [], 0, Account()
        self.before = {}  # bytes that had arrived at each reading node

    def __call__(self):
        forget(*self.nodes, seconds_max=IDLE_SECONDS_MAX)
        nodes = self.nodes[:len(self.readers)]
        self.before = {node: arrived(node) for node in nodes}
        with contextlib.ExitStack() as stack:
            mounts = [stack.enter_context(mounted(node, self.case.options)) for node in nodes]
            files = [containers(mount.version("model", 1)) for mount in mounts]
            get_ready(self.readers)
            touch_memory(min(len(nodes) * self.case.memory(), int(TOUCHED_SHARE_MAX * free_memory())), nodes[0].directory)
            reads = self.measured(nodes, mounts, files)
        left = self.survivors(nodes)
        wait_idle(*left, seconds_max=IDLE_SECONDS_MAX)
        reads = [read for node, read in zip(nodes, reads) if node in left]
        failures = [failure for read in reads for failure in read.failures]
        self.failures += failures
        self.reads += sum(len(its) for node, its in zip(nodes, files) if node in left)
        if not failures and sum(arrived(node) - self.before[node] for node in left) < self.case.size * len(left):
            raise RuntimeError("fewer bytes arrived than were read: a node had them")
        if not failures and self.copies[-1] < 1:
            raise RuntimeError(f"only {self.copies[-1]:.3f} copies were sent: a node had the bytes")
        return max(read.end for read in reads)

    def measured(self, nodes, mounts, files):
        roots = {self.holder.name: [self.holder.pid],
                 "the others' weftd": [node.daemon.pid for node in nodes],
                 "mounts": [pid for mount in mounts for pid in mount.server_pids()],
                 "loaders": [pid for reader in self.readers for pid in reader.pids()]}
        sent = self.holder.sent()
        with self.account.measured(**{name: pids for name, pids in roots.items() if pids}):
            reads = self.read(files)
        self.copies.append((self.holder.sent() - sent) / self.case.size)
        return reads

    def read(self, files):
        return read_each(self.readers, files)

    def survivors(self, nodes):
        """The nodes whose reads count."""
        return nodes


@contextlib.contextmanager
def prepared(directory, case, args, words=lambda number: ()):
    """(Holder, nodes that read, their programs) with the model published and the links shaped. Nothing of it stays. `words`
    are more options of the daemon with this number; the holder is 0."""
    with tempfile.TemporaryDirectory(prefix="row.", dir=directory) as row:
        where = pathlib.Path(row)
        with Cluster(where, peers=True) as cluster, case.programs(where) as readers:
            holder, *nodes = (cluster.node("--provider", args.provider, *words(number)) for number in range(case.nodes + 1))
            publish(cluster, holder, case.model(where), "model")
            shape(cluster.nodes, case.mbit)
            yield Holder(holder), nodes, readers


class Compared:
    """One node alone and all nodes of a case, in pairs that take turns. `prepare` is prepared(), or what yields the like."""

    def __init__(self, directory, case, args, prepare=prepared):
        self.case = case
        with prepare(directory, case, args) as (holder, nodes, readers):
            self.alone, self.together = Start(case, holder, nodes, readers[:1]), Start(case, holder, nodes, readers)
            self.pairs = Pairs.alternate(args.pairs, self.alone, self.together)
        self.ratio = statistics.median(self.pairs.ratios())
        self.copies, self.copies_alone = (statistics.median(start.copies) for start in (self.together, self.alone))
        self.failures = self.alone.failures + self.together.failures
        self.busy = statistics.median(self.together.account.cores.busy)

    def copies_ratio(self):
        """Copies that the holder sent to all nodes ÷ those that it sent to one."""
        return statistics.median(both / one for one, both in zip(self.alone.copies, self.together.copies))

    def cells(self):
        """The cells that every table begins with."""
        low, high = interval(self.pairs.ratios())
        return [*self.case.cells(), f"{statistics.median(self.pairs.ours):.2f} s", f"{statistics.median(self.pairs.peers):.2f} s",
                f"{self.ratio:.2f} ({low:.2f} to {high:.2f})"]

    def failed(self):
        return f"{len(self.failures)} of {self.alone.reads + self.together.reads}"

    def note(self):
        found = f"failed reads: {reasons(self.failures)}" if self.failures else self.together.account.text()
        return f"{', '.join(self.case.cells())}: {found}"


def met(holds):
    return "yes" if holds else "NO"


def reasons(failures):
    return ", ".join(f"{count} × {reason}" for reason, count in collections.Counter(failures).items())


def print_table(head, cases, line):
    """`head` is a line; line(case) returns the cells of a row. A row that cannot be measured does not end the table."""
    columns = head.count("|") - 1
    print(head + "\n" + "|---" * columns + "|")
    for case in cases:
        try:
            cells = line(case)
        except (AssertionError, OSError, RuntimeError, subprocess.SubprocessError) as failure:
            reason = " ".join(str(failure).split()).replace("|", "/")[:300]
            cells = [*case.cells(), f"not measured: {reason}"]
        print("| " + " | ".join([*cells, *[""] * (columns - len(cells))]) + " |", flush=True)


def print_notes(notes):
    print("\n" + "".join(f"- {note}\n" for note in notes), flush=True)
