"""Part `ahead`: pages that come into the page cache for a reader, against the pages that the reader uses. It counts, and
measures no time. So its figures hold in a virtual machine too, for a kernel that this machine does not run."""

import contextlib
import json
import mmap
import os
import pathlib
import resource
import statistics
import struct
import time

from measure import interval
from read_set import MIB, cached_pages, forget

HEAD = ("| reader | pages used | pages brought in: median (spread) | brought in ÷ used | furthest ahead of the reader: "
        "median (spread) | major faults: median (spread) | goal | met | times |\n|---|---|---|---|---|---|---|---|---|")
TENSORS = 64
WINDOW = 64 * MIB
FIRST_WINDOW = 16 * MIB
STEP = 4 * MIB  # the reader looks at the page cache after each
PACE = 100 * MIB  # a second: an emulated machine keeps up with it too
GROWN = "≤ used + 64 MiB, ahead ≥ 32 MiB"
SPARING = "≤ used + 64 MiB"


class Reader:
    """Uses a file through the mount at a bounded rate, and looks how far ahead of it the pack is in the page cache."""

    def __init__(self, path, pack):
        self.path, self.pack = path, pack
        self.used = self.ahead = 0
        self.due = time.monotonic()

    def pause(self, position, length):
        """Called after each use of `length` bytes up to `position`."""
        self.used += -(-length // mmap.PAGESIZE)
        self.ahead = max(self.ahead, cached_pages(self.pack, position) * mmap.PAGESIZE)
        self.due = max(self.due + length / PACE, time.monotonic() - 0.01)
        time.sleep(max(0, self.due - time.monotonic()))

    def touch(self, memory, begin, end):
        for at in range(begin, end, STEP):
            stop = min(at + STEP, end)
            sum(memory[at:stop:mmap.PAGESIZE])
            self.pause(stop, stop - at)

    def mapped(self, part=1.0):
        with open(self.path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
            self.touch(memory, 0, int(len(memory) * part))
            time.sleep(2)  # the reader stands: the prefetcher has time to bring in more

    def read(self):
        with open(self.path, "rb", buffering=0) as file:
            position = 0
            while length := sum(len(file.read(MIB)) for _ in range(STEP // MIB)):
                position += length
                self.pause(position, length)

    def one_tensor(self):
        with open(self.path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
            header_end = 8 + struct.unpack("<Q", memory[:8])[0]
            tensors = json.loads(memory[8:header_end])
            self.touch(memory, 0, header_end)
            offsets = sorted(tensor["data_offsets"] for name, tensor in tensors.items() if name != "__metadata__")
            begin, end = offsets[len(offsets) * 2 // 3]
            self.touch(memory, header_end + begin, header_end + end)
            time.sleep(2)


def counted(bench, store, pack, way):
    """(pages used, pages brought in, bytes ahead, major faults) of one reader of a new mount."""
    forget(pack)
    with contextlib.ExitStack() as undo:
        reader = Reader(bench.mount_until(undo, store, "ahead") / "one/1/native.safetensors", pack)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        way(reader)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - faults
        return reader.used, cached_pages(pack), reader.ahead, faults


def run(bench):
    store = bench.store()
    bench.publish(store, bench.model("native", TENSORS, bench.size), "one")
    pack = next((store / "packs").glob("*.pack"))
    device = os.stat(store).st_dev
    print(f"{bench.size // MIB} MiB in {TENSORS} tensors; readers at {PACE // MIB} MiB/s; multi-generation LRU: {generations()}; "
          f"read_ahead_kb: {read_ahead(device)}\n\n" + HEAD)
    rows = [
        ("mapping, every page in order", lambda reader: reader.mapped(), GROWN),
        ("read(2), 1 MiB", lambda reader: reader.read(), GROWN),
        ("mapping, the first quarter", lambda reader: reader.mapped(0.25), GROWN),
        ("mapping, one tensor", lambda reader: reader.one_tensor(), SPARING),
    ]
    for name, way, goal in rows:
        print(row(name, [counted(bench, store, pack, way) for _ in range(bench.pairs)], goal), flush=True)


def row(name, found, goal):
    used, brought, ahead, faults = zip(*found)
    pages, ahead_mib = statistics.median(brought), statistics.median(ahead) / MIB
    met = pages <= used[0] + WINDOW // mmap.PAGESIZE and (goal != GROWN or ahead_mib * MIB >= 2 * FIRST_WINDOW)
    return (f"| {name} | {used[0]:,} | {pages:,.0f} ({spread(brought)}) | {pages / used[0]:.2f} "
            f"| {ahead_mib:.0f} ({spread(value / MIB for value in ahead)}) MiB "
            f"| {statistics.median(faults):.0f} ({spread(faults)}) | {goal} | {'yes' if met else 'NO'} | {len(found)} |")


def spread(values):
    low, high = interval(values)
    return f"{low:,.0f} to {high:,.0f}"


def generations():
    """Whether multi-generation LRU is on."""
    try:
        mask = pathlib.Path("/sys/kernel/mm/lru_gen/enabled").read_text().strip()
    except FileNotFoundError:
        return "not in this kernel"
    return f"{'on' if int(mask, 16) else 'off'} ({mask})"


def read_ahead(device):
    """How far the kernel reads ahead by itself on this device; unknown if the file system has no device of its own."""
    path = pathlib.Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    return path.read_text().strip() if path.exists() else "unknown"
