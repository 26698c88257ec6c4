"""Part `together` of the net bench: eight nodes that begin with one model at once, against one node alone; every link so
slow that the machine is not what holds them up. And the memory of a daemon that serves eight at full speed, to each another
model."""

import concurrent.futures
import contextlib
import pathlib
import statistics
import threading
import time

from measure import Pairs, interval
from net_nodes import (FILE, MIB, Account, Cluster, Wire, cat, cold_mount, forget, publish, random_tensors, warm,
                       run_each, write_model)

NODES = 8
MEMORY_MAX = 256 * MIB
COUNT, EACH = 32, 2 * MIB
LINK = "200mbit"


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


def read_through(files):
    """Seconds until the last has read its file."""
    with concurrent.futures.ThreadPoolExecutor(len(files)) as pool:
        begin = time.perf_counter()
        list(pool.map(cat, files))
        return time.perf_counter() - begin


class Start:
    """Some nodes begin with the model at once, and no other has any of it but the holder; what the holder gave for it."""

    def __init__(self, holder, everybody, readers):
        self.holder, self.everybody, self.readers = holder, everybody, readers
        self.copies, self.sent, self.account = [], [], Account()

    def __call__(self):
        for reader in self.everybody:
            forget(reader)
        size = COUNT * EACH
        with contextlib.ExitStack() as stack:
            mounts = [stack.enter_context(cold_mount(reader, "cold=fetch", size)) for reader in self.readers]
            served, sent = self.holder.exchange()["served_bytes"], Wire(self.holder.host).sent
            servers = [pid for mount in mounts for pid in mount.server_pids()]
            with self.account.measured(**{"the holder's weftd": [self.holder.daemon.pid], "mounts": servers,
                                          "the others' weftd": [reader.daemon.pid for reader in self.readers]}):
                took = read_through([mount.version("model", 1) / FILE for mount in mounts])
            self.sent.append((Wire(self.holder.host).sent - sent) / size)
            self.copies.append((self.holder.exchange()["served_bytes"] - served) / size)
        return took


def at_once(directory, args):
    model = write_model(directory / "model", random_tensors(COUNT, EACH, seed="together"))
    with Cluster(directory, peers=True) as cluster:
        holder, *readers = (cluster.node("--provider", args.provider) for _ in range(NODES + 1))
        publish(cluster, holder, model, "model")
        for node in cluster.nodes:
            node.host.shape(LINK)
        alone, together = Start(holder, readers, readers[:1]), Start(holder, readers, readers)
        report(Pairs.alternate(args.pairs, alone, together), alone, together)


def met(holds):
    return "yes" if holds else "NO"


def report(pairs, alone, together):
    ratios = pairs.ratios()
    (low, high), ratio = interval(ratios), statistics.median(ratios)
    copies, sent = statistics.median(together.copies), statistics.median(together.sent)
    busy = statistics.median(together.account.cores.busy)
    print(f"{COUNT * EACH // MIB} MiB, one holder, links of {LINK}/s each way, {len(ratios)} pairs that take turns\n")
    print("| | median (95 % interval) | goal | met |\n|---|---|---|---|")
    print(f"| one node alone | {statistics.median(pairs.ours):.2f} s | | |")
    print(f"| {NODES} nodes at once | {statistics.median(pairs.peers):.2f} s | | |")
    print(f"| at once ÷ alone | {ratio:.2f} ({low:.2f} to {high:.2f}) | ≤ 1.5 | {met(ratio <= 1.5)} |")
    print(f"| copies read from the holder, as readers said | {copies:.2f} | | |")
    print(f"| copies that the holder's interface sent | {sent:.2f} | ≤ 2.5 | {met(max(sent, copies) <= 2.5)} |")
    print(f"| the machine was busy | {busy:.0%} | < 80 % | {met(busy < 0.8)} |\n")
    print(f"- {NODES} at once: {together.account.text()}\n- one alone: {alone.account.text()}\n", flush=True)


def serving(directory, args):
    """Eight clients read models of their own, large ones, from one holder; links as fast as the machine is."""
    each = max(64, args.megabytes // NODES) * MIB
    account = Account()
    with Cluster(directory, peers=True) as cluster:
        holder, *readers = (cluster.node("--provider", args.provider) for _ in range(NODES + 1))
        for i in range(NODES):
            model = write_model(directory / f"model{i}", random_tensors(each // (16 * MIB), 16 * MIB, seed=f"serving {i}"))
            publish(cluster, holder, model, f"model{i}")
        with contextlib.ExitStack() as stack:
            mounts = [stack.enter_context(cold_mount(reader, moves=each)) for reader in readers]
            files = [mount.version(f"model{i}", 1) / FILE for i, mount in enumerate(mounts)]
            for path in (holder.directory / "store").rglob("*.pack"):
                warm(path)
            before, served = anonymous(holder.daemon.pid), holder.exchange()["served_bytes"]
            with Peak(holder.daemon.pid) as peak, account.measured(**{
                    "the holder's weftd": [holder.daemon.pid], "the others' weftd": [one.daemon.pid for one in readers],
                    "mounts": [pid for mount in mounts for pid in mount.server_pids()]}):
                took = read_through(files)
            served = holder.exchange()["served_bytes"] - served
    if served < NODES * each:
        raise RuntimeError("the holder did not give all")
    print(f"| {NODES} clients at once, each its own model of {each // MIB} MiB, links not shaped | | goal | met |")
    print("|---|---|---|---|")
    print(f"| read by all | {NODES * each / took / MIB:.0f} MiB/s | | |")
    print(f"| memory of the holder's weftd before | {before / MIB:.0f} MiB | | |")
    print(f"| at its peak | {peak.bytes / MIB:.0f} MiB | ≤ {MEMORY_MAX // MIB} MiB | {met(peak.bytes <= MEMORY_MAX)} |\n")
    print(f"- {account.text()}", flush=True)


def run(_build, directory, args):
    run_each((at_once, serving), directory, args)
