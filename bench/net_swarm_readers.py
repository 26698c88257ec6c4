"""Table readers of part `swarm` of the net bench: how long programs wait for a MiB of a model that eight nodes fetch at once,
and what small reads of one more node from the same holder take meanwhile."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import functools
import os
import random
import statistics
import threading
import time

from measure import p99
from net_cases import NODES
from net_nodes import MIB, forget, mounted, publish, random_tensors, shape, write_model
from net_programs import ReadsOfMib, read_each
from net_small import requests
from net_starts import Case, Start, prepared, print_table
from net_tensor import read_seconds
from swarm_simulated import simulated

READING, SIZE = 8, 256 * MIB
TENSOR, TENSORS = 4096, 4096  # bytes; more than are read while the model is fetched
READ_EVERY, IDLE_SECONDS = 0.01, 10
WHAT = {"first": "time to the first 1 MiB of each node",
        "last": "time to the last 1 MiB of each node, asked for 0.5 s after the first", "small": "4 KiB read by one more node, p99 (median)"}
HEAD = ("| nodes, links | read | mount options | what | on an idle holder | beside the swarm | simulated beside the swarm "
        "| failed reads | busy |")


class SmallReads:
    """One more node, which reads tensors of a model of its own from the holder: one every READ_EVERY seconds, no tensor
    twice."""

    def __init__(self, holder, case, args, directory):
        cluster = holder.node.cluster
        self.node = cluster.node("--provider", args.provider)
        model = write_model(directory / "small", random_tensors(TENSORS, TENSOR, seed="small reads"))
        publish(cluster, holder.node, model, "small")
        shape([self.node], case.mbit)
        self.tensors = None

    @contextlib.contextmanager
    def ready(self):
        """The node is mounted and has a session with the holder, and nothing of the other tensors."""
        forget(self.node)
        with mounted(self.node) as mount:
            self.tensors = mount.tensors("small", 1)
            os.listdir(self.tensors)
            read_seconds(self.tensors / "layer.0.weight.npy")
            yield

    def read_while(self, goes_on):
        """Seconds of each read, from open to close, as long as goes_on() says so."""
        order = random.Random("small reads").sample(range(1, TENSORS), TENSORS - 1)
        before, took = requests(self.node), []
        for number in order:
            if not goes_on():
                break
            took.append(read_seconds(self.tensors / f"layer.{number}.weight.npy"))
            time.sleep(max(0, READ_EVERY - took[-1]))
        if requests(self.node) - before < len(took):
            raise RuntimeError("tensors were local before they were read")
        return took

    def read_idle(self):
        end = time.monotonic() + IDLE_SECONDS
        with self.ready():
            return self.read_while(lambda: time.monotonic() < end)


class BesideSmall(Start):
    """A start with small reads beside."""

    def __init__(self, small, *parts):
        super().__init__(*parts)
        self.small, self.took = small, []

    def read(self, files):
        over = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            beside = pool.submit(self.small.read_while, lambda: not over.is_set())
            try:
                reads = read_each(self.readers, files)
            finally:
                over.set()
            self.took += beside.result()
        return reads


@dataclasses.dataclass
class FirstCase(Case):
    """A row: a key of WHAT."""
    what: str = ""

    def kind(self):
        return ReadsOfMib

    def cells(self):
        return [*super().cells(), WHAT[self.what]]


class Found:
    """What all rows are made of: the pairs of an idle holder and one that eight nodes read from."""

    def __init__(self, directory, case, args):
        self.idle, self.in_swarm, self.small_idle = collections.defaultdict(list), collections.defaultdict(list), []
        with prepared(directory, case, args) as (holder, nodes, readers):
            small = SmallReads(holder, case, args, directory)
            self.alone = Start(case, holder, nodes, readers[:1])
            self.beside = BesideSmall(small, case, holder, nodes, readers)
            for _ in range(args.pairs):
                self.small_idle += small.read_idle()
                self.alone()
                self.keep(self.idle, readers[:1])
                with small.ready():
                    self.beside()
                self.keep(self.in_swarm, readers)

    @staticmethod
    def keep(into, readers):
        """The seconds of each reader that got a MiB, in order of length."""
        for name in ("first", "last"):
            into[name].append(sorted(filter(None, (getattr(reader, name) for reader in readers))))

    def mib_cells(self, name):
        idle, each = (", ".join(f"{statistics.median(rank):.2f}" for rank in zip(*found[name]))
                      for found in (self.idle, self.in_swarm))
        return [f"{idle} s, one node alone", f"{each} s"]

    def small_cells(self):
        return [milliseconds(self.small_idle), milliseconds(self.beside.took)]

    def last_cells(self):
        starts = (self.alone, self.beside)
        return [f"{sum(len(start.failures) for start in starts)} of {sum(start.reads for start in starts)}",
                f"{statistics.median(self.beside.account.cores.busy):.0%}"]


def milliseconds(took):
    return f"{1000 * p99(took):.1f} ms ({1000 * statistics.median(took):.1f} ms), {len(took)} reads"


def table_readers(build, directory, args):
    print(f"{READING} nodes read a model of one holder at once: `head -c 1M`, then `cat` of it all, and 0.5 s later "
          f"`tail -c 1M` beside. One\nmore node reads tensors of {TENSOR} bytes of another model from the same holder meanwhile, "
          f"one every {READ_EVERY * 1000:.0f} ms. {args.pairs} times, and\neach time before on an idle holder. The times of a MiB "
          "are in order of length, each the median.\n")
    cases = [FirstCase(READING, NODES[READING], SIZE, what=what) for what in WHAT]

    @functools.cache
    def found():
        return Found(directory, cases[0], args), simulated(build, cases[0])

    def line(case):
        measured, expected = found()
        cells = measured.small_cells() if case.what == "small" else measured.mib_cells(case.what)
        first, last = (expected[name] * expected["alone"] for name in ("first", "first_last"))
        said = f"first unit: median {first:.2f} s, last {last:.2f} s" if case.what == "first" else ""
        return [*case.cells(), *cells, said, *measured.last_cells()]
    print_table(HEAD, cases, line)
    print(flush=True)
