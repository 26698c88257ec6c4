"""scripts/bench cluster: what it costs that many nodes have one registry."""

import argparse
import importlib
import os
import pathlib
import signal
import sys
import tempfile

import measure

# Each part is a module cluster_<part>.py whose run(build, directory, args) prints its tables.
PARTS = ["mirror", "latency", "cold"]


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench cluster")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"), help="where to work")
    parser.add_argument("--versions", type=int, default=100_000, help="mirror")
    parser.add_argument("--times", type=int, default=100, help="latency")
    parser.add_argument("--pairs", type=int, default=7, help="cold")
    parser.add_argument("--megabytes", type=int, default=1024, help="cold: of the file")
    parser.add_argument("only", nargs="*", choices=[*PARTS, []], metavar="PART", help=" ".join(PARTS))
    return parser.parse_args()


def main():
    args = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended
    print(f"Taken on {measure.machine(args.dir)}.")
    for part in args.only or PARTS:
        with tempfile.TemporaryDirectory(prefix="weft-bench.", dir=args.dir) as directory:
            importlib.import_module(f"cluster_{part}").run(args.build.resolve(), pathlib.Path(directory), args)


if __name__ == "__main__":
    main()
