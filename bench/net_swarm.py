"""Part `swarm` of the net bench. Table rows: nodes that start to read one model at once, against one node alone, and what the
simulator of swarms says for the same inputs. Table troubles: eight nodes, of which some begin late, are slow, or end."""

import dataclasses
import itertools
import statistics

from measure import interval
from net_cases import NODES, OPTIONS, TROUBLES, WAYS
from net_nodes import MIB, PATIENCE, WEFTD, Trunk, arrived, run as run_command, shape, wait_until
from net_programs import read_each
from net_starts import IDLE_SECONDS_MAX, Case, Compared, Start, met, prepared, print_notes, print_table, reasons
from swarm_simulated import simulate

RATIO_MAX, COPIES_MAX, SIMULATED_MIN, SIMULATED_MAX, BUSY_MAX = 1.25, 1.05, 0.85, 1.15, 0.8
BINDING_NODES, BINDING_SIZE, BINDING_OPTIONS = 16, 256 * MIB, None
SEEDS = range(1, 6)  # of the simulator, whose median counts
HEAD = ("| nodes, links | read | mount options | one alone | all at once | at once ÷ alone: median (95 % interval) "
        "| copies for all | copies ÷ those for one | simulated | simulated ÷ measured | failed reads | busy | goal | met |")
TROUBLED, TROUBLE_SIZE = 8, 256 * MIB
LATE_SECONDS, SLOW_MBIT, BETWEEN_MBIT = 0.5, 50, 200
TROUBLE_HEAD = ("| nodes, links | read | mount options | trouble | one alone | the last survivor "
                "| last survivor ÷ alone: median (95 % interval) | slowest from its own begin ÷ alone | the slow one ÷ alone "
                "| copies sent | failed reads | busy |")


def simulated(build, case):
    """Seconds of the last node ÷ seconds of one alone, by the simulator with the inputs of the case."""
    runs = [simulate(build, nodes=case.nodes, size=case.size, link=case.mbit, seed=seed) for seed in SEEDS]
    if any(one["unfinished"] for one in runs):
        raise RuntimeError("a node of the simulator did not end")
    return statistics.median(one["last"] for one in runs)


def goal_of(case):
    """(text, function of a Compared and simulated ÷ measured) of a case; None for a case that is only printed."""
    if (case.size, case.options) != (BINDING_SIZE, BINDING_OPTIONS):
        return None
    text = f"simulated ÷ measured {SIMULATED_MIN} to {SIMULATED_MAX}, busy < {BUSY_MAX:.0%}"
    if case.nodes == BINDING_NODES:
        text = f"ratio ≤ {RATIO_MAX}, copies ÷ ≤ {COPIES_MAX}, {text}"

    def holds(found, agreement):
        swarm = case.nodes != BINDING_NODES or (found.ratio <= RATIO_MAX and found.copies_ratio() <= COPIES_MAX)
        return swarm and SIMULATED_MIN <= agreement <= SIMULATED_MAX and found.busy < BUSY_MAX and not found.failures
    return text, holds


def compared(build, directory, case, args, notes):
    """The cells of a case."""
    expected = simulated(build, case)
    found = Compared(directory, case, args)
    notes.append(found.note())
    agreement, goal = expected / found.ratio, goal_of(case)
    return [*found.cells(), f"{found.copies:.2f}", f"{found.copies_ratio():.3f}", f"{expected:.2f}", f"{agreement:.2f}",
            found.failed(), f"{found.busy:.0%}", *((goal[0], met(goal[1](found, agreement))) if goal else ("", ""))]


def table_rows(build, directory, args):
    cases = [Case(nodes, NODES[nodes], size * MIB, OPTIONS[options], way) for nodes, size, options, way in
             itertools.product(args.nodes or NODES, args.sizes, args.options, args.ways)]
    print(f"One holder, links as fast each way, {args.pairs} pairs that take turns. Seconds are from the start of the first "
          "reader to the end\nof the last one. Copies: bytes that the holder's interface sent while all read ÷ bytes of the "
          "model. Simulated: bench/swarm_sim\nwith as many nodes, the size and the links, a reader in order on each node, the "
          f"median of {len(SEEDS)} seeds. With failed reads, seconds\nand copies are not those of the model.\n")
    notes = []
    print_table(HEAD, cases, lambda case: compared(build, directory, case, args, notes))
    print_notes(notes)


class Trouble:
    """What happens to nodes that read. With this one: nothing."""
    every = 0  # seconds between the begins of two readers
    slow = []  # indices of nodes whose seconds are a column of their own

    def words(self, _number):
        """More options of a daemon."""
        return []

    def prepare(self, nodes):
        """Changes the network before the first read."""

    def happen(self, start):
        """Runs while the nodes of a Start read. Returns the nodes that it ended."""
        return []


class Late(Trouble):
    every = LATE_SECONDS


class Slow(Trouble):
    slow = [TROUBLED - 1]

    def prepare(self, nodes):
        shape([nodes[-1]], SLOW_MBIT)


class Killed(Trouble):
    """A node that has half of the model is killed."""

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
    def unplug(self, victim):
        victim.host.cut()


class Directory(Killed):
    def victim(self, nodes):
        return directories(nodes)[0]


class Groups(Trouble):
    """Half of the nodes are at another switch."""

    def prepare(self, nodes):
        hosts = [node.host for node in nodes]
        Trunk(hosts[0].network, hosts[len(hosts) // 2:]).shape(f"{BETWEEN_MBIT}mbit")


class Locations(Groups):
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

    def read(self, files):
        def happen():
            self.lost = self.trouble.happen(self)
        reads = read_each(self.readers, files, self.trouble.every, happen)
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


def in_trouble(directory, case, args):
    """The cells of a row. Each pair has a cluster of its own, since some troubles cost it nodes."""
    trouble, alone, starts = KINDS[case.trouble](), [], []
    for _ in range(args.pairs):
        with prepared(directory, case, args, trouble.words) as (holder, nodes, readers):
            one = Start(case, holder, nodes, readers[:1])
            alone.append((one(), one))
            trouble.prepare(nodes)
            starts.append(TroubledStart(trouble, case, holder, nodes, readers))
            starts[-1]()
    took = [seconds for seconds, _ in alone]
    ratios = [start.last / seconds for start, seconds in zip(starts, took)]
    (low, high), both = interval(ratios), [*starts, *(one for _, one in alone)]
    failures = [failure for start in both for failure in start.failures]
    slow = [start.slow / seconds for start, seconds in zip(starts, took)]
    return [*case.cells(), f"{statistics.median(took):.2f} s", f"{statistics.median(start.last for start in starts):.2f} s",
            f"{statistics.median(ratios):.2f} ({low:.2f} to {high:.2f})",
            f"{statistics.median(start.own / seconds for start, seconds in zip(starts, took)):.2f}",
            f"{statistics.median(slow):.2f}" if trouble.slow else "",
            f"{statistics.median(start.copies[0] for start in starts):.2f}",
            f"{len(failures)} of {sum(start.reads for start in both)}" + (f": {reasons(failures)}" if failures else ""),
            f"{statistics.median(start.account.cores.busy[0] for start in starts):.0%}"]


def has_locations():
    """True if weftd can be told where its node is."""
    return "--location" in run_command([WEFTD, "--help"]).stdout


def table_troubles(directory, args):
    print(f"{TROUBLED} nodes and one holder with {NODES[TROUBLED]} Mbit/s each way, {WAYS['cat']}, {args.pairs} pairs, one "
          "node alone first, each pair with new\nnodes. Seconds are from the start of the first reader to the end of the last "
          "one whose node lives. Failed reads of a node that was\nkilled do not count. A slow node has a column of its own.\n")
    names = [name for name in args.troubles if name != "locations" or has_locations()]
    cases = [Troubled(TROUBLED, NODES[TROUBLED], TROUBLE_SIZE, trouble=name) for name in names]
    print_table(TROUBLE_HEAD, cases, lambda case: in_trouble(directory, case, args))
    skipped = [f"{TROUBLES[name]}: skipped, since weftd has no option --location" for name in args.troubles if name not in names]
    print_notes(skipped)


def run(build, directory, args):
    if args.sizes:
        table_rows(build, directory, args)
    if args.troubles:
        table_troubles(directory, args)
