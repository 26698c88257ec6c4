"""scripts/bench read: models that are on this node, read through the mount, against their own file system and peers."""

import argparse
import contextlib
import importlib
import os
import pathlib
import tempfile

import measure
from pace import read_pace
from read_set import MIB, ReadBench, free_space_for

# Each part is a module read_<part>.py whose run(bench) prints its tables.
PARTS = ["warm", "views", "cold", "ahead", "touch", "derived", "walk", "overlay", "peers", "plain"]


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench read")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--python", default="build/venv-test/bin/python", help="a Python with torch and safetensors")
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"),
                        help="where to work: the file system measured")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the model that is read")
    parser.add_argument("--pace", type=int, metavar="MB/S", help="hold the disk's reads to a constant speed")
    parser.add_argument("only", nargs="*", choices=[*PARTS, []], metavar="PART", help=" ".join(PARTS))
    args = parser.parse_args()
    measure.end_by_signals()
    free_space_for(args.dir, 6 * args.megabytes * MIB)
    paced = f", the disk held to {args.pace} MB/s" if args.pace else ""
    print(f"Taken on {measure.machine(args.dir)}, libfuse {measure.libfuse()}{paced}.")
    with read_pace(args.dir, args.pace) if args.pace else contextlib.nullcontext():
        for part in args.only or PARTS:
            print()
            run_part(part, args)


def run_part(part, args):
    with tempfile.TemporaryDirectory(prefix="weft-bench.", dir=args.dir) as directory:
        bench = ReadBench(args.build.resolve(), directory, args.pairs, args.megabytes * MIB,
                          pathlib.Path(args.python).absolute())
        try:
            importlib.import_module(f"read_{part}").run(bench)
        finally:
            bench.close()


if __name__ == "__main__":
    main()
