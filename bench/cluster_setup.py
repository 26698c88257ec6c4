"""From `weft cluster init` on one of four machines until the last of the others has joined, by `weft cluster join`."""

import pathlib
import statistics
import sys
import time

TESTS = pathlib.Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "cluster")]
from clusterlib import Network  # noqa: E402
from weftlib import WEFT, run as run_program  # noqa: E402

GOAL_S = 60
MACHINES = 4


def set_up(directory):
    """Seconds of `init`, and of each `join` after it."""
    with Network() as network:
        hosts = [network.host() for _ in range(MACHINES)]
        places = [directory / f"n{number}" for number in range(1, MACHINES + 1)]

        def weft(at, *words):
            begin = time.perf_counter()
            done = run_program([*hosts[at].inside, WEFT, "cluster", *words, "--dir", places[at], "--name", places[at].name])
            return time.perf_counter() - begin, done.stdout

        try:
            init, printed = weft(0, "init", "--uses", MACHINES - 1)
            token = printed.split()[-1]
            return init, [weft(at, "join", token)[0] for at in range(1, MACHINES)]
        finally:
            for host, place in zip(reversed(hosts), reversed(places)):
                if (place / "stop").exists():
                    run_program([*host.inside, "sh", place / "stop"])


def run(_build, directory, args):
    took = []
    for number in range(args.pairs):
        area = directory / f"setup{number}"
        area.mkdir()
        took.append(set_up(area))
    whole = [init + sum(joins) for init, joins in took]
    joins = [seconds for _, each in took for seconds in each]
    print("\n| `weft cluster init` and `join` on four machines, each in a network of its own | median | longest | goal | met | "
          "times |\n|---|---|---|---|---|---|")
    print(f"| init, with an etcd | {statistics.median(init for init, _ in took):.2f} s | "
          f"{max(init for init, _ in took):.2f} s | | | {len(took)} |")
    print(f"| join | {statistics.median(joins):.2f} s | {max(joins):.2f} s | | | {len(joins)} |")
    print(f"| from nothing to four nodes | {statistics.median(whole):.2f} s | {max(whole):.2f} s | ≤ {GOAL_S} s | "
          f"{'yes' if max(whole) <= GOAL_S else 'NO'} | {len(whole)} |")
