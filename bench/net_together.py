"""Part `together` of the net bench: eight nodes that begin with one model at once, against one node alone; every link so
slow that the machine is not what holds them up. And the memory of the daemon that serves them all."""

import concurrent.futures
import contextlib
import pathlib
import statistics
import threading
import time

from net_nodes import FILE, MIB, Cluster, Cores, cat, cold_mount, forget, publish, random_tensors, write_model

NODES = 8
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


def read_at_once(readers):
    """Seconds until the last has read the whole file, cold."""
    with contextlib.ExitStack() as stack:
        return read_through([stack.enter_context(cold_mount(reader, "cold=fetch", COUNT * EACH)) for reader in readers])


def read_through(mounts):
    with concurrent.futures.ThreadPoolExecutor(len(mounts)) as pool:
        begin = time.perf_counter()
        list(pool.map(lambda mount: cat(mount.version("model", 1) / FILE), mounts))
        return time.perf_counter() - begin


def served(node):
    return node.daemon.status()["exchange"]["served_bytes"]


def measure(holder, readers, pairs):
    alone, together, copies, cores = [], [], [], Cores()
    size = COUNT * EACH
    with Peak(holder.daemon.pid) as peak:
        for _ in range(pairs):
            for reader in readers:
                forget(reader)
            alone.append(read_at_once(readers[:1]))
            before = served(holder)
            with cores.measured():
                together.append(read_at_once(readers))
            copies.append((served(holder) - before) / size)
    return alone, together, copies, cores.busy, peak.bytes


def run(_build, directory, args):
    model = write_model(directory / "model", random_tensors(COUNT, EACH, seed="together"))
    with Cluster(directory, peers=True) as cluster:
        holder, *readers = (cluster.node("--provider", args.provider) for _ in range(NODES + 1))
        publish(cluster, holder, model, "model")
        for node in cluster.nodes:
            node.host.shape(LINK)
        report(*measure(holder, readers, args.pairs))


def report(alone, together, copies, busy, peak):
    ratio = statistics.median(b / a for a, b in zip(alone, together))
    sent = statistics.median(copies)
    cores = statistics.median(busy)

    def met(holds):
        return "yes" if holds else "NO"
    print(f"{COUNT * EACH // MIB} MiB, one holder, links of {LINK}/s each way\n")
    print("| | median | goal | met |\n|---|---|---|---|")
    print(f"| one node alone | {statistics.median(alone):.2f} s | | |")
    print(f"| {NODES} nodes at once | {statistics.median(together):.2f} s | | |")
    print(f"| at once ÷ alone | {ratio:.2f} | ≤ 1.5 | {met(ratio <= 1.5)} |")
    print(f"| copies that the holder sent | {sent:.2f} | ≤ 2.5 | {met(sent <= 2.5)} |")
    print(f"| the machine was busy | {cores:.0%} | < 80 % | {met(cores < 0.8)} |")
    print(f"| memory of the holder's weftd at its peak | {peak / MIB:.0f} MiB | ≤ 256 MiB | {met(peak <= 256 * MIB)} |",
          flush=True)
