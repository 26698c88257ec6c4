"""Match: the index of architectures against EvoStore's baseline, against its own size, and what an addition costs."""

import contextlib
import json
import shutil
import subprocess
import time

import measure

SPACES = [(10, "seq"), (50, "seq"), (10, "skip"), (50, "skip")]
CLIENTS = [1, 4, 16]
QUERIES = 4_000  # of ours, over all clients
GOAL_RATIO, GOAL_P99_US, GOAL_ADD_US = 100, 1_000, 2_000


class Redis:
    """A server of our own on a Unix socket, without persistence, as the artifact sets it."""

    def __init__(self, directory):
        self.socket = directory / "redis.sock"
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no",
             "--dir", directory], stdout=subprocess.DEVNULL)
        for _ in range(100):
            if self.socket.exists():
                return
            time.sleep(0.05)
        self.stop()
        raise RuntimeError("redis-server does not answer")

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)


@contextlib.contextmanager
def redis_in(directory):
    server = Redis(directory)
    try:
        yield server
    finally:
        server.stop()


class Bench:
    def __init__(self, build, directory):
        self.program = build / "bench/weft_bench_lineage_match"
        self.directory = directory

    def ask(self, *words):
        out = measure.run(self.program, *words)
        return json.loads(out) if out else None

    def filled(self, layers, space, count):
        store = self.directory / "store"
        shutil.rmtree(store, ignore_errors=True)
        return store, self.ask("fill", store, layers, space, count)

    def ours(self, store, layers, space, clients):
        self.ask("query", store, layers, space, clients, 200)  # warm
        return self.ask("query", store, layers, space, clients, QUERIES // clients)


def yes(met):
    return "yes" if met else "NO"


def compare(bench, count):
    """Figure 1."""
    print(f"\n{count:,} architectures; a query is from a snapshot to the best version. Redis: EvoStore's baseline in C++,"
          " pipelined, over a Unix socket, with its global lock and without; it reads every list for each query.\n")
    print("| space | clients | weft p50 | weft p99 | Redis p50, no lock | Redis p50, lock | better ÷ weft, p50 | goal | met |"
          " same answers |\n|---|---|---|---|---|---|---|---|---|---|")
    for layers, space in SPACES:
        store, _ = bench.filled(layers, space, count)
        with redis_in(bench.directory) as redis:
            bench.ask("redis-fill", redis.socket, layers, space, count)
            for clients in CLIENTS:
                ours = bench.ours(store, layers, space, clients)
                each = 3 if clients == 1 else 1
                free, lock = (bench.ask("redis-query", redis.socket, layers, space, clients, each, mode)
                              for mode in ("free", "lock"))
                same = all(peer["shared"] == ours["shared"][:len(peer["shared"])] for peer in (free, lock))
                ratio = min(free["p50_us"], lock["p50_us"]) / ours["p50_us"]
                met = ratio >= GOAL_RATIO and (clients > 1 or ours["p99_us"] < GOAL_P99_US)
                print(f"| {space}-{layers} | {clients} | {ours['p50_us']:.0f} µs | {ours['p99_us']:.0f} µs | "
                      f"{free['p50_us'] / 1e6:.2f} s | {lock['p50_us'] / 1e6:.2f} s | {ratio:,.0f} | ≥ 100, and p99 < 1 ms for"
                      f" one client | {yes(met)} | {yes(same)} |", flush=True)


def grow(bench, counts):
    """Figures 2 and 4: the largest store then gets more, one by one."""
    print("\nThe index alone is filled, by the code that a publish runs, 20,000 versions a transaction. An addition is the"
          " architecture's part of a publish, inside its transaction; the commit after it syncs the index to disk.\n")
    print("| space | versions | match p50 | match p99 | rows, bytes a version | index file, bytes a version | addition p50 | addition p99 | goal | met |"
          " commit p50 |\n|---|---|---|---|---|---|---|---|---|---|---|")
    for layers, space in [(50, "seq"), (10, "skip")]:
        for count in counts:
            store, facts = bench.filled(layers, space, count)
            ours = bench.ours(store, layers, space, 1)
            added = bench.ask("add", store, layers, space, count, 300)
            print(f"| {space}-{layers} | {count:,} | {ours['p50_us']:.0f} µs | {ours['p99_us']:.0f} µs | "
                  f"{facts['row_bytes_per_version']:,.0f} | {facts['file_bytes_per_version']:,.0f} | {added['p50_us']:.0f} µs | {added['p99_us']:.0f} µs | ≤ 2 ms | "
                  f"{yes(added['p99_us'] <= GOAL_ADD_US)} | {added['commit_p50_us'] / 1e3:.1f} ms |", flush=True)


def run(build, directory, quick):
    bench = Bench(build, directory)
    compare(bench, 6_000 if quick else 60_000)
    grow(bench, (1_000, 10_000) if quick else (10_000, 100_000, 1_000_000))
