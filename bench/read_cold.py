"""Part `cold`: no page of the file is cached; against `cat` of the same file on the store's file system."""

from measure import PAIR_HEAD, Pairs, seconds, touch_memory
from read_set import forget


class Cold:
    """Ways to read the native file and ours, neither of which is in the page cache when they begin."""

    def __init__(self, native, ours, store):
        self.native, self.ours = native, ours
        self.size = native.stat().st_size
        self.below = [native, ours, *(store / "packs").glob("*.pack")]

    def native_cat(self):
        return self.cat(self.native)

    def cat(self, path):
        return self.timed(lambda: seconds("sh", "-c", 'exec cat "$1" >/dev/null', "sh", path))

    def pairs(self, count, way):
        """Both sides read in the same way."""
        return Pairs.alternate(count, lambda: self.timed(lambda: way(self.ours)), lambda: self.timed(lambda: way(self.native)))

    def timed(self, way):
        for path in self.below:
            forget(path)
        touch_memory(2 * self.size, self.below[0].parent)
        return way()


def run(bench):
    native, ours, store = bench.sides()
    loader = bench.loader()
    loader.seconds("load_file", bench.model("scratch", 4, 1 << 20))
    cold = Cold(native, ours, store)
    print("Cold: no page of the file cached; peer: `cat` of the file on the store's file system\n\n" + PAIR_HEAD)
    rows = [
        ("load_file, all summed", lambda: loader.seconds("load_file", ours), 0.95),
        ("mmap, every page in order", lambda: bench.read_seconds("mmap", ours), 0.9),
        ("safe_open, in file order", lambda: loader.seconds("in_order", ours), 0.9),
        ("read(2), 1 MiB", lambda: bench.read_seconds("read", ours), 0.95),
        ("(the native file's load_file)", lambda: loader.seconds("load_file", native), None),
        ("(the native file's mmap)", lambda: bench.read_seconds("mmap", native), None),
        ("(the native file's safe_open)", lambda: loader.seconds("in_order", native), None),
    ]
    for name, way, goal in rows:
        print(Pairs.alternate(bench.pairs, lambda: cold.timed(way), cold.native_cat).row(name, goal), flush=True)
