"""Part `delay` of the publish bench: how long after a publish another node's watcher reads of it. The time is from the packet
with the publisher's transaction for etcd to the return of the watcher's read, less the same of a bare client of etcd on the same
hosts, in turn.

All hosts are name spaces of this machine, with one clock. A program that is run inside of one is this file again, with the
name of a function below; it prints a line "TIME_NS WHAT" for each thing that it sees."""

import base64
import contextlib
import ctypes
import ctypes.util
import http.client
import json
import os
import pathlib
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

TESTS = pathlib.Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "cluster")]
from measure import end_by_signals  # noqa: E402
from nodes import Cluster  # noqa: E402
from user_mount import UserMount  # noqa: E402
from weftlib import WEFT, environment, wait_until  # noqa: E402

GOALS_MS = {"wait": 1.0, "events": 1.0, "inotify": 1.6}
SECONDS_MAX = 60
KEY = base64.b64encode(b"/bench/publish_delay").decode()
IN_MOVED_TO = 0x80
SO_TIMESTAMPNS = 35


def tell(what, at=None):
    print(time.time_ns() if at is None else at, what, flush=True)


def post(connection, path, body):
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    return connection.getresponse()


def sniff():
    """When requests to etcd leave this host."""
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    packets.bind(("eth0", 0))
    packets.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    tell("ready")
    while True:
        data, ancillary, _, address = packets.recvmsg(1 << 16, 256)
        found = re.search(rb"POST /v3/kv/(txn|put) ", data)
        if found and address[2] == socket.PACKET_OUTGOING:
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2][:16])
            tell(found[1].decode(), seconds * 10**9 + nanoseconds)


def put(address):
    connection = http.client.HTTPConnection(address)
    tell("ready")
    for line in sys.stdin:
        post(connection, "/v3/kv/put", {"key": KEY, "value": base64.b64encode(line.encode()).decode()}).read()
        tell("done")


def watch(address):
    answer = post(http.client.HTTPConnection(address), "/v3/watch", {"create_request": {"key": KEY}})
    answer.readline()
    tell("ready")
    while True:
        answer.readline()
        tell("etcd")


def events(path):
    with open(path, "rb", buffering=0) as file:
        tell("ready")
        while True:
            line = file.read(1 << 16)
            tell(json.loads(line.split(b"\n")[0])["event"])


def inotify(path):
    libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
    fd = libc.inotify_init1(0)
    if libc.inotify_add_watch(fd, os.fsencode(path), IN_MOVED_TO) < 0:
        raise OSError(ctypes.get_errno(), path)
    tell("ready")
    while b"latest" in os.read(fd, 1 << 16):
        tell("publish")


def watches(pid):
    """Whether the process has a file of inotify open. Others that it has come and go."""
    with contextlib.suppress(FileNotFoundError):
        return any("inotify" in os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
    return False


def wait(store, newer_than):
    with subprocess.Popen([WEFT, "--store", store, "wait", "m", "--newer-than", newer_than], env=environment(),
                          stdout=subprocess.PIPE) as process:
        try:
            wait_until(lambda: watches(process.pid))
            tell("ready")
            process.stdout.readline()
            tell("publish")
        finally:
            process.kill()


class Inside:
    """One of the functions above, on a host."""

    def __init__(self, host, function, *words):
        self.process = subprocess.Popen([*host.inside, sys.executable, __file__, function.__name__, *map(str, words)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.seen, self.taken = [], 0
        threading.Thread(target=self.read, daemon=True).start()
        self.next("ready")

    def read(self):
        for line in self.process.stdout:
            at, what = line.split()
            self.seen.append((int(at), what))

    def next(self, what):
        """When it saw this next."""
        while True:
            wait_until(lambda: len(self.seen) > self.taken, seconds_max=SECONDS_MAX)
            at, seen = self.seen[self.taken]
            self.taken += 1
            if seen == what:
                return at

    def first_after(self, what, begin):
        """The first of these after that time."""
        def found():
            return [at for at, seen in self.seen[-50:] if seen == what and at > begin]

        wait_until(found, seconds_max=SECONDS_MAX)
        return min(found())

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.terminate()  # it ends what it runs
        self.process.communicate()


class Bench:
    def __init__(self, cluster, directory):
        self.directory = directory
        self.publisher, self.reader = cluster.node(), cluster.node()
        address = cluster.etcd.endpoint.removeprefix("http://")
        self.sniffer = cluster.stack.enter_context(Inside(self.publisher.host, sniff))
        self.putter = cluster.stack.enter_context(Inside(self.publisher.host, put, address))
        self.watcher = cluster.stack.enter_context(Inside(self.reader.host, watch, address))
        self.number = 0

    def mounted(self, options=None):
        """The watcher's mount."""
        return UserMount(self.reader.store, self.reader.directory / "mnt", options)

    def etcd_ms(self):
        begin = time.time_ns()
        self.putter.process.stdin.write("x\n")
        end = self.watcher.next("etcd")
        self.putter.next("done")
        return (end - self.sniffer.first_after("put", begin)) / 1e6

    def publish(self):
        """Once the version before is on a disk: that is a transaction too."""
        wait_until(lambda: self.publisher.daemon.status()["memory"]["versions"] == 0)
        self.number += 1
        path = self.directory / "model.bin"
        path.write_bytes(os.urandom(1000))
        begin = time.time_ns()
        self.publisher.store.publish(path, name="m", durability="memory")
        return begin

    def publish_ms(self, watcher):
        begin = self.publish()
        end = watcher.next("publish")
        return (end - self.sniffer.first_after("txn", begin)) / 1e6

    def publish_to_wait_ms(self):
        with Inside(self.reader.host, wait, self.reader.store.path, self.number) as watcher:
            return self.publish_ms(watcher)


def measured(bench, rounds):
    """Way -> [(of etcd, ours)], in milliseconds."""
    bench.publish()
    wait_until(lambda: bench.reader.knows("m@1"))
    pairs = {"wait": [], "events": [], "inotify": []}
    with bench.mounted() as mount, Inside(bench.reader.host, events, mount / ".weft/events") as watcher:
        for _ in range(rounds):
            pairs["events"].append((bench.etcd_ms(), bench.publish_ms(watcher)))
    for _ in range(rounds):
        pairs["wait"].append((bench.etcd_ms(), bench.publish_to_wait_ms()))
    with bench.mounted("announce") as mount, Inside(bench.reader.host, inotify, mount / "models/m") as watcher:
        for _ in range(rounds):
            pairs["inotify"].append((bench.etcd_ms(), bench.publish_ms(watcher)))
    return pairs


def p95(values):
    return statistics.quantiles(values, n=20)[-1]


def print_table(pairs):
    print("\nBest case: stores and etcd lie in memory, links are not shaped. The publisher has durability memory. The mount has "
          "default options,\nand announce for inotify.")
    print("\n| watcher on another node | median | p95 | etcd alone: median | p95 | difference of medians | goal | met | "
          "times |")
    print("|---|---|---|---|---|---|---|---|---|")
    for way, both in pairs.items():
        etcd, ours = zip(*both)
        difference = statistics.median(ours) - statistics.median(etcd)
        print(f"| {way} | {statistics.median(ours):.2f} ms | {p95(ours):.2f} ms | {statistics.median(etcd):.2f} ms | "
              f"{p95(etcd):.2f} ms | {difference:.2f} ms | ≤ {GOALS_MS[way]} ms | "
              f"{'yes' if difference <= GOALS_MS[way] else 'NO'} | {len(both)} |")


def run(_build, _directory, args):
    """The stores and etcd's data lie in memory: a sync costs nothing there."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory, \
            Cluster(pathlib.Path(directory), peers=True) as cluster:
        print_table(measured(Bench(cluster, pathlib.Path(directory)), args.times))


if __name__ == "__main__":
    end_by_signals()
    {function.__name__: function for function in (sniff, put, watch, events, inotify, wait)}[sys.argv[1]](*sys.argv[2:])
