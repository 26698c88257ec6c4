"""Reads records of an LMDB as a loader does, through LMDB's own library. Says "ready" once it has opened the file, reads
when it gets a line, and then prints its seconds and its major and minor faults.

    python datasets_reader.py DIRECTORY WAY RECORDS NUMBER SEED
    python datasets_reader.py DIRECTORY part|eighth RECORDS RANK RECORDS_DIRECTORY

WAY: random (NUMBER of the RECORDS), again (the same twice; the second time counts), order (all, by key). part: rank RANK of
eight reads its part by index; eighth: it takes every eighth record, in order."""
import json
import os
import pathlib
import random
import resource
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import lmdblib  # noqa: E402
import numpy  # noqa: E402


def scan(directory, way, records, rank, rows):
    """Records of one rank of eight."""
    env = lmdblib.Environment(directory, lmdblib.RDONLY | lmdblib.NOTLS | lmdblib.NORDAHEAD)
    container = os.open(os.path.join(directory, "data.mdb"), os.O_RDONLY)
    print("ready", flush=True)
    sys.stdin.readline()
    begin = time.perf_counter()
    if way == "eighth":
        count = len(range(rank, records, 8))
        for number in range(rank, records, 8):
            env.get(lmdblib.key_of(number))
    else:
        index = numpy.load(os.path.join(rows, "index.npy"), mmap_mode="r")
        mine = numpy.load(os.path.join(rows, "part/8", f"{rank}.npy"))
        count = len(mine)
        for offset, length in index[mine]:
            os.pread(container, int(length), int(offset))
    print(json.dumps({"seconds": time.perf_counter() - begin, "records": count}))


def main():
    directory, way = sys.argv[1:3]
    if way in ("part", "eighth"):
        scan(directory, way, int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
        return
    records, number, seed = map(int, sys.argv[3:])
    keys = [lmdblib.key_of(one) for one in range(records)]
    if way != "order":
        keys = random.Random(seed).sample(keys, number)
    env = lmdblib.Environment(directory, lmdblib.RDONLY | lmdblib.NOTLS | lmdblib.NORDAHEAD)
    env.get(keys[0])
    print("ready", flush=True)
    sys.stdin.readline()
    if way == "again":
        for key in keys:
            env.get(key)
    before, begin = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    for key in keys:
        env.get(key)
    took, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"seconds": took, "records": len(keys), "major": after.ru_majflt - before.ru_majflt,
                      "minor": after.ru_minflt - before.ru_minflt}))


if __name__ == "__main__":
    main()
