"""scripts/bench net: what it costs to have bytes on another node."""

import argparse
import os
import pathlib

import measure
import net_cases
from net_nodes import PROVIDERS

# Each part is a module net_<part>.py whose run(build, directory, args) prints its tables.
PARTS = ["whole", "small", "tensor", "subset", "holders", "together", "swarm", "origin", "sparse", "idle"]


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench net")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"), help="where to work")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=1024, help="of the file that is read whole")
    parser.add_argument("--lost", type=int, default=1000, help="of part sparse: bases that are lost in turn")
    parser.add_argument("--provider", default=PROVIDERS[0], help="of libfabric, on both sides")
    parser.add_argument("--gbit", type=float, help="of the giver's link, where a file is read whole; else nothing bounds it")
    parser.add_argument("only", nargs="*", choices=[*PARTS, []], metavar="PART", help=" ".join(PARTS))
    net_cases.add_arguments(parser)
    return parser.parse_args()


def main():
    measure.run_parts("net", parse(), PARTS)


if __name__ == "__main__":
    main()
