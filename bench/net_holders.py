"""Part `holders` of the net bench: two holders behind a link of 1 Gbit each, against one of them; and a derived model on a
node that has the base."""

import statistics

from net_nodes import FILE, MIB, Cluster, cat, cold_mount, publish, random_tensors, write_model

GOAL = 1.8
COUNT, EACH = 32, 4 * MIB
SPARE = 64 << 10


def read_cold(node):
    with cold_mount(node, moves=COUNT * EACH) as mount:
        return cat(mount.version("whole", 1) / FILE)


def two_holders(directory, args):
    model = write_model(directory / "model", random_tensors(COUNT, EACH, seed="holders"))
    with Cluster(directory, peers=True) as cluster:
        first, second, reader = (cluster.node("--provider", args.provider) for _ in range(3))
        publish(cluster, first, model, "whole")
        for holder in (first, second):
            holder.host.shape("1gbit")
        one, two = [], []
        for _ in range(args.pairs):
            second.store.weft("evict", "--all")
            one.append(read_cold(reader))
            reader.store.weft("evict", "--all")
            second.store.weft("prefetch", "whole")
            two.append(read_cold(reader))
    ratio = statistics.median(a / b for a, b in zip(one, two))
    print(f"{COUNT * EACH // MIB} MiB from holders with 1 Gbit/s each, through the mount\n")
    print("| | median | goal | met | times |\n|---|---|---|---|---|")
    print(f"| one holder | {statistics.median(one):.3f} s | | | {len(one)} |")
    print(f"| two holders | {statistics.median(two):.3f} s | | | {len(two)} |")
    print(f"| one ÷ two | {ratio:.2f} | ≥ {GOAL} | {'yes' if ratio >= GOAL else 'NO'} | |\n", flush=True)


def derived(directory, args):
    tensors = random_tensors(COUNT, EACH, seed="base")
    new = {name: value for name, value in random_tensors(COUNT, EACH, seed="new").items()
           if int(name.split(".")[1]) % 10 == 3}
    base = write_model(directory / "base", tensors)
    child = write_model(directory / "child", tensors | new)
    with Cluster(directory, peers=True) as cluster:
        one, two = (cluster.node("--provider", args.provider) for _ in range(2))
        publish(cluster, one, base, "base")
        two.store.weft("prefetch", "base")
        publish(cluster, one, child, "child")
        before = two.fetched("peer")
        with two.mounted() as mount:
            cat(mount.version("child", 1) / FILE)
        moved = two.fetched("peer") - before
    asked = len(new) * EACH
    allowed = 1.02 * asked + SPARE
    print("| a derived model on a node that has its base | bytes | goal | met |\n|---|---|---|---|")
    print(f"| new in it | {asked} | | |")
    print(f"| payload | {moved} | ≤ {allowed:.0f} | {'yes' if moved <= allowed else 'NO'} |", flush=True)


def run(_build, directory, args):
    for number, part in enumerate((two_holders, derived)):
        where = directory / str(number)
        where.mkdir()
        part(where, args)


