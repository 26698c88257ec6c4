"""Part `files` of the bench of data sets: many small files. Their import against `cp -r`, in memory and on the disk, by a
process of its own and through weftd; and what very many of them take."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import measure  # noqa: E402
from daemonlib import Daemon  # noqa: E402
from measure import PAIR_HEAD, Pairs, drop_caches, seconds  # noqa: E402
from user_mount import UserMount  # noqa: E402
from weftlib import WEFT, Store  # noqa: E402

FILE_BYTES, IN_DIRECTORY = 20_000, 1000


def write(directory, count, size):
    """No two files are alike."""
    noise = os.urandom(1 << 20)
    for number in range(count):
        if number % IN_DIRECTORY == 0:
            here = directory / f"c{number // IN_DIRECTORY:05}"
            here.mkdir(parents=True)
        at = number * 4099 % (len(noise) - size)
        (here / f"{number:08}.bin").write_bytes((number.to_bytes(8, "little") + noise[at:at + size])[:size])


class Sides:
    def __init__(self, place, files, cold=False):
        self.place, self.cold = pathlib.Path(place), cold
        self.source = self.place / "source"
        write(self.source, files, FILE_BYTES)

    def prepare(self):
        for name in ("copy", "store"):
            shutil.rmtree(self.place / name, ignore_errors=True)
        os.sync()
        if self.cold:
            drop_caches()

    def copy(self):
        self.prepare()
        return seconds("sh", "-c", f"cp -r {self.source} {self.place / 'copy'} && sync -f {self.place}")

    def alone(self):
        self.prepare()
        store = Store(self.place / "store")
        return seconds(WEFT, "--store", store.path, "import", "--dataset", self.source, "--name", "set", "--quiet")

    def through(self):
        self.prepare()
        store = Store(self.place / "store")
        with Daemon(store):
            return seconds(WEFT, "--store", store.path, "import", "--dataset", self.source, "--name", "set",
                           "--quiet")


def anonymous_kib(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))


def very_many(place, count):
    """Memory of the importer and of the mount, and bytes a file, of very many files."""
    source = place / "source"
    write(source, count, 100)
    store = Store(place / "store")
    peak = measure.peak_memory(WEFT, "--store", store.path, "import", "--dataset", source, "--name", "set",
                               "--quiet")
    stored = sum(path.stat().st_blocks * 512 for path in store.path.rglob("*") if path.is_file()) - count * 100
    with UserMount(store, place / "mnt") as mount:
        found = subprocess.run(["sh", "-c", f"find {mount.path}/datasets/set/1/ -type f | wc -l"], check=True,
                               capture_output=True, text=True)
        servers = [pid for pid in os.listdir("/proc") if pid.isdigit() and is_server(pid, store.path)]
        held = max(anonymous_kib(pid) for pid in servers)
    assert int(found.stdout) == count
    print(f"{count} files of 100 bytes: the import takes {peak / 2**20:.0f} MiB of memory (goal 256); each file takes "
          f"{stored / count:.1f} bytes besides its own, of which its base name is 12 (goal 60); after `find` over all of them "
          f"a mount with default options holds {held / 1024:.1f} MiB (goal 16).\n", flush=True)


def is_server(pid, store):
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[0].endswith(b"mount.weft") and os.fsencode(store) in words


def run(_build, directory, args):
    print(f"{args.files} files of {FILE_BYTES} bytes; peer: `cp -r`, and a sync of the file system\n\n{PAIR_HEAD}")
    with tempfile.TemporaryDirectory(prefix="weft-bench.", dir="/dev/shm") as place:
        sides = Sides(place, args.files)
        print(Pairs.alternate(args.pairs, sides.alone, sides.copy).row("import, in memory", 1.0), flush=True)
        print(Pairs.alternate(args.pairs, sides.through, sides.alone).row(
            "through weftd, in memory; peer: without weftd", 1 / 1.3), flush=True)
    with tempfile.TemporaryDirectory(prefix="weft-bench.", dir=directory) as place:
        sides = Sides(place, args.files, cold=True)
        print(Pairs.alternate(args.pairs, sides.alone, sides.copy).row("import, cold, on the disk"), flush=True)
    print()
    with tempfile.TemporaryDirectory(prefix="weft-bench.", dir="/dev/shm") as place:
        very_many(pathlib.Path(place), args.many)
