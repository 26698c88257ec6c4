"""Part `holders` of the net bench: two holders behind a link each, against one of them; and a derived model on a node that has
the base."""

from measure import PAIR_HEAD, Pairs
from net_nodes import (FILE, MIB, Account, Cluster, Wire, cat, cold_mount, containers, mounted, peer_reads, publish,
                       random_tensors, run_each, shape, write_model, write_shards)

GOAL = 1.8
SLOW_MBIT, SHARDS = 100, 32
COUNT, EACH = 32, 4 * MIB
SPARE = 64 << 10


HOLDERS_HEAD = PAIR_HEAD.replace("weft | peer | peer ÷ weft", "two holders | one | one ÷ two")


class Reading:
    """A cold read of the whole model, with a second holder or without. No other node sends any of it."""

    def __init__(self, nodes, model, has_second):
        self.nodes, self.model, self.has_second, self.account = nodes, model, has_second, Account()

    def __call__(self):
        _, second, reader = self.nodes
        reader.store.weft("evict", "--all")
        if self.has_second:
            second.holds(self.model)
        else:
            second.store.weft("evict", "--all")
        given = second.exchange()["served_bytes"]
        with cold_mount(reader, moves=COUNT * EACH) as mount, self.account.measured_mount(mount, *self.nodes):
            took = cat(*containers(mount.version(self.model, 1)))
        if (second.exchange()["served_bytes"] > given) != self.has_second:
            raise RuntimeError("the second holder sent bytes that it should not have, or sent none")
        return took


def two_holders(directory, args):
    model = write_model(directory / "model", random_tensors(COUNT, EACH, seed="holders"))
    shards = write_shards(directory / "shards", random_tensors(2 * COUNT, EACH, seed="shards"), SHARDS)
    notes = []
    print(f"A model through a mount with default options, cold\n\n{HOLDERS_HEAD}")
    with Cluster(directory, peers=True) as cluster:
        nodes = [cluster.node("--provider", args.provider) for _ in range(3)]
        publish(cluster, nodes[0], model, "whole")
        publish(cluster, nodes[0], shards, "shards")
        for name, text, mbit, goal in (("whole", f"best case: one file of {COUNT * EACH // MIB} MiB", 1000, GOAL),
                                       ("shards", f"{SHARDS} shards, {2 * COUNT * EACH // MIB} MiB", SLOW_MBIT, None)):
            shape(nodes[:2], mbit)
            two, one = Reading(nodes, name, True), Reading(nodes, name, False)
            pairs = Pairs.alternate(args.pairs, two, one)
            print(pairs.row(f"{text}, {mbit} Mbit/s from each holder", goal), flush=True)
            notes += [f"{text}, two holders: {two.account.text()}", f"{text}, one: {one.account.text()}"]
    print("\n" + "".join(f"- {note}\n" for note in notes), flush=True)


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
        with mounted(two) as mount, account.measured_mount(mount, one, two):
            cat(mount.version("child", 1) / FILE)
        kept, read = two.fetched("peer") - kept, peer_reads(two) - read
        received = Wire(two.host).received - wire.received
    asked = len(new) * EACH
    allowed = 1.02 * asked + SPARE
    print("| a derived model on a node that has its base, default mount options | bytes | goal | met |\n|---|---|---|---|")
    print(f"| new in it | {asked} | | |")
    print(f"| read from peers | {read} | ≤ {allowed:.0f} | {'yes' if asked <= max(read, kept) <= allowed else 'NO'} |")
    print(f"| kept of it, verified | {kept:.0f} | | |")
    print(f"| received by the interface, with all that daemons tell each other | {received} | | |\n")
    print(f"- {account.text()}", flush=True)


def run(_build, directory, args):
    run_each((two_holders, derived), directory, args)
