"""scripts/bench datasets: data sets on one node, and records that another node has."""

import argparse
import os
import pathlib

import measure
from net_nodes import PROVIDERS

# Each part is a module datasets_<part>.py whose run(build, directory, args) prints its tables.
PARTS = ["lmdb", "files", "members", "records"]


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench datasets", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"), help="where to work")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--records", type=int, default=10_000, help="of part lmdb, 110,000 bytes each")
    parser.add_argument("--files", type=int, default=100_000, help="of part files, 20,000 bytes each")
    parser.add_argument("--many", type=int, default=1_300_000, help="files of part files, of 100 bytes, for its memory")
    parser.add_argument("--pace", type=int, metavar="MB/S", help="of part lmdb: hold the disk's reads to a constant speed")
    parser.add_argument("--provider", default=PROVIDERS[0], help="of part records: of libfabric, on both sides")
    parser.add_argument("only", nargs="*", choices=[*PARTS, []], metavar="PART", help=" ".join(PARTS))
    measure.run_parts("datasets", parser.parse_args(), PARTS)


if __name__ == "__main__":
    main()
