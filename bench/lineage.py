"""scripts/bench lineage: what the store says about where models come from and which are alike."""

import argparse
import importlib
import os
import pathlib
import signal
import sys
import tempfile

import measure

# Each part is a module lineage_<part>.py whose run(build, directory) prints its tables.
PARTS = ["match", "tree"]


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench lineage")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"), help="where to work")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer queries")
    parser.add_argument("only", nargs="*", choices=[*PARTS, []], metavar="PART", help=" ".join(PARTS))
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended
    print(f"Taken on {measure.machine(args.dir)}.")
    for part in args.only or PARTS:
        with tempfile.TemporaryDirectory(prefix="weft-bench.", dir=args.dir) as directory:
            importlib.import_module(f"lineage_{part}").run(args.build.resolve(), pathlib.Path(directory), args.quick)


if __name__ == "__main__":
    main()
