"""scripts/bench memory: what a mount of a store with a million tensors takes, supervisor and server together."""

import argparse
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import time

from measure import drop_caches, end_by_signals, run

MIB = 1 << 20
TENSORS_PER_VERSION = 10_000
TREES = ("models", "layers", "tensors", "lineage")
VERSIONS_WALKED = 5
REST_SECONDS = 20  # what is unused is kept for 10, and looked for every 5
AT_REST_MAX = 64 * MIB
BYTES_PER_INODE_MAX = 200
INODES_LEFT_MAX = 100  # the root, and what a program looked at meanwhile
KEPT_MAX = 8 * MIB  # more than after the mount: the bound of the listings that are kept
WALKS = 3
GROWTH_MAX = MIB


def write_version(path, number, tensors):
    """A safetensors file of `tensors` tensors of 16 bytes that no other version has."""
    header = {f"block.{i // 100}.part.{i % 100}.weight":
              {"dtype": "F32", "shape": [4], "data_offsets": [16 * i, 16 * i + 16]} for i in range(tensors)}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.write(b"".join(struct.pack("<QQ", number, i) for i in range(tensors)))


def mount_pids(directory):
    status = json.loads((directory / ".weft/status").read_text())["mount"]
    return [status["supervisor_pid"], status["pid"]]


def memory(pids):
    """RssAnon + RssShmem in bytes."""
    total = 0
    for pid in pids:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(("RssAnon:", "RssShmem:")):
                total += int(line.split()[1]) * 1024
    return total


def wakes(pids):
    """Voluntary context switches of all threads."""
    total = 0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches:"):
                    total += int(line.split()[1])
    return total


def inodes_held():
    """Inodes that the kernel holds of FUSE, by its slab; as root."""
    for line in pathlib.Path("/proc/slabinfo").read_text().splitlines():
        if line.startswith("fuse_inode "):
            return int(line.split()[1])
    return 0


class Bench:
    def __init__(self, build, directory, tensors):
        self.weft = build / "src/cli/weft"
        self.dir = directory
        self.store, self.mount = directory / "store", directory / "mnt"
        self.versions = max(1, tensors // TENSORS_PER_VERSION)
        self.rows = []

    def publish(self):
        began = time.monotonic()
        run(self.weft, "--store", self.store, "init")
        for number in range(self.versions):
            source = self.dir / "model.safetensors"
            write_version(source, number, TENSORS_PER_VERSION)
            run(self.weft, "--store", self.store, "--quiet", "import", source, "--name", "many")
        print(f"{self.versions * TENSORS_PER_VERSION:,} tensors in {self.versions} versions, published in "
              f"{time.monotonic() - began:.0f} s\n")

    def add(self, what, value, unit, goal=None):
        met = "" if goal is None else ("yes" if value <= goal else "NO")
        limit = "" if goal is None else f"≤ {goal:,}"
        self.rows.append(f"| {what} | {value:,.1f} {unit} | {limit} | {met} |")

    def measure(self):
        self.mount.mkdir()
        run(self.weft, "--store", self.store, "mount", self.mount)
        pids = mount_pids(self.mount)
        fresh = memory(pids)
        self.add("after the mount", fresh / MIB, "MiB", AT_REST_MAX // MIB)
        drop_caches()
        unknown = inodes_held()
        self.measure_walk(pids, fresh, unknown)
        self.measure_forgetting(pids, fresh, unknown)
        began, first = time.monotonic(), wakes(pids)
        time.sleep(10)
        self.add("wakes a second when idle, all threads", (wakes(pids) - first) / (time.monotonic() - began), "", 1)

    def walk(self):
        numbers = range(1, 1 + min(VERSIONS_WALKED, self.versions))
        walked = [self.mount / tree / "many" / str(number) for number in numbers for tree in TREES]
        subprocess.run(["find", *walked, "-ls"], check=True, stdout=subprocess.DEVNULL)
        return len(numbers)

    def measure_walk(self, pids, fresh, unknown):
        versions = self.walk()
        walked, held = memory(pids), inodes_held() - unknown
        self.add(f"inodes that the kernel holds after a walk of {versions} versions", held, "")
        self.add("after the walk", walked / MIB, "MiB")
        self.add("bytes an inode, right after the walk", max(0, walked - fresh) / max(1, held), "B", BYTES_PER_INODE_MAX)
        time.sleep(REST_SECONDS)
        self.add(f"after {REST_SECONDS} s of rest", memory(pids) / MIB, "MiB", AT_REST_MAX // MIB)

    def measure_forgetting(self, pids, fresh, unknown):
        left = [self.left_when_forgotten(pids)]
        self.add("inodes that it holds when told to forget them", inodes_held() - unknown, "", INODES_LEFT_MAX)
        self.add("after the kernel forgot them", left[0] / MIB, "MiB", AT_REST_MAX // MIB)
        self.add("of that, more than after the mount", (left[0] - fresh) / MIB, "MiB", KEPT_MAX // MIB)
        for _ in range(WALKS - 1):
            self.walk()
            left.append(self.left_when_forgotten(pids))
        self.add(f"growth from the first to the {WALKS}rd time that they were walked and forgotten",
                 (left[-1] - left[0]) / MIB, "MiB", GROWTH_MAX // MIB)

    @staticmethod
    def left_when_forgotten(pids):
        drop_caches()
        time.sleep(REST_SECONDS)
        return memory(pids)

    def table(self):
        print("| supervisor and server, RssAnon + RssShmem | | goal | met |\n|---|---|---|---|")
        print("\n".join(self.rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", help="where the store is made; default a directory in $TMPDIR")
    parser.add_argument("--tensors", type=int, default=1_000_000)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    options = parser.parse_args()
    end_by_signals()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="weft-bench-", dir=options.dir))
    bench = Bench(options.build.resolve(), directory, options.tensors)
    try:
        bench.publish()
        bench.measure()
    finally:
        if os.path.ismount(bench.mount):
            run(bench.weft, "umount", bench.mount)
        shutil.rmtree(directory)
    bench.table()


if __name__ == "__main__":
    main()
