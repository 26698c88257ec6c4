"""Part `delivery` of the publish bench: from the first byte of a save into new/ until a program on another node has read
the version through its mount, all of it verified. Its parts, and the limit that the link, and one node's work, set."""

import contextlib
import dataclasses
import os
import shutil
import statistics
import subprocess
import sys
import time

from measure import median_text, settle, touch_memory
from net_nodes import MIB, Cluster, Raw, wait_until

NAME = "model.npy"
HEADER = 128  # of the npy format, with the padding that its alignment asks for
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
        fresh = max(1, round(self.count * self.changed)) if self.count > 1 else 1
        for number in range(fresh):
            part = self.each if self.count > 1 else round(self.each * self.changed) // MIB * MIB
            self.bytes[number][self.each - part:] = os.urandom(part)

    @property
    def changed_bytes(self):
        return round(self.count * self.each * self.changed)

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

    def __init__(self, mount, names):
        self.words = [sys.executable, "-c", CONSUMER, str(mount.path), "model", ",".join(names)]

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
        version, told, done = self.process.stdout.readline().split()
        return int(version), float(told), float(done)


@dataclasses.dataclass
class Times:
    """Seconds, of one version."""
    write: float
    rename: float
    event: float  # from the rename's return; below zero where the event was faster
    read: float
    whole: float


def delivered(publisher, saved, consumers):
    """One version, saved and read. `publisher` is a mount with new/."""
    saved.step()
    settle()
    draft = publisher.path / "new/model"
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
            options = ["--provider", self.args.provider, "--cache-max", "0"]
            self.giver = self.cluster.node(*options)
            self.takers = [self.cluster.node(*options, "--follow", "model") for _ in range(self.count)]
            self.publisher = stack.enter_context(self.giver.mounted("publish,durability=memory"))
            self.mounts = [stack.enter_context(node.mounted()) for node in self.takers]
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exception):
        self.stack.close()

    def shape(self, link):
        for node in self.cluster.nodes:
            node.host.shape(link, burst="2m")

    def forget(self):
        """Room for the next version: those before the last go."""
        wait_until(lambda: self.giver.daemon.status()["memory"]["versions"] == 0, seconds_max=120, pause=0.05)
        for version in self.giver.store.json("log", "model")["versions"][2:]:
            if not version["removed"]:
                self.giver.store.weft("rm", f"model@{version['version']}")
        self.giver.store.weft("gc", "--quiet")


def one_case(build, directory, args, tensors, changed, consumers, link):
    saved = Saved(tensors, args.megabytes * MIB, changed)
    rows, locals_, raws = [], [], []
    with World(directory, args, consumers) as world:
        world.shape(link)
        with contextlib.ExitStack() as stack:
            away = [stack.enter_context(Consumer(mount, saved.names)) for mount in world.mounts]
            delivered(world.publisher, saved, away)  # all is new
            raw = stack.enter_context(Raw(build, args.provider, world.giver.host, world.takers[0].host,
                                          scratch_file(directory, saved.changed_bytes)))
            for turn in range(args.pairs):
                world.forget()
                touch_memory(2 * args.megabytes * MIB, directory)
                steps = [lambda: rows.append(delivered(world.publisher, saved, away)),
                         lambda: raws.append(raw.read("memory", MIB, 4, saved.changed_bytes)[0])]
                for step in steps if turn % 2 else steps[::-1]:
                    step()
        with Consumer(world.publisher, saved.names) as here:
            for _ in range(args.pairs):
                world.forget()
                touch_memory(2 * args.megabytes * MIB, directory)
                locals_.append(delivered(world.publisher, saved, [here]).whole)
    return rows, locals_, raws


def scratch_file(directory, size):
    path = directory / "raw"
    with open(path, "wb") as file:
        for _ in range(max(1, size // MIB)):
            file.write(os.urandom(MIB))
    return path


def limit_of(locals_, raws):
    return LINK_FACTOR * statistics.median(raws) + NODE_FACTOR * statistics.median(locals_) + FIXED_S


def row_of(name, rows, locals_, raws, binds):
    whole = statistics.median(row.whole for row in rows)
    limit = limit_of(locals_, raws)
    parts = [statistics.median(getattr(row, part) for row in rows) for part in ("write", "rename", "event", "read")]
    met = ("yes" if whole <= limit else "NO") if binds else ""
    return (f"| {name} | {median_text([row.whole for row in rows], 's')[0]} | {limit:.3f} s | {met} | "
            + " | ".join(f"{part:.3f} s" for part in parts)
            + f" | {statistics.median(locals_):.3f} s | {statistics.median(raws):.3f} s |")


def deliveries(build, directory, args):
    print(f"{args.megabytes} MB saved into new/ of one node, durability memory, and read through the mount of another; links "
          f"of 1 Gbit/s. T is from the first byte of the save. The limit is {LINK_FACTOR} × raw + {NODE_FACTOR} × one node + "
          f"{FIXED_S * 1000:.0f} ms: raw is a loop of fi_read over the changed bytes, one node is the same save read on the "
          "node itself. The rename hashes and publishes; the event is counted from its return.\n")
    print("| saved | T | limit | met | write | rename | event | read | one node | raw |\n" + "|---" * 10 + "|")
    medians = {}
    for tensors in (1, 16):
        for changed in (1.0, 0.25):
            for consumers in (1, 2):
                name = f"{tensors} tensor{'s' if tensors > 1 else ''}, {changed:.0%} changed, {consumers} consumer" + \
                    ("s" if consumers > 1 else "")
                rows, locals_, raws = one_case(build, directory / f"case-{tensors}-{changed}-{consumers}", args, tensors,
                                               changed, consumers, "1gbit")
                print(row_of(name, rows, locals_, raws, consumers == 1), flush=True)
                medians[tensors, changed, consumers] = statistics.median(row.whole for row in rows)
                shutil.rmtree(directory / f"case-{tensors}-{changed}-{consumers}")
    print()
    for tensors in (1, 16):
        for changed in (1.0, 0.25):
            print(f"- {tensors} tensors, {changed:.0%} changed: two consumers ÷ one "
                  f"{medians[tensors, changed, 2] / medians[tensors, changed, 1]:.2f}")
    print(flush=True)


def run(build, directory, args):
    deliveries(build, directory, args)
