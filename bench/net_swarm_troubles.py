"""Table troubles of part `swarm` of the net bench: eight nodes read one model, and some begin late, are slow, or end, or are
at another switch."""

import dataclasses
import statistics

from measure import interval
from net_cases import NODES, TROUBLES, WAYS
from net_nodes import MIB, PATIENCE, WEFTD, Trunk, Wire, arrived, run as run_command, shape, wait_until
from net_programs import read_each
from net_starts import IDLE_SECONDS_MAX, Case, Start, prepared, print_notes, print_table, reasons
from swarm_simulated import simulated

TROUBLED, TROUBLE_SIZE = 8, 256 * MIB
LEASE_SECONDS = 10  # a node that is silent for so long is no member of the cluster any more
LATE_SECONDS, SLOW_MBIT, BETWEEN_MBIT = 0.5, 50, 200  # the simulator slows a link down four times
HEAD = ("| nodes, links | read | mount options | trouble | one alone | the last survivor "
        "| last survivor ÷ alone: median (95 % interval) | slowest from its own begin ÷ alone | simulated "
        "| simulated ÷ measured | the slow one ÷ alone | simulated | copies sent | crossed between the groups ÷ size "
        "| simulated | failed reads | busy |")


class Trouble:
    """What happens to nodes that read. With this one: nothing."""
    every = 0  # seconds between the begins of two readers
    slow = []  # indices of nodes whose seconds are a column of their own
    groups = False  # True: the nodes are in two, and the bytes between them are columns of their own
    simulated = None  # options of the simulator, if it can say this

    def words(self, _number):
        """More options of a daemon."""
        return []

    def prepare(self, nodes):
        """Changes the network before the first read."""

    def crossed(self, _nodes):
        """Bytes that have passed between two groups of the nodes."""
        return 0

    def happen(self, start):
        """Runs while the nodes of a Start read. Returns the nodes that it ended."""
        return []


class Late(Trouble):
    every = LATE_SECONDS
    simulated = {"spread": LATE_SECONDS * (TROUBLED - 1)}


class Slow(Trouble):
    slow = [TROUBLED - 1]
    simulated = {"slow": 1 / TROUBLED}

    def prepare(self, nodes):
        shape([nodes[-1]], SLOW_MBIT)


class Killed(Trouble):
    """A node that has half of the model is killed."""
    simulated = {"deaths": 1 / TROUBLED}

    def victim(self, nodes):
        """The last node that keeps no directory, so that the other rows tell what a directory changes."""
        kept = directories(nodes)
        return next(node for node in reversed(nodes) if node not in kept)

    def unplug(self, victim):
        """What comes before the end of the daemon."""

    def happen(self, start):
        wait_until(lambda: directories(start.nodes), seconds_max=PATIENCE, pause=0.5)
        victim = self.victim(start.nodes)
        half = start.before[victim] + start.case.size / 2
        wait_until(lambda: arrived(victim) >= half, seconds_max=IDLE_SECONDS_MAX, pause=0.05)
        self.unplug(victim)
        victim.daemon.kill()
        start.readers[start.nodes.index(victim)].process.kill()
        return [victim]


class Cut(Killed):
    simulated = Killed.simulated | {"silent": LEASE_SECONDS}

    def unplug(self, victim):
        victim.host.cut()


class Directory(Killed):
    simulated = None

    def victim(self, nodes):
        return directories(nodes)[0]


class Groups(Trouble):
    """Half of the nodes are at another switch."""
    groups = True
    # A rack of the simulator has half of the hosts: the nodes, the holder and the directory.
    simulated = {"racks": 2, "core": (TROUBLED + 2) // 2 * NODES[TROUBLED] // BETWEEN_MBIT}

    def prepare(self, nodes):
        hosts = [node.host for node in nodes]
        self.trunk = Trunk(hosts[0].network, hosts[len(hosts) // 2:])
        self.trunk.shape(f"{BETWEEN_MBIT}mbit")

    def crossed(self, _nodes):
        wire = Wire(self.trunk)
        return wire.sent + wire.received


class Locations(Groups):
    simulated = Groups.simulated | {"location": True}

    def words(self, number):
        return ["--location", "group1" if number > TROUBLED // 2 else "group0"]


KINDS = {"late": Late, "slow": Slow, "killed": Killed, "cut": Cut, "directory": Directory, "groups": Groups,
         "locations": Locations}


def directories(nodes):
    """The nodes that have introduced others for the model."""
    return [node for node in nodes if node.daemon.status()["swarms"]["introduced"]]


class TroubledStart(Start):
    """A start in trouble. Its seconds are those of the last survivor that is not slow."""

    def __init__(self, trouble, *parts):
        super().__init__(*parts)
        self.trouble, self.lost = trouble, []
        self.own, self.slow = 0.0, 0.0  # seconds of the slowest survivor from its own begin; of the slow node
        self.crossed = 0.0  # copies that passed between the groups

    def read(self, files):
        def happen():
            self.lost = self.trouble.happen(self)
        before = self.trouble.crossed(self.nodes)
        reads = read_each(self.readers, files, self.trouble.every, happen)
        self.crossed = (self.trouble.crossed(self.nodes) - before) / self.case.size
        by_node = list(zip(self.nodes, reads))
        counted = [read for number, (node, read) in enumerate(by_node)
                   if node not in self.lost and number not in self.trouble.slow]
        self.last = max(read.end for read in counted)
        self.own = max(read.end - read.begin for read in counted)
        self.slow = max((reads[number].end for number in self.trouble.slow), default=0.0)
        return reads

    def survivors(self, nodes):
        return [node for node in nodes if node not in self.lost]


@dataclasses.dataclass
class Troubled(Case):
    """A row of the second table."""
    trouble: str = ""

    def cells(self):
        return [*super().cells(), TROUBLES[self.trouble]]


class InPairs:
    """One node alone and then all in trouble, several times. Each pair has a cluster of its own, since some troubles cost it
    nodes."""

    def __init__(self, directory, case, args, trouble):
        self.took, self.alone, self.starts = [], [], []
        for _ in range(args.pairs):
            with prepared(directory, case, args, trouble.words) as (holder, nodes, readers):
                self.alone.append(Start(case, holder, nodes, readers[:1]))
                self.took.append(self.alone[-1]())
                trouble.prepare(nodes)
                self.starts.append(TroubledStart(trouble, case, holder, nodes, readers))
                self.starts[-1]()

    def ratios(self, name):
        """These seconds of the starts in trouble ÷ seconds of one node alone."""
        return [getattr(start, name) / took for start, took in zip(self.starts, self.took)]

    def median(self, name):
        return statistics.median(self.ratios(name))

    def failed(self):
        both = [*self.alone, *self.starts]
        failures = [failure for start in both for failure in start.failures]
        return f"{len(failures)} of {sum(start.reads for start in both)}" + (f": {reasons(failures)}" if failures else "")


def expected_of(build, case, trouble):
    """What the simulator says of a row, seconds ÷ those of one node alone without trouble. None if it cannot say anything."""
    if trouble.simulated is None:
        return None
    found = simulated(build, case, **trouble.simulated)
    longer = found["alone"] / simulated(build, case)["alone"]  # the one node crosses from group to group too
    return {"last": found["last"] * longer, "slow": found["slow"] * longer, "core": found["core"]}


def in_trouble(build, directory, case, args):
    """The cells of a row."""
    trouble = KINDS[case.trouble]()
    expected = expected_of(build, case, trouble)
    found = InPairs(directory, case, args, trouble)
    starts, (low, high) = found.starts, interval(found.ratios("last"))
    cells = [*case.cells(), f"{statistics.median(found.took):.2f} s",
             f"{statistics.median(start.last for start in starts):.2f} s",
             f"{found.median('last'):.2f} ({low:.2f} to {high:.2f})", f"{found.median('own'):.2f}"]
    cells += [f"{expected['last']:.2f}", f"{expected['last'] / found.median('own'):.2f}"] if expected else ["not simulated", ""]
    cells += [f"{found.median('slow'):.2f}", f"{expected['slow']:.2f}"] if trouble.slow else ["", ""]
    cells += [f"{statistics.median(start.copies[0] for start in starts):.2f}"]
    crossed = statistics.median(start.crossed for start in starts)
    cells += [f"{crossed:.2f}", f"{expected['core']:.2f}"] if trouble.groups else ["", ""]
    return [*cells, found.failed(), f"{statistics.median(start.account.cores.busy[0] for start in starts):.0%}"]


def has_locations():
    """True if weftd can be told where its node is."""
    return "--location" in run_command([WEFTD, "--help"]).stdout


def table_troubles(build, directory, args):
    print(f"{TROUBLED} nodes and one holder with {NODES[TROUBLED]} Mbit/s each way, {WAYS['cat']}, {args.pairs} pairs, one "
          "node alone first, each pair with new\nnodes. Seconds are from the start of the first reader to the end of the last "
          "one whose node lives. Failed reads of a node that was\nkilled do not count. A slow node has a column of its own. "
          "Crossed: bytes that passed between the groups, both ways. Simulated, where\nbench/swarm_sim can say it: seconds from "
          f"a node's own begin. Its late nodes begin at random times within {LATE_SECONDS * (TROUBLED - 1)} s, and its killed\n"
          f"node dies at a random time; {LEASE_SECONDS} s later the others know of a node whose link was cut.\n")
    names = [name for name in args.troubles if name != "locations" or has_locations()]
    cases = [Troubled(TROUBLED, NODES[TROUBLED], TROUBLE_SIZE, trouble=name) for name in names]
    print_table(HEAD, cases, lambda case: in_trouble(build, directory, case, args))
    skipped = [f"{TROUBLES[name]}: skipped, since weftd has no option --location" for name in args.troubles if name not in names]
    print_notes(skipped)
