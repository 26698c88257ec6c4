#!/usr/bin/env python3
"""Records of an LMDB for scripts/demo datasets.

    demo_records.py write DIRECTORY            makes an LMDB
    demo_records.py read DIRECTORY [FILE…]     drops the pages of the files, reads at random, compares, and prints the speed
"""
import os
import pathlib
import random
import resource
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests"))

import lmdblib  # noqa: E402

RECORDS, BYTES, READ = 3000, 110_000, 1000


def forget(path):
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(directory, files):
    os.sync()
    for path in files:
        forget(path)
    env = lmdblib.Environment(directory, lmdblib.RDONLY | lmdblib.NOTLS | lmdblib.NORDAHEAD)
    numbers = random.Random(1).sample(range(RECORDS), READ)
    faults, begin = resource.getrusage(resource.RUSAGE_SELF).ru_majflt, time.perf_counter()
    values = [env.get(lmdblib.key_of(number)) for number in numbers]
    took = time.perf_counter() - begin
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - faults
    env.close()
    if values != [lmdblib.value_of(number, BYTES) for number in numbers]:
        raise SystemExit("demo: a record has other bytes")
    print(f"   {READ / took:,.0f} records a second, {faults / READ:.1f} major page faults a record; all bytes are right")


if __name__ == "__main__":
    if sys.argv[1] == "write":
        pathlib.Path(sys.argv[2]).parent.mkdir(parents=True, exist_ok=True)
        lmdblib.write(sys.argv[2], RECORDS, BYTES)
    else:
        read(sys.argv[2], sys.argv[3:])
