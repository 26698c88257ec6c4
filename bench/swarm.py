"""scripts/bench swarm: the daemon's rule of swarms in virtual time, from two nodes to ten thousand. Nothing is measured on this
machine but the simulator itself."""

import argparse
import pathlib

from measure import end_by_signals
from swarm_simulated import simulate

GIB = 1 << 30
SMALL, LARGE = 1 * GIB, 140 * GIB
NODES, QUICK_NODES = [2, 4, 8, 16, 64, 256, 1024, 10_000], [2, 16, 64]
# Estimated: a node keeps 0.5 MiB for 140 GiB, and more nodes take hours and gigabytes.
LARGE_NODES, QUICK_LARGE_NODES = [2, 4, 16, 64], [2, 4]
TROUBLED_NODES, QUICK_TROUBLED_NODES = [16, 256, 10_000], [16]
SLOW_SHARE, DYING_SHARE = 0.05, 0.01  # of the nodes, one at least
SLOW_DIVISOR = 4  # of a slow node's link, as the simulator has it
RATIO_MAX, RATIO_NODES, SECONDS_MAX, MEMORY_MAX = 1.5, 10_000, 600, 2048  # goals for 1 GiB without trouble
COLUMNS = "last node | median | copies | messages a unit | declined | simulator |"
HEAD = f"| nodes | {COLUMNS} goal | met |"
TROUBLE_HEAD = f"| nodes | trouble | slow ones, of their own link | core crossed | {COLUMNS}"


def share(nodes, of):
    return max(of, 1 / nodes)


def troubles(nodes):
    """(text, options of the simulator) of each kind of trouble."""
    slow, dying = share(nodes, SLOW_SHARE), share(nodes, DYING_SHARE)
    racks = {"racks": 2, "core": 4}
    return [*((f"begun over {seconds} s", {"spread": seconds}) for seconds in (2, 5, 60)),
            (f"{slow:.0%} of the links four times slower", {"slow": slow}),
            (f"{dying:.0%} die, connections reset", {"deaths": dying}),
            (f"{dying:.0%} die, silent for 1 s", {"deaths": dying, "silent": 1}),
            ("two racks, 4:1 between, unknown to all", racks),
            ("two racks, 4:1 between, each node says its rack", racks | {"location": True})]


def cells(found):
    """Those of COLUMNS."""
    last = f"{found['last']:.2f}" + (f", {found['unfinished']:.0f} unfinished" if found["unfinished"] else "")
    return [last, f"{found['median']:.2f}", f"{found['copies']:.3f}", f"{found['messages']:.1f}", f"{found['declined']:.2f}",
            f"{found['seconds']:.0f} s, {found['mib']:.0f} MiB"]


def print_head(title, head):
    print(f"\n{title}\n\n{head}\n" + "|---" * (head.count("|") - 1) + "|", flush=True)


def goal(found):
    """The last two cells of the row of the first table that has a goal."""
    holds = (found["last"] <= RATIO_MAX and found["seconds"] <= SECONDS_MAX and found["mib"] <= MEMORY_MAX
             and not found["unfinished"])
    return [f"last ≤ {RATIO_MAX}, {SECONDS_MAX} s, {MEMORY_MAX} MiB", "yes" if holds else "NO"]


def run_row(args, first, nodes, size, last=lambda found: [], **options):
    """Prints first(found), COLUMNS and last(found). A run that fails does not end the table."""
    try:
        found = simulate(args.build, nodes=nodes, size=size, link=args.link, seed=args.seed, **options)
    except (OSError, RuntimeError) as failure:
        return print(f"| {nodes} | not simulated: {' '.join(str(failure).split())[:300]} |", flush=True)
    return print("| " + " | ".join([str(nodes), *first(found), *cells(found), *last(found)]) + " |", flush=True)


def table_at_once(args, size):
    print_head(f"{size // GIB} GiB, all at once:", HEAD)
    for nodes in args.nodes if size == SMALL else args.large:
        has_goal = size == SMALL and nodes == RATIO_NODES
        run_row(args, lambda found: [], nodes, size, goal if has_goal else lambda found: ["", ""])


def table_troubles(args):
    print_head(f"{SMALL // GIB} GiB, with trouble:", TROUBLE_HEAD)
    for nodes in args.troubled:
        for text, options in troubles(nodes):
            def first(found, text=text, options=options):
                return [text, f"{found['slow'] / SLOW_DIVISOR:.2f}" if "slow" in options else "",
                        f"{found['core']:.1f} times" if "racks" in options else ""]
            run_row(args, first, nodes, SMALL, **options)


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench swarm", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--nodes", nargs="*", type=int, metavar="N", help="that fetch 1 GiB")
    parser.add_argument("--large", nargs="*", type=int, metavar="N", help="that fetch 140 GiB")
    parser.add_argument("--troubled", nargs="*", type=int, metavar="N", help="that fetch 1 GiB, for each kind of trouble")
    parser.add_argument("--link", type=int, default=10_000, metavar="MBIT", help="Mbit/s of each node, each way")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few nodes, which take seconds")
    args = parser.parse_args()
    for name, quick, full in (("nodes", QUICK_NODES, NODES), ("large", QUICK_LARGE_NODES, LARGE_NODES),
                              ("troubled", QUICK_TROUBLED_NODES, TROUBLED_NODES)):
        if getattr(args, name) is None:
            setattr(args, name, quick if args.quick else full)
    return args


def main():
    args = parse()
    end_by_signals()
    print(f"Simulated with {args.link} Mbit/s for each node each way, seed {args.seed}. Last node and median: seconds from a "
          "node's own begin\nto its end ÷ seconds of one node alone. Slow nodes and nodes that died count in neither. Copies: "
          "bytes that the source sent ÷ size.\nMessages and declined offers: for each unit that a node received. Simulator: its seconds and its memory.")
    table_at_once(args, SMALL)
    table_at_once(args, LARGE)
    table_troubles(args)


if __name__ == "__main__":
    main()
