"""Part `whole` of the net bench: a whole file of one peer through a mount, against a raw loop of fi_read between the same
two hosts; and other ways to read a file of another host."""

from measure import PAIR_HEAD, Pairs, drop_caches, touch_memory
from net_nodes import FILE, MIB, Account, Cluster, Raw, cat, cold_mount, publish, random_tensors, warm, write_model
from net_others import others

# What the raw loop does with the bytes, and the goal of the ratio.
LOOPS = [("into a mapped file, then SHA-256 on all cores", "map:{}+sha256", 0.85), ("into a mapped file", "map:{}", None),
         ("into memory", "memory", None), ("by pwrite into a file", "write:{}", None)]


class Reader:
    """Reads one published file cold, through the mount of a node, and says who took the CPU."""

    def __init__(self, holder, node, size, policy):
        self.holder, self.node, self.size, self.policy = holder, node, size, policy
        self.account = Account()

    def __call__(self):
        with cold_mount(self.node, f"cold={self.policy}", moves=self.size) as mount:
            touch_memory(2 * self.size, self.node.directory)
            with self.account.measured_mount(mount, self.holder, self.node):
                return cat(mount.version("whole", 1) / FILE)


class RawReader:
    def __init__(self, raw, into, scratch, size, native):
        self.raw, self.into, self.scratch, self.size, self.native = raw, into, scratch, size, native
        self.account = Account()

    def __call__(self):
        self.scratch.unlink(missing_ok=True)
        drop_caches()
        warm(self.native)
        touch_memory(2 * self.size, self.scratch.parent)
        with self.account.measured(server=[self.raw.server.pid]):
            return self.raw.read(self.into.format(self.scratch), MIB, 4, self.size)[0]


def against_loop(ours, raw, loop, size, native, count):
    name, into, goal = loop
    name = f"fi_read {name}; cold={ours.policy}"
    theirs = RawReader(raw, into, ours.node.directory / "raw", size, native)
    ours.account = Account()
    pairs = Pairs.alternate(count, ours, theirs, warm_up=1)
    print(pairs.row(f"peer: {name}", goal), flush=True)
    return [f"{name}: weft took {ours.account.text()}", f"{name}: raw took {theirs.account.text()}"]


def against_others(ours, model, directory, count):
    notes = []
    for name, theirs, servers in others(ours.holder, ours.node, model, directory):
        account = Account()

        def peer(theirs=theirs, servers=servers, account=account):
            drop_caches()
            warm(model / FILE)
            with account.measured(servers=servers):
                return theirs()
        print(Pairs.alternate(count, ours, peer).row(f"peer: {name}"), flush=True)
        notes.append(f"{name} took {account.text()}; without what its mount takes in the background")
    return notes


def measure(build, directory, model, args):
    """Prints the rows and returns notes on them."""
    print(f"\n{PAIR_HEAD}")
    directory.mkdir()
    with Cluster(directory, peers=True) as cluster:
        one, two = (cluster.node("--provider", args.provider) for _ in range(2))
        if args.gbit:
            one.host.shape(f"{args.gbit:g}gbit", burst="2m")
        publish(cluster, one, model, "whole")
        size = (model / FILE).stat().st_size
        reader, fetching = Reader(one, two, size, "auto"), Reader(one, two, size, "fetch")
        with Raw(build, args.provider, one.host, two.host, model / FILE) as raw:
            notes = []
            for loop in LOOPS:
                notes += against_loop(reader, raw, loop, size, model / FILE, args.pairs)
            notes += against_loop(fetching, raw, LOOPS[0], size, model / FILE, args.pairs)
        return notes + against_others(reader, model, directory, min(3, args.pairs))


def run(build, directory, args):
    model = write_model(directory / "model", random_tensors(16, args.megabytes // 16 * MIB, seed="whole"))
    link = f", the giver's link held to {args.gbit:g} Gbit/s" if args.gbit else ""
    print(f"Whole file, {args.megabytes} MiB, provider {args.provider}{link}; peer: the raw loop, 1 MiB, depth 4")
    notes = measure(build, directory / "nodes", model, args)
    print("\n" + "\n".join(f"- {note}" for note in notes))
    print("- tcp moves every byte through the kernel of both hosts: nothing here shows the CPU time that RDMA saves.")
