"""scripts/bench publish: what it takes until others have what a program saves."""

import argparse
import os
import pathlib

import measure

# Each part is a module publish_<part>.py whose run(build, directory, args) prints its tables.
PARTS = ["delay", "delivery", "shared", "flush", "write"]


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench publish")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"), help="where to work")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=600, help="what is saved")
    parser.add_argument("--times", type=int, default=200, help="of part delay")
    parser.add_argument("--provider", default="net", help="of libfabric, on both sides")
    parser.add_argument("only", nargs="*", choices=[*PARTS, []], metavar="PART", help=" ".join(PARTS))
    return parser.parse_args()


def main():
    measure.run_parts("publish", parse(), PARTS)


if __name__ == "__main__":
    main()
