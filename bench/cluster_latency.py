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
    ratios = [ours / etcd for ours, etcd in zip(shown, puts)]
    median, (low, high) = statistics.median(ratios), measure.interval(ratios)
    print("\n| 1 KB published, nodes in one process | median | 95th percentile |\n|---|---|---|")
    for name, values in (("etcd: put to watch", puts), ("publish to visible on the other node", shown),
                         ("publish until it returns", publish)):
        print(f"| {name} | {1e3 * statistics.median(values):.1f} ms | "
              f"{1e3 * statistics.quantiles(values, n=20)[-1]:.1f} ms |")
    print(f"\nVisible ÷ etcd's own: {median:.2f} ({low:.2f} to {high:.2f}), goal ≤ {GOAL:.0f}: "
          f"{'yes' if median <= GOAL else 'NO'}; {len(ratios)} times, in turn.")
