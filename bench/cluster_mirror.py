"""A new node becomes the mirror of a registry with many versions; then a smaller one is listed, against a store of one
node that has as many."""

import json
import statistics

import cluster_etcd
import measure

MODELS = 1_000
LISTED = 10_000
LISTINGS = 21


def run(build, directory, args):
    program = build / "bench/weft_bench_cluster_registry"
    with cluster_etcd.running(directory) as endpoint:
        filled = json.loads(measure.run(program, "fill", endpoint, "bench", args.versions, MODELS))
        measure.settle()
        mirrored = json.loads(measure.run("/usr/bin/time", "-f", "%M", "-o", directory / "memory", program, "mirror",
                                          endpoint, "bench", directory / "store"))
    assert mirrored["rows"] == args.versions and mirrored["refused"] == 0, mirrored
    peak = int((directory / "memory").read_text().split()[-1]) << 10
    print(f"\n| a new node's first mirror of {args.versions:,} versions | |\n|---|---|")
    print(f"| until it is whole | {mirrored['seconds']:.1f} s |")
    print(f"| of the index, a version | {mirrored['index_bytes'] / args.versions:.0f} bytes |")
    print(f"| of the journal (one of two copies), a version | {mirrored['journal_bytes'] / args.versions:.0f} bytes |")
    print(f"| of its value in etcd, a version | {filled['value_bytes'] / args.versions:.0f} bytes |")
    print(f"| all rows read from the index | {mirrored['listing']:.2f} s |")
    print(f"| memory at its peak, the index's pages counted | {peak / (1 << 20):.0f} MiB |")
    listed(program, directory / "lists")


def listed(program, directory):
    directory.mkdir()
    with cluster_etcd.running(directory) as endpoint:
        measure.run(program, "fill", endpoint, "bench", LISTED, MODELS)
        measure.run(program, "mirror", endpoint, "bench", directory / "mirror")
    measure.run(program, "local", directory / "local", LISTED, MODELS)
    times = json.loads(measure.run(program, "list", directory / "mirror", directory / "local", LISTINGS))
    assert times["rows"] == [LISTED, LISTED], times["rows"]
    ratios = [ours / local for ours, local in zip(times["first"], times["second"])]
    median, (low, high) = statistics.median(ratios), measure.interval(ratios)
    print(f"\n| all rows of {LISTED:,} versions, read in turn | mirror | store of one node | mirror ÷ local: median "
          "(95 % interval) | goal | met |\n|---|---|---|---|---|---|")
    print(f"| listing | {1e3 * statistics.median(times['first']):.1f} ms | "
          f"{1e3 * statistics.median(times['second']):.1f} ms | {median:.2f} ({low:.2f} to {high:.2f}) | ≤ 1.1 | "
          f"{'yes' if median <= 1.1 else 'NO'} |")
