"""From a publish on one node to the moment when another's index shows it, against etcd's own put-to-watch latency."""

import json
import statistics

import cluster_etcd
import measure

GOAL = 3.0


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
        print(f"| {name} | {median:.2f} ({low:.2f} to {high:.2f}) | ≤ {GOAL:.0f} | {'yes' if median <= GOAL else 'NO'} | "
              f"{len(ratios)} |")
