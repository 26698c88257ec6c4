"""Part `subset` of the net bench: 5 % of a model's layers through their views over a link of 1 Gbit; against copying the
whole file first, and against h5py on sshfs."""

import concurrent.futures
import shutil
import statistics
import subprocess
import time

from measure import drop_caches, interval, seconds
from net_nodes import (FILE, MIB, Account, Cluster, Wire, cold_mount, peer_reads, publish, random_tensors, warm,
                       write_model)
from net_others import Sshd, open_session, scp, sshfs

LAYERS, EACH = 100, 4 * MIB
WANTED = [f"layer.{i}.weight" for i in range(7, LAYERS, 20)]
SPARE = 64 << 10
BURST = "256k"
GOAL = 15

MAKE_H5 = """
import sys, h5py, numpy
with h5py.File(sys.argv[2], "w") as out:
    for i in range(int(sys.argv[3])):
        raw = open(sys.argv[1] + f"/{i}.raw", "rb").read()
        out[f"layer.{i}.weight"] = numpy.frombuffer(raw, "u1")
"""
READ_H5 = """
import sys, time, h5py
begin = time.perf_counter()
with h5py.File(sys.argv[1], "r") as file:
    for name in sys.argv[2:]:
        file[name][()]
print(time.perf_counter() - begin)
"""


def make_h5(directory, tensors):
    """The same tensors in an HDF5 file; None where there is no h5py."""
    raw = directory / "raw"
    raw.mkdir()
    for i in range(LAYERS):
        (raw / f"{i}.raw").write_bytes(tensors[f"layer.{i}.weight"][2])
    (directory / "h5").mkdir()
    done = subprocess.run(["/usr/bin/python3", "-c", MAKE_H5, raw, directory / "h5/model.h5", str(LAYERS)], check=False,
                          stderr=subprocess.DEVNULL)
    shutil.rmtree(raw)
    return directory / "h5" if done.returncode == 0 else None


class Views:
    """Reads the wanted layers through their views, so many at a time, cold; what moved for it."""

    def __init__(self, nodes, at_once):
        self.nodes, self.at_once, self.account = nodes, at_once, Account()
        self.took, self.kept, self.read, self.received, self.packets = [], [], [], [], []

    def __call__(self):
        node = self.nodes[1]
        with cold_mount(node, moves=len(WANTED) * EACH) as mount:
            kept, read, wire = node.fetched("peer"), peer_reads(node), Wire(node.host)
            with self.account.measured_mount(mount, *self.nodes):
                self.took.append(self.seconds(mount.tensors("subset", 1)))
            after = Wire(node.host)
            self.kept.append(node.fetched("peer") - kept)
            self.read.append(peer_reads(node) - read)
        self.received.append(after.received - wire.received)
        self.packets.append(after.received_packets - wire.received_packets)
        return self.took[-1]

    def seconds(self, tensors):
        with concurrent.futures.ThreadPoolExecutor(self.at_once) as pool:
            begin = time.perf_counter()
            sizes = list(pool.map(lambda name: len((tensors / f"{name}.npy").read_bytes()), WANTED))
            took = time.perf_counter() - begin
        if min(sizes) < EACH:
            raise RuntimeError("a view is too short")
        return took


class WholeCopy:
    """The whole file through an ssh session that is open already: by scp, or by cp from an sshfs, whatever is quicker."""

    def __init__(self, sshd, nodes, model, directory, options):
        self.nodes, self.model, self.target, self.account = nodes, model, directory / "copy", Account()
        self.sshd, self.directory = sshd, directory
        self.by_scp = scp(sshd, nodes[1].host, model / FILE, self.target, options)
        first = {"scp in an open session": self.by_scp, "cp from a mounted sshfs": self.by_cp}
        self.tried = {name: self.cold(way) for name, way in first.items()}
        self.name = min(self.tried, key=self.tried.get)
        self.way = first[self.name]

    def by_cp(self):
        where = self.directory / "copymount"
        with sshfs(self.sshd, self.nodes[1].host, self.model, where) as mount:
            took = seconds("cp", mount / FILE, self.target)
        where.rmdir()
        return took

    def cold(self, way):
        drop_caches()
        warm(self.model / FILE)
        try:
            return way()
        finally:
            self.target.unlink(missing_ok=True)  # before it is on its way to a disk: that would be the next side's loss

    def __call__(self):
        with self.account.measured(**{"sshd and its sessions": [self.sshd.process.pid]}):
            return self.cold(self.way)


class FromH5:
    """h5py over an sshfs that is mounted already; None where there is no h5py."""

    def __init__(self, sshd, nodes, directory, tensors):
        self.sshd, self.host, self.directory, self.account = sshd, nodes[1].host, directory, Account()
        self.where = make_h5(directory, tensors)
        self.received = []

    def __call__(self):
        drop_caches()
        warm(self.where / "model.h5")
        with sshfs(self.sshd, self.host, self.where, self.directory / "h5mount") as mount:
            before = Wire(self.host).received
            with self.account.measured(**{"sshd and its sessions": [self.sshd.process.pid]}):
                out = subprocess.run(["/usr/bin/python3", "-c", READ_H5, mount / "model.h5", *WANTED], check=True,
                                     stdout=subprocess.PIPE, text=True).stdout
            self.received.append(Wire(self.host).received - before)
        (self.directory / "h5mount").rmdir()
        return float(out)


def run(_build, directory, args):
    tensors = random_tensors(LAYERS, EACH, seed="subset")
    model = write_model(directory / "model", tensors)
    with Cluster(directory, peers=True) as cluster:
        nodes = [cluster.node("--provider", args.provider) for _ in range(2)]
        publish(cluster, nodes[0], model, "subset")
        for node in nodes:
            node.host.shape("1gbit", burst=BURST)
        with Sshd(nodes[0].host, directory) as sshd, open_session(sshd, nodes[1].host, directory) as options:
            whole = WholeCopy(sshd, nodes, model, directory, options)
            h5 = FromH5(sshd, nodes, directory, tensors)
            views = [Views(nodes, at_once) for at_once in (1, len(WANTED))]
            sides = [*views, whole, *([h5] if h5.where else [])]
            taken = {side: [] for side in sides}
            for number in range(args.pairs):
                for side in sides if number % 2 else reversed(sides):
                    taken[side].append(side())
        mtu = Wire(nodes[1].host).mtu
    report(mtu, views, whole, h5, taken)


def row(name, value, goal="", met=""):
    print(f"| {name} | {value} | {goal} | {met} |")


def ratio_row(name, ours, theirs, goal=None):
    """Theirs ÷ ours, pair by pair."""
    ratios = [their / own for own, their in zip(ours, theirs)]
    (low, high), median = interval(ratios), statistics.median(ratios)
    row(name, f"{statistics.median(theirs):.3f} s: {median:.1f} ({low:.1f} to {high:.1f})",
        *([f"≥ {goal}", "yes" if median >= goal else "NO"] if goal else []))


def report(mtu, views, whole, h5, taken):
    asked = len(WANTED) * EACH
    allowed = 1.02 * asked + SPARE
    print(f"{len(WANTED)} of {LAYERS} layers of {LAYERS * EACH // MIB} MiB, default mount options, 1 Gbit/s, burst {BURST}, "
          f"MTU {mtu}\n")
    print("| | median (95 % interval) | goal | met |\n|---|---|---|---|")
    row("bytes asked for", asked)
    for side, how in zip(views, ("one view after the other", "the views at once")):
        read, kept = max(side.read), max(side.kept)
        received, packets = statistics.median(side.received), statistics.median(side.packets)
        low, high = interval(taken[side])
        row(f"{how}", f"{statistics.median(taken[side]):.3f} s ({low:.3f} to {high:.3f})")
        row("read from peers, at most", read, f"≤ {allowed:.0f}", "yes" if asked <= max(read, kept) <= allowed else "NO")
        row("kept of it, verified", f"{statistics.median(side.kept):.0f}")
        row("received by the interface", f"{received:.0f} bytes in {packets:.0f} packets of {received / packets:.0f}")
        ratio_row(f"the whole file by {whole.name}, ÷ these views", taken[side], taken[whole], GOAL)
        if h5.where:
            ratio_row("h5py of the same layers, .h5 on sshfs, ÷ these views", taken[side], taken[h5])
    print("\n- packets larger than the MTU are superframes, which these links never cut; the shaper counts the headers that their "
          "parts\n  would have")
    print("- ways to copy, tried once: " + ", ".join(f"{name} {took:.3f} s" for name, took in whole.tried.items()))
    for side, how in [*zip(views, ("one after the other", "at once")), (whole, "the copy"),
                      *([(h5, f"h5py, {statistics.median(h5.received):.0f} bytes received")] if h5.where else [])]:
        print(f"- {how}: {side.account.text()}", flush=True)
