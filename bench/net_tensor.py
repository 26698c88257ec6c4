"""Part `tensor` of the net bench: one 4 KiB tensor that another node has, read through a mount; against the round trip of
a raw 4 KiB fi_read between the same hosts."""

import os
import statistics
import time

from measure import interval
from net_nodes import FILE, Cluster, Raw, forget, publish, random_tensors, write_model

BYTES = 4096
GOAL = 8


def read_seconds(path):
    begin = time.perf_counter()
    file = os.open(path, os.O_RDONLY)
    while os.read(file, 1 << 20):
        pass
    os.close(file)
    return time.perf_counter() - begin


def microseconds(path, count):
    """Of reading each of `count` tensors once."""
    return [1e6 * read_seconds(path / f"layer.{i}.weight.npy") for i in range(count)]


def run(build, directory, args):
    count = 30 * args.pairs
    model = write_model(directory / "model", random_tensors(count, BYTES, seed="tensor"))
    with Cluster(directory, peers=True) as cluster:
        one, two = (cluster.node("--provider", args.provider) for _ in range(2))
        publish(cluster, one, model, "small")
        with two.mounted("cold=stream") as mount, Raw(build, args.provider, one.host, two.host, model / FILE) as raw:
            tensors = mount.version("small", 1) / "tensors"
            os.listdir(tensors)
            read_seconds(tensors / "layer.0.weight.npy")  # the session is there
            forget(two)
            os.listdir(tensors)
            cold = microseconds(tensors, count)
            warm = microseconds(tensors, count)
            trips = [raw.read("memory", BYTES, 1, BYTES * count)[2] for _ in range(args.pairs)]
    trip = statistics.median(trips)
    low, high = interval(cold)
    ratio = statistics.median(cold) / trip
    print(f"One tensor of {BYTES} bytes, open to close, {count} of them in turn, provider {args.provider}\n")
    print("| | median (95 % interval) | goal | met |\n|---|---|---|---|")
    print(f"| cold, from the other node | {statistics.median(cold):.0f} ({low:.0f} to {high:.0f}) µs | | |")
    print(f"| again, from this node | {statistics.median(warm):.0f} µs | | |")
    print(f"| raw fi_read and its answer | {trip:.1f} µs | | |")
    print(f"| cold ÷ raw | {ratio:.1f} | ≤ {GOAL} | {'yes' if ratio <= GOAL else 'NO'} |", flush=True)
