"""What a weftd of a cluster takes that has nothing to do: with etcd, an origin and a mount, before and after it mirrored the
registry: one that heard of each version as it came, one that was away and hears of all at once, and one that is new and
lists them."""

import contextlib
import time

import measure
from net_nodes import MIB, PATIENCE, Cluster, publish, random_tensors, tree_seconds, wait_until, write_model

MODELS = 1_000
SECONDS = 20
SETTLED = 5  # seconds, after which a mirror is on the disk
SYNC_SECONDS_MAX = 1_800
CORE_PART_MAX = 0.01
MEMORY_MAX = 64 * MIB


def memory(pid):
    """(RssAnon + RssShmem, VmRSS) in bytes: the latter has the index's pages too, which are the page cache's."""
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    anonymous, shared, all_of_it = (int(fields[name].split()[0]) << 10 for name in ("RssAnon", "RssShmem", "VmRSS"))
    return anonymous + shared, all_of_it


@contextlib.contextmanager
def in_memory(directory):
    """An origin that what is said of so many names reaches in seconds: on a disk it takes syncs, and minutes."""
    directory.mkdir()
    measure.run("mount", "-t", "tmpfs", "-o", "size=2g", "tmpfs", directory)
    try:
        yield directory
    finally:
        measure.run("umount", directory)


def rows(named):
    """A line for each node; they are idle at the same time."""
    before = {name: tree_seconds([node.daemon.pid]) for name, node in named.items()}
    time.sleep(SECONDS)
    for name, node in named.items():
        part = (tree_seconds([node.daemon.pid]) - before[name]) / SECONDS
        own, mapped = memory(node.daemon.pid)
        met = "yes" if part <= CORE_PART_MAX and own <= MEMORY_MAX else "NO"
        print(f"| {name} | {part:.2%} | {own / MIB:.1f} MiB | {mapped / MIB:.1f} MiB | {met} |", flush=True)


def wait_for(nodes, versions):
    """Until the nodes mirror so many, and what was said of their names is at the origin."""
    def all_replicated():
        return all(node.store.json("status")["versions"] >= versions and
                   node.daemon.status()["write_behind"]["records_written"] >= versions for node in nodes)
    wait_until(all_replicated, seconds_max=SYNC_SECONDS_MAX, pause=1)
    time.sleep(SETTLED)


def run(build, directory, args):
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(in_memory(directory / "origin"))
        cluster = stack.enter_context(Cluster(directory, origin=origin, peers=True))

        def node():
            made = cluster.node()
            stack.enter_context(made.mounted())
            return made
        one, two = node(), node()
        publish(cluster, one, write_model(directory / "model", random_tensors(4, MIB, seed="idle")), "model")
        two.store.weft("prefetch", "model")
        wait_until(lambda: one.daemon.status()["write_behind"]["waiting"] == 0, seconds_max=PATIENCE)
        time.sleep(SETTLED)
        print(f"\n| a weftd with etcd, an origin, a peer and a mount, idle for {SECONDS} s | of a core, goal ≤ 1 % | "
              "RssAnon + RssShmem, goal ≤ 64 MiB | VmRSS, the mapped index's pages counted | met |\n|---|---|---|---|---|")
        rows({"one version": one})
        two.daemon.stop()
        measure.run(*cluster.etcd.host.inside, build / "bench/weft_bench_cluster_registry", "fill",
                    cluster.etcd.endpoint, "test", args.versions, MODELS)
        two.daemon.start()
        three = node()
        wait_for([one, two, three], args.versions)
        many = f"{args.versions:,} versions more"
        rows({f"{many}, heard of as they came": one, f"{many}, after it was away": two, f"{many}, listed by a new node": three})
