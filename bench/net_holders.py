"""Part `holders` of the net bench: two holders behind a link of 1 Gbit each, against one of them; and a derived model on a
node that has the base."""

from measure import PAIR_HEAD, Pairs
from net_nodes import (FILE, MIB, Account, Cluster, Wire, cat, cold_mount, peer_reads, publish, random_tensors,
                       run_each, write_model)

GOAL = 1.8
COUNT, EACH = 32, 4 * MIB
SPARE = 64 << 10


class Reading:
    """A cold read of the whole file, with a second holder or without. All of it comes from those who shall give."""

    def __init__(self, nodes, has_second):
        self.nodes, self.has_second, self.account = nodes, has_second, Account()

    def __call__(self):
        _, second, reader = self.nodes
        reader.store.weft("evict", "--all")
        second.store.weft(*(["prefetch", "whole"] if self.has_second else ["evict", "--all"]))
        given = second.exchange()["served_bytes"]
        with cold_mount(reader, moves=COUNT * EACH) as mount, self.account.measured_mount(mount, *self.nodes):
            took = cat(mount.version("whole", 1) / FILE)
        if (second.exchange()["served_bytes"] > given) != self.has_second:
            raise RuntimeError("the second holder gave what it should not, or did not give")
        return took


def two_holders(directory, args):
    model = write_model(directory / "model", random_tensors(COUNT, EACH, seed="holders"))
    with Cluster(directory, peers=True) as cluster:
        nodes = [cluster.node("--provider", args.provider) for _ in range(3)]
        publish(cluster, nodes[0], model, "whole")
        for holder in nodes[:2]:
            holder.host.shape("1gbit")
        two, one = Reading(nodes, True), Reading(nodes, False)
        pairs = Pairs.alternate(args.pairs, two, one)
    print(f"{COUNT * EACH // MIB} MiB from holders with 1 Gbit/s each, through the mount\n")
    print(PAIR_HEAD.replace("weft | peer | peer ÷ weft", "two holders | one | one ÷ two"))
    print(pairs.row("the whole file, cold", GOAL) + "\n")
    print(f"- two holders: {two.account.text()}\n- one: {one.account.text()}\n", flush=True)


def derived(directory, args):
    tensors = random_tensors(COUNT, EACH, seed="base")
    new = {name: value for name, value in random_tensors(COUNT, EACH, seed="new").items()
           if int(name.split(".")[1]) % 10 == 3}
    base = write_model(directory / "base", tensors)
    child = write_model(directory / "child", tensors | new)
    account = Account()
    with Cluster(directory, peers=True) as cluster:
        one, two = (cluster.node("--provider", args.provider) for _ in range(2))
        publish(cluster, one, base, "base")
        two.store.weft("prefetch", "base")
        publish(cluster, one, child, "child")
        kept, read, wire = two.fetched("peer"), peer_reads(two), Wire(two.host)
        with two.mounted() as mount, account.measured_mount(mount, one, two):
            cat(mount.version("child", 1) / FILE)
        kept, read = two.fetched("peer") - kept, peer_reads(two) - read
        received = Wire(two.host).received - wire.received
    asked = len(new) * EACH
    allowed = 1.02 * asked + SPARE
    print("| a derived model on a node that has its base | bytes | goal | met |\n|---|---|---|---|")
    print(f"| new in it | {asked} | | |")
    print(f"| read from peers | {read} | ≤ {allowed:.0f} | {'yes' if asked <= max(read, kept) <= allowed else 'NO'} |")
    print(f"| kept of it, verified | {kept:.0f} | | |")
    print(f"| received by the interface, with all that daemons tell each other | {received} | | |\n")
    print(f"- {account.text()}", flush=True)


def run(_build, directory, args):
    run_each((two_holders, derived), directory, args)
