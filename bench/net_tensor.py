"""Part `tensor` of the net bench: one 4 KiB tensor that another node has, read through a mount; against the round trip of
a raw 4 KiB fi_read between the same hosts. In blocks that take turns: the machine's moods last longer than one."""

import os
import statistics
import time

from measure import interval
from net_nodes import FILE, Account, Cluster, Raw, arrived, forget, mounted, publish, random_tensors, write_model

BYTES = 4096
BLOCK = 30
GOAL = 8


def read_seconds(path):
    begin = time.perf_counter()
    file = os.open(path, os.O_RDONLY)
    while os.read(file, 1 << 20):
        pass
    os.close(file)
    return time.perf_counter() - begin


def microseconds(path, block):
    """The median of reading each tensor of a block once."""
    return statistics.median(1e6 * read_seconds(path / f"layer.{block * BLOCK + i}.weight.npy") for i in range(BLOCK))


class Blocks:
    """Cold reads, the same again, and raw trips: medians of each block, and who took the CPU."""

    def __init__(self, tensors, raw, mount, nodes):
        self.tensors, self.raw, self.mount, self.nodes = tensors, raw, mount, nodes
        self.cold, self.again, self.trips = [], [], []
        self.ours, self.theirs = Account(), Account()

    def take_ours(self, block):
        with self.ours.measured_mount(self.mount, *self.nodes):
            self.cold.append(microseconds(self.tensors, block))
        self.again.append(microseconds(self.tensors, block))

    def take_raw(self, _block):
        with self.theirs.measured(server=[self.raw.server.pid]):
            self.trips.append(self.raw.read("memory", BYTES, 1, BYTES * BLOCK)[2])

    def take(self, block):
        order = [self.take_ours, self.take_raw]
        for side in order if block % 2 else reversed(order):
            side(block)

    def ratios(self):
        return [cold / trip for cold, trip in zip(self.cold, self.trips)]


def run(build, directory, args):
    count = max(6, 2 * args.pairs)
    model = write_model(directory / "model", random_tensors(count * BLOCK, BYTES, seed="tensor"))
    with Cluster(directory, peers=True) as cluster:
        one, two = (cluster.node("--provider", args.provider) for _ in range(2))
        publish(cluster, one, model, "small")
        with mounted(two) as mount, Raw(build, args.provider, one.host, two.host, model / FILE) as raw:
            tensors = mount.tensors("small", 1)
            os.listdir(tensors)
            read_seconds(tensors / "layer.0.weight.npy")  # the session is there
            forget(two)
            os.listdir(tensors)
            blocks, before = Blocks(tensors, raw, mount, (one, two)), arrived(two)
            for block in range(count):
                blocks.take(block)
            if arrived(two) - before < count * BLOCK * BYTES:
                raise RuntimeError("tensors were local before they were read")
    report(blocks, args.provider)


def report(blocks, provider):
    def cell(values, digits=0):
        low, high = interval(values)
        return f"{statistics.median(values):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
    ratios = blocks.ratios()
    met = "yes" if statistics.median(ratios) <= GOAL else "NO"
    print(f"One tensor of {BYTES} bytes, open to close, default mount options; {len(ratios)} blocks of {BLOCK} in turn with "
          f"blocks of raw trips, provider {provider}\n")
    print("| medians of blocks | median (95 % interval) | goal | met |\n|---|---|---|---|")
    print(f"| cold, from the other node | {cell(blocks.cold)} µs | | |")
    print(f"| again, from this node | {cell(blocks.again)} µs | | |")
    print(f"| raw fi_read and its answer | {cell(blocks.trips, 1)} µs | | |")
    print(f"| cold ÷ raw, block by block | {cell(ratios, 1)} | ≤ {GOAL} | {met} |\n")
    print(f"- a block of cold reads: {blocks.ours.text()}")
    print(f"- a block of raw trips, with the beginning of its process: {blocks.theirs.text()}", flush=True)
