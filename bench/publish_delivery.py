"""Part `delivery` of the publish bench: from the first byte of a save into new/ until a program on another node has read
the version through its mount, all of it verified. Its parts, and the limit that the link, and one node's work, set."""

import argparse
import contextlib
import dataclasses
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import time

from measure import median_text, settle, touch_memory
from net_nodes import MIB, Cluster, Raw, mounted, wait_until

NAME = "model.npy"
MODELS = ["model", "alone"]  # the second has no consumer on another node, and nobody follows it
HEADER = 128  # of the npy format, with the padding that its alignment asks for
SLOW_CONSUMERS, SLOW_MBIT, SLOW_MIB, SLOW_PAIRS_MAX = 8, 200, 256, 3
LINK_FACTOR, NODE_FACTOR, FIXED_S = 1.15, 1.25, 0.020  # binding, one consumer
CONSUMER = """
import json, os, sys, time
mount, model, names = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
buffer = bytearray(4 << 20)
with open(f"{mount}/.weft/events") as events:
    print("ready", flush=True)
    for line in events:
        event = json.loads(line)
        if event["event"] != "publish" or event["model"] != model: continue
        told = time.monotonic()
        for name in names:
            with open(f"{mount}/models/{model}/{event['version']}/{name}", "rb", buffering=0) as file:
                while file.readinto(buffer): pass
        print(event["version"], told, time.monotonic(), flush=True)
"""


def array_header(count):
    text = "{'descr': '<u4', 'fortran_order': False, 'shape': (%d,), }" % count
    return b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little") + text.ljust(HEADER - 11).encode() + b"\n"


class Saved:
    """So many tensors of a sum of bytes, each a file; a step changes a part of each, or some of them whole."""

    def __init__(self, tensors, size, changed):
        self.changed, self.count = changed, tensors
        self.each = size // tensors // MIB * MIB
        self.bytes = [bytearray(os.urandom(self.each)) for _ in range(tensors)]
        self.names = [f"tensor-{number}.npy" for number in range(tensors)] if tensors > 1 else [NAME]
        self.header = array_header(self.each // 4)

    def step(self):
        """Of one tensor the last part is new; of several, some are."""
        part = self.each if self.count > 1 else round(self.each * self.changed) // MIB * MIB
        for tensor in self.fresh:
            tensor[self.each - part:] = os.urandom(part)

    @property
    def changed_bytes(self):
        return round(self.count * self.each * self.changed)

    @property
    def fresh(self):
        """The tensors that a step changes, whole: their bytes are what is hashed and verified."""
        return self.bytes[:max(1, round(self.count * self.changed)) if self.count > 1 else 1]

    def write(self, directory):
        directory.mkdir()
        for name, content in zip(self.names, self.bytes):
            with open(directory / name, "wb", buffering=0) as file:
                file.write(self.header)
                view = memoryview(content)
                while view:
                    view = view[file.write(view):]


class Consumer:
    """A program that reads each version of a model as it is told of it. A context."""

    def __init__(self, mount, names, model="model"):
        self.words = [sys.executable, "-c", CONSUMER, str(mount.path), model, ",".join(names)]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def has(self):
        """(version, when it was told, when it had read all)."""
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a consumer could not read the version")
        version, told, done = line.split()
        return int(version), float(told), float(done)


@dataclasses.dataclass
class Times:
    """Seconds, of one version."""
    write: float
    rename: float
    event: float  # from the rename's return; below zero where the event was faster
    read: float
    whole: float


def delivered(publisher, saved, consumers, model="model"):
    """One version, saved and read. `publisher` is a mount with new/."""
    saved.step()
    settle()
    draft = publisher.path / "new" / model
    begin = time.monotonic()
    saved.write(draft)
    written = time.monotonic()
    os.rename(draft, str(draft) + "@")
    renamed = time.monotonic()
    answers = [consumer.has() for consumer in consumers]
    told, done = max(a[1] for a in answers), max(a[2] for a in answers)
    return Times(written - begin, renamed - written, told - renamed, done - told, done - begin)


class World:
    """A node that publishes into memory, and others that follow. A context."""

    def __init__(self, directory, args, consumers):
        self.directory, self.args, self.count = directory, args, consumers

    def __enter__(self):
        self.directory.mkdir()
        with contextlib.ExitStack() as stack:
            self.cluster = stack.enter_context(Cluster(self.directory, peers=True))
            options = ["--provider", self.args.provider]
            self.giver = self.cluster.node(*options)
            self.takers = [self.cluster.node(*options, "--follow", "model") for _ in range(self.count)]
            self.publisher = stack.enter_context(mounted(self.giver, "publish,durability=memory"))
            self.mounts = [stack.enter_context(mounted(node)) for node in self.takers]
            self.stack = stack.pop_all()
        return self

    def __exit__(self, kind, *_):
        if kind:
            for node in self.cluster.nodes:
                print(node.directory.name, *node.daemon.log.read_text().splitlines()[-20:], sep="\n", file=sys.stderr)
        self.stack.close()

    def shape(self, link):
        for node in self.cluster.nodes:
            node.host.shape(link, burst="2m")

    def forget(self):
        """Room for the next version: those before the last go."""
        wait_until(lambda: self.giver.daemon.status()["memory"]["versions"] == 0, seconds_max=120, pause=0.05)
        for model in MODELS:
            for version in self.giver.store.json("log", model)["versions"][2:]:
                if not version["removed"]:
                    self.giver.store.weft("rm", f"{model}@{version['version']}")
        self.giver.store.weft("gc", "--quiet")


@dataclasses.dataclass
class Case:
    """Of one row of the table; the lists have a number of seconds for each turn."""
    rows: list = dataclasses.field(default_factory=list)
    alone: list = dataclasses.field(default_factory=list)  # the same save, read on the node itself
    raw: list = dataclasses.field(default_factory=list)  # a loop of fi_read over the changed bytes
    registry: list = dataclasses.field(default_factory=list)  # the rename of a draft of a few bytes
    verify: list = dataclasses.field(default_factory=list)  # SHA-256 of the tensors that changed, on one core
    load: list = dataclasses.field(default_factory=list)  # a read through the mount of what has come

    def median(self, what):
        return statistics.median(getattr(self, what))


def timed(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def verify(saved):
    for tensor in saved.fresh:
        hashlib.sha256(tensor)


def read_files(directory, names):
    buffer = bytearray(4 * MIB)
    for name in names:
        with open(directory / name, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def load(mount, names):
    read_files(max(mount.path.glob("models/model/[0-9]*"), key=lambda path: int(path.name)), names)


def rename_of_little(publisher, turn):
    draft = publisher.path / "new/little"
    draft.mkdir()
    (draft / "turn").write_text(str(turn))
    return timed(lambda: os.rename(draft, str(draft) + "@"))


def one_case(build, directory, args, tensors, changed, consumers, link):
    saved = Saved(tensors, args.megabytes * MIB, changed)
    case = Case()
    with World(directory, args, consumers) as world, contextlib.ExitStack() as stack:
        world.shape(link)
        publisher = world.publisher
        away = [stack.enter_context(Consumer(mount, saved.names)) for mount in world.mounts]
        here = stack.enter_context(Consumer(publisher, saved.names, "alone"))
        delivered(publisher, saved, away)  # all is new
        delivered(publisher, saved, [here], "alone")
        raw = stack.enter_context(Raw(build, args.provider, world.giver.host, world.takers[0].host,
                                      scratch_file(directory, saved.changed_bytes)))
        saves = {"rows": (away, "model"), "alone": ([here], "alone")}

        def save(which):
            touch_memory(2 * args.megabytes * MIB, directory)
            return delivered(publisher, saved, *saves[which])

        steps = [lambda: case.rows.append(save("rows")),
                 lambda: case.raw.append(raw.read("memory", MIB, 4, saved.changed_bytes)[0]),
                 lambda: case.alone.append(save("alone").whole)]
        for turn in range(args.pairs):
            world.forget()
            for step in steps[turn % 3:] + steps[:turn % 3]:
                step()
            case.registry.append(rename_of_little(publisher, turn))
            case.verify.append(timed(lambda: verify(saved)))
            case.load.append(timed(lambda: load(world.mounts[0], saved.names)))
    return case


def scratch_file(directory, size):
    path = directory / "raw"
    with open(path, "wb") as file:
        for _ in range(max(1, size // MIB)):
            file.write(os.urandom(MIB))
    return path


def limit_of(case):
    return LINK_FACTOR * case.median("raw") + NODE_FACTOR * case.median("alone") + FIXED_S


def row_of(name, case, binds):
    wholes = [row.whole for row in case.rows]
    write, rename, event, read = (statistics.median(getattr(row, part) for row in case.rows)
                                  for part in ("write", "rename", "event", "read"))
    registry = case.median("registry")
    met = ("yes" if statistics.median(wholes) <= limit_of(case) else "NO") if binds else ""
    parts = [write, max(0.0, rename - registry), registry, event, read, case.median("raw"), case.median("verify"),
             case.median("load"), case.median("alone")]
    return (f"| {name} | {median_text(wholes, 's')[0]} | {limit_of(case):.3f} s | {met} | "
            + " | ".join(f"{part:.3f} s" for part in parts) + " |")


HEAD = ("| saved | T | limit | met | write | hash | registry | event | read | raw | verify | load | alone |\n"
        + "|---" * 13 + "|")


def deliveries(build, directory, args):
    print(f"{args.megabytes} MB saved into new/ of one node (mount options publish,durability=memory) and read through the mount "
          "of another\n(default options), whose daemon follows the model. Links of 1 Gbit/s. T is from the first byte of the "
          f"save. The limit is\n{LINK_FACTOR} × raw + {NODE_FACTOR} × alone + {FIXED_S * 1000:.0f} ms. Raw is a loop of fi_read "
          "over the changed bytes. Alone is the same save of a\nmodel that no node follows, read on the node itself. The rename is "
          "hash and registry: the rename of a draft of a few bytes is\nregistry, and the rest hash. The event is counted from the "
          "rename's return. The read lasts until the consumer has the bytes. In it\nraw (transfer), verify (SHA-256 on one core) "
          "and load (a read of the bytes that arrived) overlap.\n")
    print(HEAD)
    medians = {}
    for tensors in (1, 16):
        for changed in (1.0, 0.25):
            for consumers in (1, 2):
                name = f"{tensors} tensor{'s' if tensors > 1 else ''}, {changed:.0%} changed, {consumers} consumer" + \
                    ("s" if consumers > 1 else "")
                where = directory / f"case-{tensors}-{changed}-{consumers}"
                case = one_case(build, where, args, tensors, changed, consumers, "1gbit")
                print(row_of(name, case, consumers == 1), flush=True)
                medians[tensors, changed, consumers] = statistics.median(row.whole for row in case.rows)
                shutil.rmtree(where)
    print()
    for tensors in (1, 16):
        for changed in (1.0, 0.25):
            print(f"- {tensors} tensors, {changed:.0%} changed: two consumers ÷ one "
                  f"{medians[tensors, changed, 2] / medians[tensors, changed, 1]:.2f}")
    print(flush=True)


def slow_deliveries(build, directory, args):
    """Many consumers behind slow links. A read that fails does not end the bench."""
    small = argparse.Namespace(**vars(args) | {"pairs": min(SLOW_PAIRS_MAX, args.pairs),
                                               "megabytes": min(SLOW_MIB, args.megabytes)})
    print(f"The same with {small.megabytes} MB, links of {SLOW_MBIT} Mbit/s and {SLOW_CONSUMERS} consumers, {small.pairs} times\n\n"
          + HEAD)
    name = f"16 tensors, 100% changed, {SLOW_CONSUMERS} consumers"
    try:
        case = one_case(build, directory / "slow", small, 16, 1.0, SLOW_CONSUMERS, f"{SLOW_MBIT}mbit")
        print(row_of(name, case, False))
    except RuntimeError as failure:
        print(f"| {name} | {failure} " + "| " * 12 + "|")
    print(flush=True)


def run(build, directory, args):
    deliveries(build, directory, args)
    slow_deliveries(build, directory, args)
