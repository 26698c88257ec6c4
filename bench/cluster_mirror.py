"""A new node becomes the mirror of a registry with many versions."""

import json

import cluster_etcd
import measure

MODELS = 1_000


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
