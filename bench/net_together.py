"""Part `together` of the net bench. Table at-once: nodes that start to read one model at once, against one node alone, with the
mount options that users have. Table best: the same in the best case. Table one-node: what one reader costs its holder, over
slow and fast links. Table serving: the memory of a daemon that serves eight nodes at full speed, each node another model.

The links of the first three tables are so slow that the machine is not what holds the nodes up."""

import collections
import contextlib
import dataclasses
import itertools
import pathlib
import statistics
import subprocess
import tempfile
import threading

from measure import Pairs, interval
from net_cases import LINKS, NODES, OPTIONS, WAYS
from net_nodes import (FILE, MIB, Account, Cluster, Wire, arrived, cold_mounts, containers, forget, mounted, options_text,
                       publish, random_tensors, shape, wait_idle, warm, write_model, write_shards)
from net_programs import Cat, LoadFile, get_ready, programs, read_at_once

TENSOR = 2 * MIB
SIZE, SHARDS = 256 * MIB, 32
BEST_NODES, BEST_SIZE, BEST_RATIO_MAX, BEST_COPIES_MAX = 8, 64 * MIB, 1.5, 2.5
ONE_NODE_TIMES, ONE_NODE_COPIES_MAX = 2, 1.02
SERVED, MEMORY_MAX = 8, 256 * MIB
IDLE_SECONDS_MAX = 1800  # transfers may go on for long after their readers gave up
HEAD = ("| nodes, links | read | mount options | one alone | all at once | at once ÷ alone: median (95 % interval) "
        "| copies sent | failed reads | busy | goal | met |\n" + "|---" * 11 + "|")


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

    @contextlib.contextmanager
    def programs(self, directory):
        """A program for each node that reads."""
        warm_up = write_model(directory / "warm-up", random_tensors(1, 4096, seed="warm-up")) / FILE
        with programs(LoadFile if self.way == "load_file" else Cat, self.nodes, warm_up) as made:
            yield made

    def text(self):
        return f"{self.size // MIB} MiB, {WAYS[self.way]}"

    def links(self):
        return f"{self.nodes}, {self.mbit} Mbit/s"


class Start:
    """Some nodes start to read the model at once, and no node but the holder has any of it. A call returns its seconds."""

    def __init__(self, case, holder, nodes, readers):
        self.case, self.holder, self.nodes, self.readers = case, holder, nodes, readers
        self.copies, self.failures, self.reads, self.account = [], [], 0, Account()

    def __call__(self):
        forget(*self.nodes, seconds_max=IDLE_SECONDS_MAX)
        nodes = self.nodes[:len(self.readers)]
        before = sum(map(arrived, nodes))
        with contextlib.ExitStack() as stack:
            mounts = [stack.enter_context(mounted(node, self.case.options)) for node in nodes]
            files = [containers(mount.version("model", 1)) for mount in mounts]
            get_ready(self.readers)
            took, failures = self.measured(nodes, mounts, files)
        wait_idle(*nodes, seconds_max=IDLE_SECONDS_MAX)
        self.failures += failures
        self.reads += sum(map(len, files))
        if not failures and sum(map(arrived, nodes)) - before < self.case.size * len(nodes):
            raise RuntimeError("fewer bytes arrived than were read: a node had them")
        return took

    def measured(self, nodes, mounts, files):
        roots = {"the holder's weftd": [self.holder.daemon.pid],
                 "the others' weftd": [node.daemon.pid for node in nodes],
                 "mounts": [pid for mount in mounts for pid in mount.server_pids()],
                 "loaders": [pid for reader in self.readers for pid in reader.pids()]}
        sent = Wire(self.holder.host).sent
        with self.account.measured(**{name: pids for name, pids in roots.items() if pids}):
            result = read_at_once(self.readers, files)
        self.copies.append((Wire(self.holder.host).sent - sent) / self.case.size)
        return result


@contextlib.contextmanager
def prepared(directory, case, args):
    """(holder, nodes that read, their programs) with the model published and the links shaped. Nothing of it stays."""
    with tempfile.TemporaryDirectory(prefix="row.", dir=directory) as row:
        where = pathlib.Path(row)
        with Cluster(where, peers=True) as cluster, case.programs(where) as readers:
            holder, *nodes = (cluster.node("--provider", args.provider) for _ in range(case.nodes + 1))
            publish(cluster, holder, case.model(where), "model")
            shape(cluster.nodes, case.mbit)
            yield holder, nodes, readers


def met(holds):
    return "yes" if holds else "NO"


def reasons(failures):
    return ", ".join(f"{count} × {reason}" for reason, count in collections.Counter(failures).items())


def or_reason(case, columns, row):
    """Prints row(), a line of a table with so many columns. A row that cannot be measured does not end the table."""
    try:
        print(row(), flush=True)
    except (AssertionError, OSError, RuntimeError, subprocess.SubprocessError) as failure:
        reason = " ".join(str(failure).split()).replace("|", "/")[:300]
        cells = [case.links(), case.text(), options_text(case.options), f"not measured: {reason}"]
        print("| " + " | ".join([*cells, *[""] * (columns - len(cells))]) + " |", flush=True)


def at_once(directory, case, args, notes, holds=None):
    """The line of a case. `holds` is (the goal's text, a function of ratio, copies and busy)."""
    with prepared(directory, case, args) as (holder, nodes, readers):
        alone, together = Start(case, holder, nodes, readers[:1]), Start(case, holder, nodes, readers)
        pairs = Pairs.alternate(args.pairs, alone, together)
    ratios, failures = pairs.ratios(), alone.failures + together.failures
    (low, high), ratio = interval(ratios), statistics.median(ratios)
    copies, busy = statistics.median(together.copies), statistics.median(together.account.cores.busy)
    found = f"failed reads: {reasons(failures)}" if failures else together.account.text()
    notes.append(f"{case.links()}, {case.text()}, {options_text(case.options)}: {found}")
    goal = (holds[0], met(holds[1](ratio, copies, busy) and not failures)) if holds else ("", "")
    return "| " + " | ".join([
        case.links(), case.text(), options_text(case.options), f"{statistics.median(pairs.ours):.2f} s",
        f"{statistics.median(pairs.peers):.2f} s", f"{ratio:.2f} ({low:.2f} to {high:.2f})", f"{copies:.2f}",
        f"{len(failures)} of {alone.reads + together.reads}", f"{busy:.0%}", *goal]) + " |"


def table_at_once(directory, args):
    cases = [Case(nodes, NODES[nodes], SIZE, OPTIONS[options], way)
             for nodes, options, way in itertools.product(args.nodes, args.options, args.ways)]
    print(f"One holder, links as fast each way, {args.pairs} pairs that take turns. Seconds are from the start of the first "
          "reader to the end\nof the last one. Copies sent: bytes that the holder's interface sent while all read ÷ bytes of "
          f"the model.\nWith failed reads, seconds and copies are not those of the model.\n\n{HEAD}")
    print_rows(directory, cases, args)


def table_best(directory, args):
    print(f"The best case: a small file that is read before any time-out, and readers that wait for all of it.\n\n{HEAD}")
    goal = (f"ratio ≤ {BEST_RATIO_MAX}, copies ≤ {BEST_COPIES_MAX}, busy < 80 %",
            lambda ratio, copies, busy: ratio <= BEST_RATIO_MAX and copies <= BEST_COPIES_MAX and busy < 0.8)
    print_rows(directory, [Case(BEST_NODES, NODES[BEST_NODES], BEST_SIZE, OPTIONS["fetch"])], args, goal)


def print_rows(directory, cases, args, goal=None):
    notes = []
    for case in cases:
        or_reason(case, HEAD.split("\n", 1)[0].count("|") - 1, lambda case=case: at_once(directory, case, args, notes, goal))
    print("\n" + "".join(f"- {note}\n" for note in notes), flush=True)


def table_one_node(directory, args):
    print(f"One node and one holder, links as fast each way, default mount options, one file by cat, {ONE_NODE_TIMES} times "
          "each.\nCopies sent: bytes that the holder's interface sent ÷ bytes of the file, the worst time. With failed reads, "
          "seconds and copies\nare not those of the file.\n")
    head = "| nodes, links | read | mount options | seconds: median | copies sent | failed reads | busy | goal | met |"
    print(head + "\n" + "|---" * (head.count("|") - 1) + "|")
    for mbit in args.links:
        case = Case(1, mbit, LINKS[mbit] * MIB)
        or_reason(case, head.count("|") - 1, lambda case=case: one_node(directory, case, args))
    print(flush=True)


def one_node(directory, case, args):
    with prepared(directory, case, args) as (holder, nodes, readers):
        start = Start(case, holder, nodes, readers)
        took = [start() for _ in range(ONE_NODE_TIMES)]
    copies = max(start.copies)
    failed = f"{len(start.failures)} of {start.reads}" + (f": {reasons(start.failures)}" if start.failures else "")
    return "| " + " | ".join([
        case.links(), case.text(), options_text(case.options), f"{statistics.median(took):.2f} s", f"{copies:.3f}", failed,
        f"{statistics.median(start.account.cores.busy):.0%}", f"≤ {ONE_NODE_COPIES_MAX}",
        met(copies <= ONE_NODE_COPIES_MAX and not start.failures)]) + " |"


def anonymous(pid):
    """RssAnon + RssShmem of a process; bytes."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return sum(int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))


class Peak(threading.Thread):
    """The most that a process takes while this runs. A context."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.bytes, self.over = pid, 0, threading.Event()

    def run(self):
        while not self.over.wait(0.02):
            self.bytes = max(self.bytes, anonymous(self.pid))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.over.set()
        self.join()


def read_all(files):
    """Each `cat` reads a file of its own. Returns the seconds until the last one ends."""
    with programs(Cat, len(files), None) as readers:
        took, failures = read_at_once(readers, [[file] for file in files])
    if failures:
        raise RuntimeError(f"failed reads: {reasons(failures)}")
    return took


def table_serving(directory, args):
    """Eight clients read models of their own, large ones, from one holder; links as fast as the machine is."""
    each = max(64, args.megabytes // SERVED) * MIB
    account = Account()
    where = directory / "serving"
    where.mkdir()
    with Cluster(where, peers=True) as cluster:
        holder, *readers = (cluster.node("--provider", args.provider) for _ in range(SERVED + 1))
        for i in range(SERVED):
            tensors = random_tensors(each // (16 * MIB), 16 * MIB, seed=f"serving {i}")
            publish(cluster, holder, write_model(where / f"model{i}", tensors), f"model{i}")
        with cold_mounts(readers, moves=each) as mounts:
            files = [mount.version(f"model{i}", 1) / FILE for i, mount in enumerate(mounts)]
            for path in (holder.directory / "store").rglob("*.pack"):
                warm(path)
            before, served = anonymous(holder.daemon.pid), holder.exchange()["served_bytes"]
            with Peak(holder.daemon.pid) as peak, account.measured(**{
                    "the holder's weftd": [holder.daemon.pid], "the others' weftd": [one.daemon.pid for one in readers],
                    "mounts": [pid for mount in mounts for pid in mount.server_pids()]}):
                took = read_all(files)
            served = holder.exchange()["served_bytes"] - served
    if served < SERVED * each:
        raise RuntimeError("the holder did not send all")
    print(f"| {SERVED} clients at once, each its own model of {each // MIB} MiB, one file by cat, default mount options, links "
          "not shaped | | goal | met |")
    print("|---|---|---|---|")
    print(f"| read by all | {SERVED * each / took / MIB:.0f} MiB/s | | |")
    print(f"| memory of the holder's weftd before | {before / MIB:.0f} MiB | | |")
    print(f"| at its peak | {peak.bytes / MIB:.0f} MiB | ≤ {MEMORY_MAX // MIB} MiB | {met(peak.bytes <= MEMORY_MAX)} |\n")
    print(f"- {account.text()}\n", flush=True)


TABLES = {"at-once": table_at_once, "best": table_best, "one-node": table_one_node, "serving": table_serving}


def run(_build, directory, args):
    for name in args.tables:
        TABLES[name](directory, args)
