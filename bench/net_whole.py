"""Part `whole` of the net bench: a whole model of one peer through a mount, against a raw loop of fi_read between the same
two hosts; and other ways to read a file of another host. At full speed, so no read takes long enough for a time-out: part
`together` measures slow links."""

from measure import PAIR_HEAD, Pairs, drop_caches, touch_memory
from net_nodes import (FILE, MIB, Account, Cluster, Raw, cat, cold_mount, containers, options_text, publish, random_tensors,
                       warm, write_model, write_shards)
from net_others import others

# What the raw loop does with the bytes, and the goal of the ratio.
LOOPS = [("into a mapped file, then SHA-256 on all cores", "map:{}+sha256", 0.85), ("into a mapped file", "map:{}", None),
         ("into memory", "memory", None), ("by pwrite into a file", "write:{}", None)]
SHARDS = 32


class Reader:
    """Reads a published model cold, file by file, through the mount of a node, and accounts for the CPU."""

    def __init__(self, holder, node, size, options=None, model="whole"):
        self.holder, self.node, self.size, self.options, self.model = holder, node, size, options, model
        self.account = Account()

    def text(self):
        """What it reads, and how, for a row."""
        return f"{'one file' if self.model == 'whole' else f'{SHARDS} shards'}, mount options {options_text(self.options)}"

    def __call__(self):
        with cold_mount(self.node, self.options, moves=self.size) as mount:
            touch_memory(2 * self.size, self.node.directory)
            with self.account.measured_mount(mount, self.holder, self.node):
                return cat(*containers(mount.version(self.model, 1)))


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
    name = f"fi_read {name}; {ours.text()}"
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
        print(Pairs.alternate(count, ours, peer).row(f"peer: {name}; {ours.text()}"), flush=True)
        notes.append(f"{name} took {account.text()}; without what its mount takes in the background")
    return notes


def measure(build, directory, model, shards, args):
    """Prints the rows and returns notes on them."""
    print(f"\n{PAIR_HEAD}")
    directory.mkdir()
    with Cluster(directory, peers=True) as cluster:
        one, two = (cluster.node("--provider", args.provider) for _ in range(2))
        if args.gbit:
            one.host.shape(f"{args.gbit:g}gbit", burst="2m")
        publish(cluster, one, model, "whole")
        publish(cluster, one, shards, "shards")
        size = (model / FILE).stat().st_size
        reader = Reader(one, two, size)
        with Raw(build, args.provider, one.host, two.host, model / FILE) as raw:
            notes = []
            for loop in LOOPS:
                notes += against_loop(reader, raw, loop, size, model / FILE, args.pairs)
            fetching = Reader(one, two, size, "cold=fetch")
            notes += against_loop(fetching, raw, LOOPS[0], size, model / FILE, args.pairs)
            sharded = Reader(one, two, sum(path.stat().st_size for path in containers(shards)), model="shards")
            notes += against_loop(sharded, raw, LOOPS[0][:2] + (None,), size, model / FILE, args.pairs)
        return notes + against_others(reader, model, directory, min(3, args.pairs))


def run(build, directory, args):
    model = write_model(directory / "model", random_tensors(16, args.megabytes // 16 * MIB, seed="whole"))
    shards = write_shards(directory / "shards", random_tensors(64, args.megabytes * MIB // 64, seed="shards"), SHARDS)
    link = f", the giver's link held to {args.gbit:g} Gbit/s" if args.gbit else ""
    print(f"A whole model, {args.megabytes} MiB, provider {args.provider}{link}; peer: the raw loop over one file, 1 MiB, "
          "depth 4.\nEach row names weft's files and mount options. No read takes long enough for a time-out.")
    notes = measure(build, directory / "nodes", model, shards, args)
    print("\n" + "\n".join(f"- {note}" for note in notes))
    print("- tcp moves every byte through the kernel of both hosts: nothing here shows the CPU time that RDMA saves.")
