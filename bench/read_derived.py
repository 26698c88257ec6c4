"""Part `derived`: a model that shares three quarters of its bytes with another, against the native file on the same file
system: its first open after the publish, the ones after it, and the disk that it takes. On ext4, XFS and Btrfs. Where blocks
cannot be shared, the first open goes through FUSE: there its peer is also the memory file system of the part `views`."""

import functools
import json
import os
import shutil
import time

import measure
from measure import PAIR_HEAD, Pairs
from read_set import MIB, forget, in_turn, medians_in_turn, warm

MAKE = {
    "ext4": ("mkfs.ext4", "-q", "-F"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}
CHANGED = (25, 2)  # percent of the tensors, and the seed of what they become
GOAL = 0.95
FUSE_GOAL = 0.9


class Derived:
    """A store on a file system of its own, with the base model; derived ones are published again and again."""

    def __init__(self, bench, kind):
        self.bench = bench
        self.disk, device = bench.loop_disk(f"{kind}-disk", 8 * bench.size, MAKE[kind])
        if kind != "btrfs":  # which has its own
            bench.same_read_ahead(device)
        base = bench.model("base", 300, bench.size)
        self.source = bench.model("derived", 300, bench.size, *CHANGED)
        self.native = self.disk / "native.safetensors"
        self.copy_native()
        self.store = bench.store(where=self.disk)
        self.weft("cache", "--max", "1T")  # a tenth of this small disk is less than the model
        bench.publish(self.store, base, "base")
        self.used = [self.used_bytes()]
        self.publish_anew()
        self.used.append(self.used_bytes())
        self.mount = bench.mount(self.store, f"{kind}-mnt")
        self.status = self.mount / ".weft/status"
        self.shares = self.assembly()["shares_blocks"]
        self.memory = None if self.shares else bench.memory_fs(self.source, f"{kind}-memory")

    def used_bytes(self):
        os.sync()
        space = os.statvfs(self.disk)
        return (space.f_blocks - space.f_bfree) * space.f_frsize

    def assembly(self):
        return json.loads(self.status.read_text())["assembly"]

    def weft(self, *words):
        return measure.run(self.bench.weft, "--store", self.store, *words)

    def evict(self):
        while json.loads(self.weft("cache", "--max", "0", "--json"))["files"]:
            time.sleep(0.05)
        self.weft("cache", "--max", "1T")

    def publish_anew(self):
        """Under a name that nothing has looked up yet."""
        self.count = getattr(self, "count", 0) + 1
        self.bench.publish(self.store, self.source, f"derived{self.count}")

    def copy_native(self):
        """Anew for each round, as ours is: a disk reads what was written lately otherwise than what it read before."""
        self.native.unlink(missing_ok=True)
        shutil.copyfile(self.source, self.native)

    def ours(self):
        return self.mount / f"models/derived{self.count}/1/derived.safetensors"

    def wait(self):
        with open(self.ours(), "rb"):  # a file that was read is assembled when it is opened again
            pass
        while not self.assembly()["files"] or self.assembly()["waiting"]:
            time.sleep(0.01)

    def below(self):
        return [self.native, *(self.store / "packs").glob("*.pack"), *(self.store / "cache").glob("*.pack")]

    def forget(self):
        """Neither side is in the page cache."""
        os.sync()
        for path in self.below():
            forget(path)

    def warm(self, number):
        """Both sides are, brought in by the same reads: how a file came there decides how fast it is read. So it is anew
        for each pair, and in turn which comes first."""
        self.forget()
        for path in in_turn(number, self.native, self.ours()):
            warm(path)

    def warm_below(self):
        """What is read by the first open, and by the copy that a reader who wants a native file would make."""
        self.forget()
        for path in self.below():
            warm(path)

    def copy_and_read(self):
        copy = self.disk / "copy"
        begin = time.perf_counter()
        shutil.copyfile(self.native, copy)
        warm(copy)
        taken = time.perf_counter() - begin
        copy.unlink()
        return taken

    def read_memory(self):
        forget(self.memory)
        return self.read(self.memory)

    def read(self, path, how="read"):
        return self.bench.read_seconds(how, path)


def both(derived, number, pairs):
    ours, native = derived.ours(), derived.native
    seconds = {path: derived.read(path) for path in in_turn(number, ours, native)}
    pairs.add(seconds[ours], seconds[native])


def first_through_fuse(derived, number, first, fuse):
    """Then waits for what is assembled behind it, and returns the seconds of that. The memory file system has its turn before
    or after all this, never beside."""
    derived.warm_below()
    peer = derived.copy_and_read()
    memory = derived.read_memory() if number % 2 else None
    ours = derived.read(derived.ours())
    begin = time.perf_counter()
    derived.wait()
    waited = time.perf_counter() - begin
    first.add(ours, peer)
    fuse.add(ours, memory or derived.read_memory())
    return waited


def first_with_shared_blocks(derived, number, first):
    derived.forget()
    both(derived, number, first)
    begin = time.perf_counter()
    derived.wait()
    return time.perf_counter() - begin


def first_opens(derived):
    """(first open, the same beside the memory file system, second open cold, warm) as pairs; the second as soon as its file is
    assembled, after so many seconds."""
    first, fuse, cold, warmed, waits = Pairs(), Pairs(), Pairs(), Pairs(), []
    for number in range(derived.bench.pairs):
        derived.evict()
        derived.copy_native()
        derived.publish_anew()
        waits.append(first_with_shared_blocks(derived, number, first) if derived.shares
                     else first_through_fuse(derived, number, first, fuse))
        derived.forget()
        both(derived, number, cold)
        derived.warm(number // 2)
        warmed.add(*medians_in_turn(number, derived.ours(), derived.native, derived.read))
    return first, fuse, cold, warmed, sorted(waits)[len(waits) // 2]


def later_opens(derived, way):
    pairs = Pairs()
    for number in range(derived.bench.pairs):
        derived.warm(number // 2)
        pairs.add(*medians_in_turn(number, derived.ours(), derived.native, way))
    return pairs


def run(bench):
    loader = bench.loader()
    loader.seconds("load_file", bench.model("scratch", 4, 1 << 20))
    print(f"Derived: {bench.size / MIB:.0f} MiB, three quarters of it shared; peer: the native file on the same file "
          "system\n\n" + PAIR_HEAD)
    told = []
    for kind in MAKE:
        derived = Derived(bench, kind)
        first, fuse, cold, warmed, waited = first_opens(derived)
        peer = "both cold" if derived.shares else "peer: cp, then read; both warm"
        print(first.row(f"{kind}: first open, read(2), {peer}", GOAL if derived.shares else 1.0), flush=True)
        if not derived.shares:
            print(fuse.row(f"{kind}: first open, read(2), peer: memory file system; warm below", FUSE_GOAL), flush=True)
        print(cold.row(f"{kind}: second open, read(2), both cold", GOAL), flush=True)
        print(warmed.row(f"{kind}: next open, read(2), both warm", GOAL), flush=True)
        for name, way in (("mmap, every page", functools.partial(derived.read, how="mmap")),
                          ("load_file, all summed", functools.partial(loader.seconds, "load_file"))):
            print(later_opens(derived, way).row(f"{kind}: later opens, {name}, both warm", GOAL), flush=True)
        derived.used.append(derived.used_bytes())
        told.append(f"{kind}: disk used {derived.used[0] / MIB:.0f} MiB with the base model and the native file, "
                    f"{derived.used[1] / MIB:.0f} after the publish, {derived.used[2] / MIB:.0f} assembled; assembled "
                    f"{waited:.2f} s after the first open ended.")
    print("\n" + "\n".join(told))
