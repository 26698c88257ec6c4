"""What a weftd of a cluster takes that has nothing to do: with etcd, an origin and a mount, before and after it mirrored the
registry, whether it heard of each version by its watch or was away and got them all as a list."""

import time

import measure
from net_nodes import MIB, PATIENCE, Cluster, publish, random_tensors, tree_seconds, wait_until, write_model

MODELS = 1_000
SECONDS = 20
SETTLED = 5  # seconds, after which a mirror is on the disk
SYNC_SECONDS_MAX = 600
CORE_PART_MAX = 0.01
MEMORY_MAX = 64 * MIB


def memory(pid):
    """(RssAnon + RssShmem, VmRSS) in bytes: the latter has the index's pages too, which are the page cache's."""
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    anonymous, shared, all_of_it = (int(fields[name].split()[0]) << 10 for name in ("RssAnon", "RssShmem", "VmRSS"))
    return anonymous + shared, all_of_it


def row(name, node):
    before = tree_seconds([node.daemon.pid])
    time.sleep(SECONDS)
    part = (tree_seconds([node.daemon.pid]) - before) / SECONDS
    own, mapped = memory(node.daemon.pid)
    met = "yes" if part <= CORE_PART_MAX and own <= MEMORY_MAX else "NO"
    print(f"| {name} | {part:.2%} | {own / MIB:.1f} MiB | {mapped / MIB:.1f} MiB | {met} |", flush=True)


def wait_for(node, versions):
    wait_until(lambda: node.store.json("status")["versions"] >= versions, seconds_max=SYNC_SECONDS_MAX, pause=0.2)
    time.sleep(SETTLED)


def run(build, directory, args):
    (directory / "origin").mkdir()
    with Cluster(directory, origin=directory / "origin", peers=True) as cluster:
        one, two = cluster.node(), cluster.node()
        with one.mounted(), two.mounted():
            publish(cluster, one, write_model(directory / "model", random_tensors(4, MIB, seed="idle")), "model")
            two.store.weft("prefetch", "model")
            wait_until(lambda: one.daemon.status()["write_behind"]["waiting"] == 0, seconds_max=PATIENCE)
            time.sleep(SETTLED)
            print(f"\n| a weftd with etcd, an origin, a peer and a mount, idle for {SECONDS} s (goal: ≤ 1 % of a core, ≤ 64 MiB "
                  "of its own) | of a core | RssAnon + RssShmem | VmRSS, the index's pages counted | met |\n"
                  "|---|---|---|---|---|")
            row("one version", one)
            two.daemon.stop()
            measure.run(*cluster.etcd.host.inside, build / "bench/weft_bench_cluster_registry", "fill",
                        cluster.etcd.endpoint, "test", args.versions, MODELS)
            wait_for(one, args.versions)
            row(f"{args.versions:,} more, by the watch", one)
            two.daemon.start()
            wait_for(two, args.versions)
            row(f"{args.versions:,} more, by a list after it was away", two)
