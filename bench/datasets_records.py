"""Part `records` of the bench of data sets: nodes that each read random records of a data set on another node, over slow links,
with default mount options. It counts reads that fail, and bytes that the holder sent although no node received and verified
them."""

import collections
import concurrent.futures
import io
import os
import pathlib
import random
import tarfile
import tempfile
import time

from net_nodes import Cluster, Wire, arrived, cold_mounts, shape, wait_idle, wait_until

SHARDS, MEMBERS, BYTES = 4, 30, 110_000
READS = 6  # of each node
IDLE_SECONDS_MAX = 1800  # transfers may go on for long after their readers gave up
ROWS = [(1, 20), (16, 20), (8, 200)]  # nodes, Mbit/s of each link


def write(directory):
    """(tar, member) -> bytes of each record of a data set that this writes."""
    directory.mkdir()
    records = {}
    for shard in range(SHARDS):
        with tarfile.open(directory / f"{shard:02}.tar", "w") as tar:
            for number in range(MEMBERS):
                member = tarfile.TarInfo(f"{number:05}")
                member.size = BYTES
                records[f"{shard:02}.tar", member.name] = data = os.urandom(BYTES)
                tar.addfile(member, io.BytesIO(data))
    return records


class Reader:
    """Reads random records through a mount, one after the other."""

    def __init__(self, mount, records, seed):
        self.directory, self.records = mount.path / "records/set/1", records
        self.wanted = random.Random(seed).sample(sorted(records), READS)
        self.seconds, self.failures, self.read = [], [], 0

    def __call__(self):
        for tar, name in self.wanted:
            begin = time.perf_counter()
            try:
                data = (self.directory / tar / "files" / name).read_bytes()
                if data != self.records[tar, name]:
                    raise RuntimeError(f"wrong bytes in {tar}/{name}")
                self.read += len(data)
            except OSError as failure:
                self.failures.append(failure.strerror)
            self.seconds.append(time.perf_counter() - begin)


def row(directory, provider, count, mbit):
    """The line of a row."""
    records = write(directory / "source")
    with Cluster(directory, peers=True) as cluster:
        holder, *nodes = (cluster.node("--provider", provider) for _ in range(count + 1))
        holder.store.weft("import", "--dataset", directory / "source", "--name", "set")
        for node in nodes:
            wait_until(lambda node=node: node.knows("set@1"), seconds_max=60, pause=0.05)
        shape(cluster.nodes, mbit)
        with cold_mounts(nodes) as mounts, concurrent.futures.ThreadPoolExecutor(count) as pool:
            readers = [Reader(mount, records, seed) for seed, mount in enumerate(mounts)]
            sent, kept, begin = Wire(holder.host).sent, sum(map(arrived, nodes)), time.perf_counter()
            for done in [pool.submit(reader) for reader in readers]:
                done.result()
            took = time.perf_counter() - begin
            wait_idle(*nodes, seconds_max=IDLE_SECONDS_MAX)
            sent, kept = Wire(holder.host).sent - sent, sum(map(arrived, nodes)) - kept
    failures = collections.Counter(failure for reader in readers for failure in reader.failures)
    slowest = max(seconds for reader in readers for seconds in reader.seconds)
    return "| " + " | ".join([
        f"{count}, {mbit} Mbit/s", f"{took:.2f} s", f"{slowest:.2f} s", f"{failures.total()} of {count * READS}"
        + "".join(f" ({number} × {reason})" for reason, number in failures.items()),
        f"{sum(reader.read for reader in readers) / 1e6:.1f} MB", f"{kept / 1e6:.1f} MB", f"{sent / 1e6:.1f} MB",
        f"{sent / kept:.2f}" if kept else "nothing received"]) + " |"


def run(_build, directory, args):
    print(f"{READS} random records of {BYTES} bytes for each node, one after the other, from {SHARDS} tars of {MEMBERS} records, "
          "default mount\noptions, links as fast each way\n")
    print("| nodes, links | all records | slowest read | failed reads | programs read | nodes received and verified "
          "| the holder sent | sent ÷ received |\n" + "|---" * 8 + "|")
    for count, mbit in ROWS:
        with tempfile.TemporaryDirectory(prefix="row.", dir=directory) as where:
            print(row(pathlib.Path(where), args.provider, count, mbit), flush=True)
    print(flush=True)
