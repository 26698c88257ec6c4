"""Part `together` of the net bench. Table at-once: nodes that start to read one model at once, against one node alone, with the
mount options that users have. Table best: the same in the best case. Table one-node: what one reader costs its holder, over
slow and fast links. Table serving: the memory of a daemon that serves eight nodes at full speed, each node another model.

The links of the first three tables are so slow that the machine is not what holds the nodes up."""

import itertools
import pathlib
import statistics
import threading

from net_cases import LINKS, NODES, OPTIONS
from net_nodes import FILE, MIB, Account, Cluster, cold_mounts, publish, random_tensors, warm, write_model
from net_programs import Cat, programs, read_at_once
from net_starts import TOUCHED, Case, Compared, Start, met, prepared, print_notes, print_table, reasons

AT_ONCE = [8, 16]  # nodes of table at-once, if the command line names none
SIZE = 256 * MIB
BEST_NODES, BEST_SIZE, BEST_RATIO_MAX, BEST_COPIES_MAX = 8, 64 * MIB, 1.5, 2.5
ONE_NODE_TIMES, ONE_NODE_COPIES_MAX = 2, 1.02
SERVED, MEMORY_MAX = 8, 256 * MIB
HEAD = ("| nodes, links | read | mount options | one alone | all at once | at once ÷ alone: median (95 % interval) "
        "| copies sent | failed reads | busy | goal | met |")


def at_once(directory, case, args, notes, holds=None):
    """The cells of a case. `holds` is (the goal's text, a function of ratio, copies and busy)."""
    found = Compared(directory, case, args)
    notes.append(found.note())
    is_met = holds and holds[1](found.ratio, found.copies, found.busy) and not found.failures
    goal = (holds[0], met(is_met)) if holds else ("", "")
    return [*found.cells(), f"{found.copies:.2f}", found.failed(), f"{found.busy:.0%}", *goal]


def table_at_once(directory, args):
    cases = [Case(nodes, NODES[nodes], SIZE, OPTIONS[options], way)
             for nodes, options, way in itertools.product(args.nodes or AT_ONCE, args.options, args.ways)]
    print(f"One holder, links as fast each way, {args.pairs} pairs that take turns. Seconds are from the start of the first "
          "reader to the end\nof the last one. Copies sent: bytes that the holder's interface sent while all read ÷ bytes of "
          "the model.\nWith failed reads, seconds and copies are not those of the model.\n")
    print_rows(directory, cases, args)


def table_best(directory, args):
    print("The best case: a small file that is read before any time-out, and readers that wait for all of it.\n")
    goal = (f"ratio ≤ {BEST_RATIO_MAX}, copies ≤ {BEST_COPIES_MAX}, busy < 80 %",
            lambda ratio, copies, busy: ratio <= BEST_RATIO_MAX and copies <= BEST_COPIES_MAX and busy < 0.8)
    print_rows(directory, [Case(BEST_NODES, NODES[BEST_NODES], BEST_SIZE, OPTIONS["fetch"])], args, goal)


def print_rows(directory, cases, args, goal=None):
    notes = []
    print_table(HEAD, cases, lambda case: at_once(directory, case, args, notes, goal))
    print_notes(notes)


def table_one_node(directory, args):
    print(f"One node and one holder, links as fast each way, default mount options, one file by cat, {ONE_NODE_TIMES} times "
          "each.\nCopies sent: bytes that the holder's interface sent ÷ bytes of the file, the worst time. With failed reads, "
          "seconds and copies\nare not those of the file.\n")
    head = "| nodes, links | read | mount options | seconds: median | copies sent | failed reads | busy | goal | met |"
    cases = [Case(1, mbit, LINKS[mbit] * MIB) for mbit in args.links]
    print_table(head, cases, lambda case: one_node(directory, case, args))
    print(flush=True)


def one_node(directory, case, args):
    with prepared(directory, case, args) as (holder, nodes, readers):
        start = Start(case, holder, nodes, readers)
        took = [start() for _ in range(ONE_NODE_TIMES)]
    copies = max(start.copies)
    failed = f"{len(start.failures)} of {start.reads}" + (f": {reasons(start.failures)}" if start.failures else "")
    return [*case.cells(), f"{statistics.median(took):.2f} s", f"{copies:.3f}", failed,
            f"{statistics.median(start.account.cores.busy):.0%}", f"≤ {ONE_NODE_COPIES_MAX}",
            met(copies <= ONE_NODE_COPIES_MAX and not start.failures)]


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
    if args.tables != ["serving"]:
        print(f"{TOUCHED}\n")
    for name in args.tables:
        TABLES[name](directory, args)
