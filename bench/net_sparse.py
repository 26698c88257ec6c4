"""Part `sparse` of the net bench: a model that a training step changed, on a node that has the version before. The fixture
is that of a real step without its framework: masters of fp32 N(0, 0.03), to which a step at learning rate r adds
N(0, 0.24 r), rounded to bf16."""

import concurrent.futures
import contextlib
import mmap
import shutil
import statistics
import subprocess
import time

import numpy

from measure import PAIR_HEAD, Pairs, seconds, settle
from net_nodes import FILE, MIB, PATIENCE, WEFT, Account, Cluster, Wire, cat, mounted, wait_until, warm, write_model

TENSOR_BYTES = 16 * MIB
STEP = 0.24  # root mean square of a step's change ÷ learning rate
RATE = 1e-6
WIRE_PART_MAX, TIMES_MIN = 0.010, 6.0  # binding
SLOW_PAIRS_MAX = 3  # over the slow link a pair takes minutes
FOLLOWERS = 8
LOST_MIB = 8


class Training:
    """A model whose weights change. `write()` is a checkpoint of it."""

    def __init__(self, directory, megabytes, seed=1):
        self.directory, self.random, self.written = directory, numpy.random.default_rng(seed), 0
        count = max(1, megabytes * MIB // TENSOR_BYTES)
        self.each = min(TENSOR_BYTES, megabytes * MIB) // 2
        self.masters = [self.normal(0.03) for _ in range(count)]

    def normal(self, deviation):
        return self.random.standard_normal(self.each, dtype=numpy.float32) * numpy.float32(deviation)

    def step(self, rate):
        for master in self.masters:
            master += self.normal(STEP * rate)

    def restart(self):
        """Weights of another model."""
        self.masters = [self.normal(0.03) for _ in self.masters]

    @staticmethod
    def rounded(master):
        bits = master.view(numpy.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)

    def write(self, ulps=0.0):
        """The last checkpoint but one goes. `ulps`: this share of the elements changes by one unit in the last place."""
        self.written += 1
        tensors = {}
        for number, master in enumerate(self.masters):
            values = self.rounded(master)
            if ulps:
                changed = self.random.random(values.size, dtype=numpy.float32) < ulps
                values += changed * self.random.choice(numpy.array([1, 0xFFFF], dtype=numpy.uint16), values.size)
            tensors[f"layer.{number}.weight"] = ("BF16", [values.size], values.tobytes())
        mark = str(self.written).encode()
        tensors[f"step.{self.written}"] = ("U8", [len(mark)], mark)  # no header is that of another version
        made = write_model(self.directory / f"checkpoint {self.written}", tensors)
        shutil.rmtree(self.directory / f"checkpoint {self.written - 2}", ignore_errors=True)
        return made


class Follower:
    """A node that fetches each version, and keeps the last."""

    def __init__(self, node, mount):
        self.node, self.mount, self.account = node, mount, Account()
        self.received = self.took = self.kept = 0

    def read(self, number, *others, through_mount=False):
        """Seconds from when the version is seen to its verified bytes on this node, or in a reader of its mount."""
        spec = f"model@{number}"
        wait_until(lambda: self.node.knows(spec), seconds_max=PATIENCE, pause=0.001)
        before = self.wire()
        with self.account.measured_mount(self.mount, self.node, *others):
            self.took = (cat(self.mount.version("model", number) / FILE) if through_mount else
                         seconds(WEFT, "--store", self.node.store.path, "prefetch", "-q", spec))
        self.received = self.wire() - before
        return self.took

    def wire(self):
        """Bytes that its interface received and sent, of whatever kind."""
        now = Wire(self.node.host)
        return now.received + now.sent

    def settle(self, number):
        """What came is in the store, and the version before goes. They share no pack: their headers differ."""
        wait_until(lambda: self.node.daemon.status()["fetched"]["transfers"] == 0, seconds_max=PATIENCE, pause=0.05)
        if self.kept:
            self.node.store.weft("evict", f"model@{self.kept}")
        self.kept = number

    def sparse(self):
        return self.node.daemon.status()["sparse"]


def is_equal(source, follower, number):
    return subprocess.run(["cmp", "-s", source / FILE, follower.mount.version("model", number) / FILE],
                          check=False).returncode == 0


def compare(source, follower, number):
    if not is_equal(source, follower, number):
        raise RuntimeError(f"version {number} is not what was published")


class World:
    """A node that publishes, and followers: the first asks for differences, the second never does. A context."""

    def __init__(self, directory, args, settings=("auto", "never"), megabytes=None, link=None):
        self.training = Training(directory, megabytes or args.megabytes)
        self.directory, self.args, self.settings = directory, args, settings
        self.number, self.shaped, self.link = 0, False, link

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.cluster = stack.enter_context(Cluster(self.directory, peers=True))
            self.giver = self.cluster.node("--provider", self.args.provider)
            self.followers = []
            for setting in self.settings:
                node = self.cluster.node("--provider", self.args.provider, "--sparse", setting)
                self.followers.append(Follower(node, stack.enter_context(mounted(node))))
            self.stack = stack.pop_all()
        self.shape(self.link)
        self.publish()
        for follower in self.followers:
            follower.read(self.number)
            follower.settle(self.number)
        return self

    def __exit__(self, *exception):
        self.stack.close()

    def publish(self, rate=None, **options):
        if rate:
            self.training.step(rate)
        self.source = self.training.write(**options)
        self.giver.store.publish(self.source, name="model")
        self.number += 1
        for pack in (self.giver.directory / "store").rglob("*.pack"):
            warm(pack)

    def round(self, rate=None, through_mount=False, **options):
        """A new version, fetched by each follower; who is first takes turns. Returns their seconds."""
        self.publish(rate, **options)
        order = self.followers if self.number % 2 else self.followers[::-1]
        for follower in order:
            settle()
            follower.read(self.number, self.giver, through_mount=through_mount)
        for follower in self.followers:
            compare(self.source, follower, self.number)
            follower.settle(self.number)
        return [follower.took for follower in self.followers]

    def shape(self, link):
        """The link of each node; None: nothing bounds it."""
        for node in self.cluster.nodes:
            if link:
                node.host.shape(link, burst="2m")
            elif self.shaped:
                node.host.unshape()
        self.shaped = link is not None

    def size(self):
        return (self.source / FILE).stat().st_size


def wire_bytes(directory, args):
    print(f"One version of {args.megabytes} MiB, of which a node has the version before, at 1 Gbit/s, by `weft prefetch`; all "
          "bytes of its\ninterface\n")
    print("| change | elements changed | bytes ÷ file | goal | met | chunks coded, plain | saved |\n"
          "|---|---|---|---|---|---|---|")
    with World(directory, args, ("auto",), link="1gbit") as world:
        follower = world.followers[0]
        for name, goal, rate, ulps in (("a step at 1e-6", WIRE_PART_MAX, RATE, 0), ("a step at 1e-5", None, 1e-5, 0),
                                       ("1 unit in the last place, 1 % of elements", None, None, 0.01),
                                       ("ten steps at 1e-4", None, 1e-4 * 10**0.5, 0)):
            before = follower.sparse()
            world.round(rate, ulps=ulps)
            now = follower.sparse()
            part = follower.received / world.size()
            told = f"≤ {goal} | {'yes' if part <= goal else 'NO'}" if goal else "|"
            print(f"| {name} | {now['version_changed_ppm'] / 1e4:.2f} % | {part:.4f} | {told} "
                  f"| {now['coded'] - before['coded']}, {now['plain'] - before['plain']} "
                  f"| {now['saved_bytes'] - before['saved_bytes']} |", flush=True)
    print()


def times(directory, args):
    print(f"{args.megabytes} MiB in one file, a step at {RATE}: from the version being seen to its verified bytes on another "
          "node, by\n`weft prefetch`, or by cat through a mount with default options. From 1 Gbit/s on it is a best case: all "
          "arrives before any\ntime-out.\n")
    print(PAIR_HEAD.replace("weft | peer | peer ÷ weft", "differences | plain | plain ÷ differences"))
    with World(directory, args) as world:
        coded, plain = world.followers
        for link, goal, through_mount in (("100mbit", None, True), ("1gbit", TIMES_MIN, False), ("1gbit", None, True),
                                          ("10gbit", None, False), (None, None, False)):
            world.shape(link)
            coded.account, plain.account = Account(), Account()
            pairs = Pairs()
            for _ in range(min(SLOW_PAIRS_MAX, args.pairs) if link == "100mbit" else args.pairs):
                pairs.add(*world.round(RATE, through_mount))
            print(pairs.row((link or "no bound") + (", through a mount" if through_mount else ""), goal))
            print(f"\n- differences: {coded.account.text()}\n- plain: {plain.account.text()}\n", flush=True)
        pairs = Pairs()
        world.shape("10gbit")
        for _ in range(args.pairs):
            world.training.restart()
            pairs.add(*world.round())
        print(pairs.row("10gbit, other content of the same shapes"), flush=True)
        received(world, coded)
    print()


def received(world, follower):
    """A warm read and a mapping of what came, against the file that was published."""
    here = follower.mount.version("model", world.number) / FILE
    for name, way in (("first warm read", cat), ("mapping, all pages", touch)):
        pairs = Pairs()
        for _ in range(world.args.pairs):
            warm(world.source / FILE)
            pairs.add(way(here), way(world.source / FILE))
        print(pairs.row(f"{name} of the received version, against the native file"), flush=True)


def touch(path):
    """Seconds of mapping a file and reading a byte of each page."""
    begin = time.perf_counter()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        numpy.frombuffer(mapped, dtype=numpy.uint8)[::4096].sum()
    return time.perf_counter() - begin


def followers(directory, args):
    """Eight followers at once, each with 1 Gbit/s, against one."""
    megabytes = max(16, args.megabytes // 4)
    with World(directory, args, ["auto"] * FOLLOWERS, megabytes) as world:
        world.shape("1gbit")
        alone, together, parts = [], [], []
        for _ in range(args.pairs):
            world.publish(RATE)
            alone.append(world.followers[0].read(world.number))
            for follower in world.followers:
                follower.read(world.number)
                follower.settle(world.number)
            world.publish(RATE)
            given = Wire(world.giver.host).sent
            with concurrent.futures.ThreadPoolExecutor(FOLLOWERS) as pool:
                together.append(max(pool.map(lambda one: one.read(world.number), world.followers)))
            parts.append((Wire(world.giver.host).sent - given) / world.size())
            for follower in world.followers:
                compare(world.source, follower, world.number)
                follower.settle(world.number)
        coded = world.giver.daemon.status()["sparse"]["coded_here"]
    print(f"{FOLLOWERS} followers of {megabytes} MiB at 1 Gbit/s each, `weft prefetch`: the last has it after "
          f"{statistics.median(together):.3f} s, one alone after {statistics.median(alone):.3f} s; the publisher sent "
          f"{statistics.median(parts):.4f} of the file and coded {coded} chunks in {2 * args.pairs} versions.\n", flush=True)


def lost_bases(directory, args):
    """Bases are evicted, damaged, and removed at either side, in turn, while versions are read."""
    wrong = errors = 0
    with World(directory, args, ["auto"], LOST_MIB) as world:
        follower = world.followers[0]
        for turn in range(args.lost):
            world.publish(RATE)
            lose(world, follower, turn % 4)
            try:
                follower.read(world.number)
                wrong += not is_equal(world.source, follower, world.number)
            except subprocess.CalledProcessError:
                errors += 1
        now = follower.sparse()
    print(f"{args.lost} bases evicted, damaged, removed, or left alone, in turn: {errors} errors, {wrong} wrong versions; "
          f"{now['coded']} chunks came as differences, {now['failed']} of them failed and came plain.\n", flush=True)


def lose(world, follower, how):
    last = f"model@{world.number - 1}"
    if how == 0:
        follower.node.store.weft("evict", last, check=False)
    elif how == 1:
        damage(follower.node)
    elif how == 2 and world.number > 2:
        world.giver.store.weft("rm", last)
        world.giver.store.weft("gc")


def damage(node):
    """One byte of each MiB of the newest packs."""
    packs = sorted((node.store.path / "packs").glob("*.pack"), key=lambda path: path.stat().st_mtime)
    for pack in packs[-2:]:
        pack.chmod(0o600)
        with pack.open("r+b") as file:
            for at in range(5000, pack.stat().st_size, MIB):
                file.seek(at)
                byte = file.read(1)
                file.seek(at)
                file.write(bytes([byte[0] ^ 1]))


def run(_build, directory, args):
    for part in (wire_bytes, times, followers, lost_bases):
        where = directory / part.__name__
        where.mkdir()
        part(where, args)
        shutil.rmtree(where)
