"""Part `swarm` of the net bench. Table rows: nodes that start to read one model at once, against one node alone, and what the
simulator of swarms says for the same inputs. Table origin: the same with a slow origin in place of the holder. Tables readers
and troubles have modules of their own."""

import contextlib
import itertools
import pathlib
import tempfile

from net_cases import NODES, OPTIONS
from net_nodes import MIB, shape
from net_programs import LoadFile
from net_starts import TOUCHED, Case, Compared, met, print_notes, print_table
from net_swarm_readers import table_readers
from net_swarm_troubles import table_troubles
from slow_origin import ORIGIN_SPEED, nodes_with_origin, publish_at_origin
from swarm_simulated import SEEDS, simulated

RATIO_MAX, COPIES_MAX, SIMULATED_MIN, SIMULATED_MAX, BUSY_MAX = 1.25, 1.05, 0.85, 1.15, 0.8
BINDING_NODES, BINDING_SIZE, BINDING_OPTIONS = 16, 256 * MIB, None
COLUMNS = ("| nodes, links | read | mount options | one alone | all at once | at once ÷ alone: median (95 % interval) "
           "| copies for all | copies for the one | copies for all ÷ copies for the one | simulated | simulated ÷ measured "
           "| failed reads | busy |")
ORIGIN_NODES, ORIGIN_SIZE = [4, 8], 256 * MIB


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


def compared(build, case, found, goal=None):
    """The cells of a case of which `found` is a Compared. `goal` is as from goal_of()."""
    expected = simulated(build, case)["last"]
    agreement = expected / found.ratio
    cells = [*found.cells(), f"{found.copies:.2f}", f"{found.copies_alone:.2f}", f"{found.copies_ratio():.3f}",
             f"{expected:.2f}", f"{agreement:.2f}", found.failed(), f"{found.busy:.0%}"]
    return [*cells, goal[0], met(goal[1](found, agreement))] if goal else cells


def table_rows(build, directory, args):
    cases = [Case(nodes, NODES[nodes], size * MIB, OPTIONS[options], way) for nodes, size, options, way in
             itertools.product(args.nodes or NODES, args.sizes, args.options, args.ways)]
    print(f"One holder, links as fast each way, {args.pairs} pairs that take turns. Seconds are from the start of the first "
          "reader to the end\nof the last one. Copies: bytes that the holder's interface sent while all read, or the one, ÷ "
          "bytes of the model. Simulated:\nbench/swarm_sim with as many nodes, the size and the links, a reader in order on each "
          f"node, the median of {len(SEEDS)} seeds. With failed\nreads, seconds and copies are not those of the model. "
          f"Each loader has {LoadFile.THREADS} thread of torch, since all share this machine's cores.\n")
    notes = []

    def line(case):
        found = Compared(directory, case, args)
        notes.append(found.note())
        return compared(build, case, found, goal_of(case))
    print_table(f"{COLUMNS} goal | met |", cases, line)
    print_notes(notes)


@contextlib.contextmanager
def prepared_at_origin(directory, case, args):
    """As prepared(), with a SlowOrigin in place of the Holder."""
    with tempfile.TemporaryDirectory(prefix="row.", dir=directory) as row:
        where = pathlib.Path(row)
        with (nodes_with_origin(where, case.nodes, "--provider", args.provider) as (nodes, origin),
              case.programs(where) as readers):
            publish_at_origin(nodes, origin, case.model(where))
            shape(nodes, case.mbit)
            yield origin, nodes, readers


def table_origin(build, directory, args):
    print(f"No holder but an origin, a directory that is held to {ORIGIN_SPEED // 10**6} MB/s for all nodes together; else as "
          "above. Copies: bytes that were read from the\norigin ÷ bytes of the model. Simulated: a holder with a link of that "
          "speed in place of the origin.\n")
    notes = []

    def line(case):
        found = Compared(directory, case, args, prepared_at_origin)
        notes.append(found.note())
        return compared(build, case, found)
    print_table(COLUMNS, [Case(nodes, NODES[nodes], ORIGIN_SIZE) for nodes in ORIGIN_NODES], line)
    print_notes(notes)


def run(build, directory, args):
    print(f"{TOUCHED}\n")
    if args.sizes:
        table_rows(build, directory, args)
    if "origin" in args.others:
        table_origin(build, directory, args)
    if "readers" in args.others:
        table_readers(build, directory, args)
    if args.troubles:
        table_troubles(build, directory, args)
