"""From a publish on one node to the moment when another's index shows it, against etcd's own put-to-watch latency; and
until every mount shows it."""

import json
import pathlib
import statistics
import sys
import time

import cluster_etcd
import measure

TESTS = pathlib.Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "cluster")]
from nodes import Cluster  # noqa: E402
from weftlib import random_tensors, write_model  # noqa: E402

GOAL = 3.5
MOUNTS_GOAL_MS = 200
NODES = 3


def until_shown(paths):
    begin = time.perf_counter()
    while not all(path.exists() for path in paths):
        time.sleep(0.0005)
    return 1e3 * (time.perf_counter() - begin)


def in_mounts(directory, times):
    """`weft import` on one of three nodes, each with its daemon and its mount; then the others are looked at."""
    model = write_model(directory / "model", random_tensors(2, 1024, seed="latency"))
    took = []
    with Cluster(directory) as cluster:
        nodes = [cluster.node() for _ in range(NODES)]
        mounts = [cluster.stack.enter_context(node.mounted()) for node in nodes]
        for number in range(1, times + 1):
            (model / "config.json").write_text(str(number))
            nodes[0].store.publish(model, name="m")
            took.append(until_shown([mount.path / f"models/m/{number}" for mount in mounts]))
    print("\n| from the end of `weft import` until all mounts of three nodes show it | median | longest | goal | met | "
          "times |\n|---|---|---|---|---|---|")
    print(f"| 1 KB of change | {statistics.median(took):.1f} ms | {max(took):.1f} ms | ≤ {MOUNTS_GOAL_MS} ms | "
          f"{'yes' if max(took) <= MOUNTS_GOAL_MS else 'NO'} | {len(took)} |")


def run(build, directory, args):
    program = build / "bench/weft_bench_cluster_registry"
    with cluster_etcd.running(directory) as endpoint:
        times = json.loads(measure.run(program, "latency", endpoint, "bench", directory / "a", directory / "b",
                                       args.times))
    puts, shown, publish = times["put_to_watch"], times["publish_to_visible"], times["publish"]
    tags = times["tag_to_visible"]
    print("\n| 1 KB published, nodes in one process | median | 95th percentile |\n|---|---|---|")
    for name, values in (("etcd: put to watch", puts), ("publish to visible on the other node", shown),
                         ("publish until it returns", publish), ("tag set to visible on the other node", tags)):
        print(f"| {name} | {1e3 * statistics.median(values):.1f} ms | "
              f"{1e3 * statistics.quantiles(values, n=20)[-1]:.1f} ms |")
    print("\n| visible ÷ etcd's put to watch, in turn | median (95 % interval) | goal | met | times |\n|---|---|---|---|---|")
    for name, values in (("publish, 1 KB", shown), ("tag", tags)):
        ratios = [ours / etcd for ours, etcd in zip(values, puts)]
        median, (low, high) = statistics.median(ratios), measure.interval(ratios)
        print(f"| {name} | {median:.2f} ({low:.2f} to {high:.2f}) | ≤ {GOAL} | {'yes' if median <= GOAL else 'NO'} | "
              f"{len(ratios)} |")
    in_mounts(directory, args.times)
