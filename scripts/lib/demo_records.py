#!/usr/bin/env python3
"""Records of an LMDB for scripts/demo datasets.

    demo_records.py write DIRECTORY            makes an LMDB
    demo_records.py read DIRECTORY [FILE…]     drops the pages of the files, reads at random, compares, and prints the speed
    demo_records.py files DIRECTORY            makes small files, in a directory for each class
    demo_records.py share CONTAINER RECORDS SOURCE   reads the container's rows as two ranks do, and compares them
"""
import os
import pathlib
import random
import resource
import struct
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


def write_files(directory):
    for number in range(1000):
        path = pathlib.Path(directory) / f"class{number % 4}" / f"{number:04}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random.Random(number).randbytes(20_000))


def rows_of(path):
    """The numbers of an .npy file, without NumPy: 8 bytes each behind the header."""
    with open(path, "rb") as file:
        content = file.read()
    begin = 10 + struct.unpack("<H", content[8:10])[0]
    return struct.unpack(f"<{(len(content) - begin) // 8}Q", content[begin:])


def share(container, records, source):
    index = rows_of(f"{records}/index.npy")
    keys = pathlib.Path(records, "keys.txt").read_text().splitlines()
    with open(container, "rb") as file:
        for rank in range(2):
            mine = rows_of(f"{records}/order/7/2/{rank}.npy")
            for row in mine:
                record = os.pread(file.fileno(), index[2 * row + 1], index[2 * row])
                if record != pathlib.Path(source, keys[row]).read_bytes():
                    raise SystemExit("demo: a record has other bytes")
            print(f"   rank {rank}: {len(mine)} rows, first {keys[mine[0]] if mine else '-'}; all bytes are right")


if __name__ == "__main__":
    if sys.argv[1] == "files":
        write_files(sys.argv[2])
    elif sys.argv[1] == "share":
        share(*sys.argv[2:5])
    elif sys.argv[1] == "write":
        pathlib.Path(sys.argv[2]).parent.mkdir(parents=True, exist_ok=True)
        lmdblib.write(sys.argv[2], RECORDS, BYTES)
    else:
        read(sys.argv[2], sys.argv[3:])
