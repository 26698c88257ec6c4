"""Part `subset` of the net bench: 5 % of a model's layers through their views over a link of 1 Gbit; against copying the
whole file first, and against h5py on sshfs."""

import shutil
import statistics
import subprocess
import time

from measure import drop_caches
from net_nodes import FILE, MIB, Cluster, cold_mount, interface_bytes, publish, random_tensors, warm, write_model
from net_others import Sshd, scp, sshfs

LAYERS, EACH = 100, 4 * MIB
WANTED = [f"layer.{i}.weight" for i in range(7, LAYERS, 20)]
SPARE = 64 << 10
BURST = "256k"

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


def read_views(mount):
    begin = time.perf_counter()
    for name in WANTED:
        (mount.version("subset", 1) / "tensors" / f"{name}.npy").read_bytes()
    return time.perf_counter() - begin


def through_views(node):
    """(seconds, payload bytes, bytes on the interface)."""
    with cold_mount(node, moves=len(WANTED) * EACH) as mount:
        payload, (_, received) = node.fetched("peer"), interface_bytes(node.host)
        took = read_views(mount)
    return took, node.fetched("peer") - payload, interface_bytes(node.host)[1] - received


def h5_seconds(sshd, host, where, directory):
    drop_caches()
    warm(where / "model.h5")
    with sshfs(sshd, host, where, directory / "h5mount") as mount:
        out = subprocess.run(["/usr/bin/python3", "-c", READ_H5, mount / "model.h5", *WANTED], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    (directory / "h5mount").rmdir()
    return float(out)


def run(_build, directory, args):
    tensors = random_tensors(LAYERS, EACH, seed="subset")
    model = write_model(directory / "model", tensors)
    with Cluster(directory, peers=True) as cluster:
        one, two = (cluster.node("--provider", args.provider) for _ in range(2))
        publish(cluster, one, model, "subset")
        for node in (one, two):
            node.host.shape("1gbit", burst=BURST)
        with Sshd(one.host, directory) as sshd:
            copy = scp(sshd, two.host, model / FILE, directory / "copy")
            ours, copies, h5 = [], [], []
            where = make_h5(directory, tensors)
            for _ in range(args.pairs):
                ours.append(through_views(two))
                warm(model / FILE)
                copies.append(copy())
                if where:
                    h5.append(h5_seconds(sshd, two.host, where, directory))
    report(ours, copies, h5)


def report(ours, copies, h5):
    asked = len(WANTED) * EACH
    took, payload, received = (statistics.median(column) for column in zip(*ours))
    ratio = statistics.median(copy / own[0] for copy, own in zip(copies, ours))
    allowed = 1.02 * asked + SPARE
    print(f"{len(WANTED)} of {LAYERS} layers of {LAYERS * EACH // MIB} MiB, 1 Gbit/s, burst {BURST}, MTU 1500\n")
    print("| | median | goal | met |\n|---|---|---|---|")
    print(f"| bytes asked for | {asked} | | |")
    print(f"| payload | {payload:.0f} | ≤ {allowed:.0f} | {'yes' if payload <= allowed else 'NO'} |")
    print(f"| received by the interface | {received:.0f} | | |")
    print(f"| through the views | {took:.3f} s | | |")
    print(f"| scp of the whole file ÷ views | {statistics.median(copies):.3f} s: {ratio:.1f} | ≥ 15 | "
          f"{'yes' if ratio >= 15 else 'NO'} |")
    if h5:
        print(f"| h5py of the same layers, .h5 on sshfs, ÷ views | {statistics.median(h5):.3f} s: "
              f"{statistics.median(h5) / took:.1f} | | |", flush=True)
