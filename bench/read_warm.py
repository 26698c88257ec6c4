"""Part `warm`: a container in one pack, in the page cache, against the same file on the store's file system.

How a file came into the page cache decides how large its pages there are, and so how fast it is read: both sides are
brought in by the same reads, the native file too, which was just written. What the machine itself scatters is in the rows
of the native file's copy, which takes weft's side there."""

import shutil

from measure import PAIR_HEAD, Pairs
from read_set import forget, in_turn, medians_in_turn, together, warm

GOAL = 0.97


class Warm:
    """Either side in the page cache, anew for each pair."""

    def __init__(self, native, ours, below):
        """`below` is what both sides are read from: forgotten before they are brought in."""
        self.native, self.ours, self.below = native, ours, below

    def bring_in(self, number):
        for path in self.below:
            forget(path)
        for path in in_turn(number, self.native, self.ours):
            warm(path)

    def pairs(self, count, way):
        pairs = Pairs()
        for number in range(count):
            self.bring_in(number // 2)
            pairs.add(*medians_in_turn(number, self.ours, self.native, way))
        return pairs


def ways(bench, readers, loaders):
    """Name -> a function of a path, which returns the seconds of as many readers at once. Without loaders no load_file."""
    found = {
        "read(2), 1 MiB": lambda path: bench.read_seconds("read", path, readers),
        "mmap, every page": lambda path: bench.read_seconds("mmap", path, readers),
    }
    if loaders:
        found["load_file, all summed"] = lambda path: together(loaders[:readers], "load_file", path)
    return found


def rows(bench, native, ours, store):
    copy = native.with_name(f"copy-{native.name}")
    shutil.copyfile(native, copy)
    below = [native, copy, *(store / "packs").glob("*.pack")]
    sides, control = Warm(native, ours, below), Warm(native, copy, below)
    loaders = [bench.loader(), bench.loader()]
    for readers in (1, 2):
        beside = "" if readers == 1 else ", two readers at once"
        for name, way in ways(bench, readers, loaders).items():
            print(sides.pairs(bench.pairs, way).row(name + beside, GOAL), flush=True)
            if readers == 2:
                print(control.pairs(bench.pairs, way).row(f"(the native file's copy: {name}{beside})"), flush=True)


def run(bench):
    native, ours, store = bench.sides()
    print("Warm: a container in one pack; peer: the same file on the store's file system\n\n" + PAIR_HEAD)
    rows(bench, native, ours, store)
