"""Match against EvoStore's baseline, figure by figure: spaces of architectures and numbers of clients."""

import contextlib
import subprocess
import time

import measure
from lineage import SPACES
from lineage_index import Samples, words_of, yes

GOAL_RATIO, GOAL_P99_US = 100, 1_000


class Redis:
    """A server of our own on a Unix socket, without persistence, as the artifact sets it. Only a filled data set is
    written once, so that the next run need not fill it again."""

    def __init__(self, directory, dump):
        self.socket = directory / "redis.sock"
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no",
             "--rdbcompression", "no", "--dir", dump.parent, "--dbfilename", dump.name], stdout=subprocess.DEVNULL)
        for _ in range(2400):
            if self.socket.exists() and self.command("PING") == "PONG":
                return
            time.sleep(0.05)
        self.stop()
        raise RuntimeError("redis-server does not answer")

    def command(self, *words):
        done = subprocess.run(["redis-cli", "-s", self.socket, *words], stdout=subprocess.PIPE, text=True, check=False)
        return done.stdout.strip()

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.socket.unlink(missing_ok=True)


@contextlib.contextmanager
def filled_redis(samples, directory, space, count):
    dump = samples.directory / f"{space}-{count}.rdb"
    server = Redis(directory, dump)
    try:
        if server.command("SCARD", "models") != str(count):
            server.command("FLUSHALL")
            samples.ask("redis-fill", server.socket, *words_of(space), count)
            if samples.kept:
                server.command("SAVE")
        yield server
    finally:
        server.stop()


def ask_redis(samples, redis, space, clients, args):
    each = args.redis_queries or (3 if clients == 1 else 1)
    return [samples.ask("redis-query", redis.socket, *words_of(space), clients, each, mode) for mode in ("free", "lock")]


def row(space, clients, ours, free, lock):
    same = all(peer["shared"] == ours["shared"][:len(peer["shared"])] for peer in (free, lock))
    ratio = min(free["p50_us"], lock["p50_us"]) / ours["p50_us"]
    met = ratio >= GOAL_RATIO and (clients > 1 or ours["p99_us"] < GOAL_P99_US)
    goal = "≥ 100, and p99 < 1 ms" if clients == 1 else "≥ 100"
    print(f"| {space} | {clients} | {ours['p50_us']:.0f} µs | {ours['p99_us']:.0f} µs | {ours['queries']:,} | "
          f"{free['p50_us'] / 1e6:.2f} s | {lock['p50_us'] / 1e6:.2f} s | {free['queries']} + {lock['queries']} | "
          f"{ratio:,.0f} | {goal} | {yes(met)} | {yes(same)} |", flush=True)


def compare(samples, directory, space, count, args):
    store, _ = samples.filled(space, count)
    with filled_redis(samples, directory, space, count) as redis:
        for clients in [] if args.fill else args.clients:
            ours = samples.query(store, space, clients, args.queries)
            row(space, clients, ours, *ask_redis(samples, redis, space, clients, args))
    samples.done_with(store)


def run(build, directory, args):
    count = args.versions[0] if args.versions else 6_000 if args.quick else 60_000
    print(f"\nA query is from a snapshot to the best version of {count:,}. Redis: EvoStore's baseline in C++, pipelined, over"
          " a Unix socket, with its global lock and without; it reads every list for each query.\n")
    print("| space | clients | weft p50 | weft p99 | queries | Redis p50, no lock | Redis p50, lock | queries |"
          " better ÷ weft, p50 | goal | met | same answers |\n|---|---|---|---|---|---|---|---|---|---|---|---|")
    samples = Samples(build, directory, args)
    for space in args.space or SPACES:
        compare(samples, directory, space, count, args)
