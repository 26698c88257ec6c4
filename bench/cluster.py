"""scripts/bench cluster: what it costs that many nodes have one registry."""

import argparse
import contextlib
import os
import pathlib

import measure
from pace import read_pace

# Each part is a module cluster_<part>.py whose run(build, directory, args) prints its tables.
PARTS = ["setup", "mirror", "latency", "cold", "idle"]


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench cluster")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"), help="where to work")
    parser.add_argument("--versions", type=int, default=100_000, help="mirror, idle")
    parser.add_argument("--times", type=int, default=100, help="latency")
    parser.add_argument("--pairs", type=int, default=7, help="setup, cold")
    parser.add_argument("--megabytes", type=int, default=1024, help="cold: of the file")
    parser.add_argument("--pace", type=int, metavar="MB/S", help="hold the disk's reads to a constant speed")
    parser.add_argument("only", nargs="*", choices=[*PARTS, []], metavar="PART", help=" ".join(PARTS))
    return parser.parse_args()


def main():
    args = parse()
    if args.pace:
        print(f"The disk's reads are held to {args.pace} MB/s.")
    with read_pace(args.dir, args.pace) if args.pace else contextlib.nullcontext():
        measure.run_parts("cluster", args, PARTS)


if __name__ == "__main__":
    main()
