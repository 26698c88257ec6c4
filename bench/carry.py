"""scripts/bench carry: a program that compiles a small model with torch.compile, on one node and then on another, whose cache
begins as the version that the first one has published.

A start is `weft carry` from its begin to its end: the cache is fetched and written, Python imports torch, the model computes
once, and what is new is published. The call is the first one of the compiled model alone. Each pair has a key and nodes'
caches of its own: no start finds the cache of an earlier pair."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "cluster")]
from clusterlib import PROVIDERS  # noqa: E402
from measure import end_by_signals, interval, machine  # noqa: E402
from nodes import Cluster  # noqa: E402
from weftlib import WEFT, environment, run, wait_until  # noqa: E402

SECONDS_MAX = 900
# Prints the seconds of the first call, and how often the compiler's cache had a graph, and had not.
PROGRAM = """
import json, time, torch
from torch._dynamo.utils import counters
torch.manual_seed(1)
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
model = torch.compile(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval())
words = torch.ones(2, 16, 64)
begin = time.perf_counter()
with torch.no_grad():
    model(words)
seconds = time.perf_counter() - begin
print(json.dumps([seconds, counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"]]))
"""


def start(node, where, key):
    """(seconds of the start, seconds of the call, hits, misses). `where`: a directory that the start alone uses, and whose name
    is the same on all nodes: a compiler may write the path of its cache into it."""
    where.mkdir()
    cache = where / "inductor"
    env = environment(TORCHINDUCTOR_CACHE_DIR=str(cache), HOME=str(where), TMPDIR=str(where))
    begin = time.perf_counter()
    done = run([*node.host.inside, WEFT, "--store", node.store.path, "carry", "caches/inductor", cache, "--key", key, "--",
                sys.executable, "-c", PROGRAM], env=env, timeout=SECONDS_MAX)
    seconds = time.perf_counter() - begin
    shutil.rmtree(where)
    return seconds, *json.loads(done.stdout.splitlines()[-1])


def published(node):
    return {f"{model['model']}@1" for model in node.store.json("ls")["models"]}


def pair(first, second, directory, key):
    """The starts on both nodes."""
    before = published(first)
    compiled = start(first, directory / "work", key)
    new = published(first) - before
    if compiled[2] or not compiled[3] or len(new) != 1:
        raise RuntimeError(f"expected that the first start compiles, and publishes one version; got {compiled}, {new}")
    wait_until(lambda: second.knows(*new), seconds_max=60, pause=0.01)
    fetched = second.fetched()
    found = start(second, directory / "work", key)
    if found[3] or not found[2] or second.fetched() == fetched:
        raise RuntimeError(f"expected that the second start fetches the cache and compiles nothing, got {found}")
    return compiled, found


def row(name, firsts, seconds):
    """A line of the table."""
    ratios = [second / first for first, second in zip(firsts, seconds)]
    low, high = interval(ratios)
    return (f"| {name} | {statistics.median(firsts):.2f} s | {statistics.median(seconds):.2f} s "
            f"| {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}) | {len(ratios)} |")


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench carry")
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"), help="where to work")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--provider", default=PROVIDERS[0], help="of libfabric, on both sides")
    args = parser.parse_args()
    end_by_signals()
    print(f"Taken on {machine(args.dir)}.")
    with tempfile.TemporaryDirectory(prefix="weft-bench.", dir=args.dir) as place:
        directory = pathlib.Path(place)
        with Cluster(directory, peers=True) as cluster:
            nodes = [cluster.node("--provider", args.provider) for _ in range(2)]
            pairs = [pair(*nodes, directory, f"pair {number}") for number in range(args.pairs)]
    print("\n| what | first node | second node | second ÷ first: median (95 % interval) | pairs |\n|---|---|---|---|---|")
    for name, which in (("the start", 0), ("the first call alone", 1)):
        print(row(name, *([one[side][which] for one in pairs] for side in (0, 1))), flush=True)


if __name__ == "__main__":
    main()
