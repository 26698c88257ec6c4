"""Part `lmdb` of the bench of data sets: an LMDB that LMDB's own library reads through the mount, against the same file on
the store's file system. Eight ranks that each scan a part of it, against the cursor that takes every eighth record."""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import lmdblib  # noqa: E402
import measure  # noqa: E402
from measure import PAIR_HEAD, Pairs  # noqa: E402
from pace import disk_of, read_pace  # noqa: E402
from read_set import MIB, forget, free_space_for  # noqa: E402

RECORD_BYTES = 110_000


def device_bytes(directory):
    """Bytes that were read from the disk below a directory, ever."""
    fields = pathlib.Path(f"/sys/dev/block/{disk_of(directory)}/stat").read_text().split()
    return int(fields[2]) * 512


class Sides:
    """An LMDB on the file system, and the same file as a store's mount shows it."""

    def __init__(self, build, place, records):
        self.records, self.build, self.place = records, build, pathlib.Path(place)
        self.native = self.place / "source" / "train"
        lmdblib.write(self.native, records, RECORD_BYTES)
        self.store, self.mount = self.place / "store", self.place / "mnt"
        self.mount.mkdir()
        weft = build / "src/cli/weft"
        measure.run(weft, "--store", self.store, "init")
        measure.run(weft, "--store", self.store, "import", "--dataset", self.place / "source", "--name", "set")
        measure.run(build / "fuse/mount.weft", self.store, self.mount)
        self.ours = self.mount / "datasets/set/1/train"
        self.rows = self.mount / "records/set/1/train/data.mdb"

    def close(self):
        measure.run("umount", self.mount)

    def forget(self):
        """But for the record table, which the mount has mapped."""
        os.sync()
        packs = [path for path in (self.store / "packs").glob("*.pack") if path.stat().st_size > self.records * RECORD_BYTES]
        for path in [self.native / "data.mdb", self.ours / "data.mdb", *packs]:
            forget(path)

    def read(self, side, way, processes, number):
        """The readers' answers, once all of them have read cold files. They begin at one time."""
        self.forget()
        script = pathlib.Path(__file__).with_name("datasets_reader.py")
        words = [sys.executable, script, side, way, self.records, min(number, self.records)]
        readers = [subprocess.Popen([str(word) for word in [*words, seed]], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True) for seed in range(processes)]
        for reader in readers:
            reader.stdout.readline()
        before = device_bytes(self.place)
        for reader in readers:
            reader.stdin.write("\n")
            reader.stdin.flush()
        answers = [json.loads(reader.communicate()[0]) for reader in readers]
        return answers, device_bytes(self.place) - before


def row(sides, pairs, name, goal, way, processes=1, number=500):
    """A row of the table, and what it took: faults a record on both sides, and bytes of the disk."""
    told = {sides.ours: [], sides.native: []}

    def seconds(side):
        answers, from_disk = sides.read(side, way, processes, number)
        records = sum(one["records"] for one in answers)
        told[side].append((sum(one["major"] for one in answers) / records,
                           sum(one["minor"] for one in answers) / records, from_disk / (records * RECORD_BYTES)))
        return max(one["seconds"] for one in answers)

    found = Pairs.alternate(pairs, lambda: seconds(sides.ours), lambda: seconds(sides.native))
    print(found.row(name, goal), flush=True)
    medians = [[statistics.median(values) for values in zip(*told[side])] for side in (sides.ours, sides.native)]
    return name, medians


def ranks_row(sides, pairs):
    """Eight ranks at once: ours read their parts by index, the native ones walk the file with a cursor."""
    script = pathlib.Path(__file__).with_name("datasets_reader.py")
    told = []

    def seconds(side):
        sides.forget()
        way = "part" if side == sides.ours else "eighth"
        readers = [subprocess.Popen([sys.executable, script, side, way, str(sides.records), str(rank), str(sides.rows)],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for rank in range(8)]
        for reader in readers:
            reader.stdout.readline()
        before = device_bytes(sides.place)
        for reader in readers:
            reader.stdin.write("\n")
            reader.stdin.flush()
        answers = [json.loads(reader.communicate()[0]) for reader in readers]
        assert sum(one["records"] for one in answers) == sides.records
        if side == sides.ours:
            told.append((device_bytes(sides.place) - before) / (sides.records * RECORD_BYTES))
        return max(one["seconds"] for one in answers)

    found = Pairs.alternate(pairs, lambda: seconds(sides.ours), lambda: seconds(sides.native))
    print(found.row("in order, cold, 8 ranks: part/8/r; a cursor each", 4.0), flush=True)
    return statistics.median(told)


def run(build, directory, args):
    free_space_for(directory, 3 * args.records * RECORD_BYTES + 512 * MIB)
    paced = f", the disk held to {args.pace} MB/s" if args.pace else ""
    print(f"An LMDB of {args.records} records of {RECORD_BYTES} bytes, `readahead=False`, default mount options{paced}; peer: "
          f"the native file. libfuse {measure.libfuse()}\n")
    with read_pace(directory, args.pace) if args.pace else contextlib.nullcontext():
        with contextlib.closing(Sides(build, directory, args.records)) as sides:
            print(PAIR_HEAD)
            rows = [row(sides, args.pairs, "random, cold, 1 process", 4.0, "random"),
                    row(sides, args.pairs, "random, cold, 8 processes", 2.5, "random", 8, 200),
                    row(sides, args.pairs, "random, warm, 1 process", 0.95, "again"),
                    row(sides, args.pairs, "in order, cold, 1 process", 0.9, "order")]
            read = ranks_row(sides, args.pairs)
    print("\nFor each record (weft; peer):\n\n| what | major faults | minor faults | bytes of the disk ÷ bytes read |\n"
          "|---|---|---|---|")
    for name, (ours, native) in rows:
        cells = " | ".join(f"{own:.2f}; {peer:.2f}" for own, peer in zip(ours, native))
        print(f"| {name} | {cells} |")
    print(f"\nThe eight parts together read {read:.3f} times the bytes of all records from the disk; the goal is 1.05.\n",
          flush=True)

