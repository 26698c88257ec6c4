"""scripts/bench lineage: what the store says about where models come from and which are alike."""

import argparse
import os
import pathlib

import measure

# Each part is a module lineage_<part>.py whose run(build, directory, args) prints its tables.
PARTS = ["match", "growth", "tree"]
SPACES = ["seq-10", "seq-50", "skip-10", "skip-50"]


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench lineage")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"), help="where to work")
    parser.add_argument("--keep", type=pathlib.Path, help="a directory where filled indexes stay for the next run")
    parser.add_argument("--fill", action="store_true", help="only fill the indexes, into --keep")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--space", nargs="+", choices=SPACES, help="of architectures; all")
    parser.add_argument("--versions", type=int, nargs="+", help="match: 60000; growth: 10000 100000 1000000")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16], help="match")
    parser.add_argument("--queries", type=int, default=4000, help="of ours, over all clients")
    parser.add_argument("--redis-queries", type=int, help="of each client; 3 for one client, 1 for several")
    parser.add_argument("--cpu", action="store_true", help="times of ours are the thread's on the processor, for a machine"
                        " that others use too")
    parser.add_argument("--additions", type=int, default=1000, help="growth")
    parser.add_argument("only", nargs="*", choices=[*PARTS, []], metavar="PART", help=" ".join(PARTS))
    args = parser.parse_args()
    if args.fill and not args.keep:
        parser.error("--fill needs --keep")
    return args


def main():
    measure.run_parts("lineage", parse(), PARTS)


if __name__ == "__main__":
    main()
