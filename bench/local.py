"""scripts/bench local: publishing on one machine, against cp + fsync of the same bytes on the same file system."""

import argparse
import itertools
import json
import os
import pathlib
import shutil
import tempfile

import measure
from measure import PAIR_HEAD, Pairs, run, seconds, settle
from read_set import forget, warm

MIB = 1 << 20
GIB = 1 << 30
PARTS = ["publishing", "exporting", "sharing", "memory", "index", "formats"]
FORMAT_TABLES = ["coverage", "growth", "six", "small_tensors", "imports", "views", "headers", "dimensions", "libraries"]


class Bench:
    def __init__(self, build, directory, pairs, megabytes, files, tables=()):
        self.weft = build / "src/cli/weft"
        self.mount_weft = build / "fuse/mount.weft"
        self.make_model = build / "bench/weft_bench_make_model"
        self.lookups = build / "bench/weft_bench_index_lookups"
        self.dir = pathlib.Path(directory)
        self.pairs = pairs
        self.bytes = megabytes * MIB
        self.files = files
        self.tables = tables  # of the part formats; none: all

    def new_store(self):
        store = self.dir / "store"
        shutil.rmtree(store, ignore_errors=True)
        run(self.weft, "--store", store, "init")
        return store

    def model(self, name, tensors, size, *change):
        path = self.dir / f"{name}.safetensors"
        if not path.exists():
            run(self.make_model, path, tensors, size, 1, *change)
        warm(path)
        return path

    def copy_seconds(self, source):
        target = self.dir / "copy"
        settle()
        took = seconds("sh", "-c", 'cp --reflink=never "$1" "$2" && sync "$2"', "sh", source, target)
        target.unlink()
        return took

    def import_seconds(self, store, source, name):
        settle()
        return seconds(self.weft, "--store", store, "--quiet", "import", source, "--name", name)

    def publish_new(self, source):
        def import_once():
            return self.import_seconds(self.new_store(), source, "new")

        return Pairs.alternate(self.pairs, import_once, lambda: self.copy_seconds(source))

    def publish_again(self, source, cold=False):
        """Known content, which is compared with the stored bytes: those are read from the disk if the pack is cold."""
        store = self.new_store()
        run(self.weft, "--store", store, "--quiet", "import", source, "--name", "first")
        names = itertools.count()

        def import_again():
            for pack in (store / "packs").glob("*.pack"):
                (forget if cold else warm)(pack)
            return self.import_seconds(store, source, f"again-{next(names)}")

        return Pairs.alternate(self.pairs, import_again, lambda: self.copy_seconds(source))

    def publishing(self):
        many = self.model("many", 300, self.bytes)
        giant = self.model("giant", 1, self.bytes)
        print(PAIR_HEAD)
        rows = [
            ("new, 300 tensors", self.publish_new(many), 0.8),
            ("new, one giant tensor", self.publish_new(giant), 0.8),
            ("the same again, 300 tensors", self.publish_again(many), 2.0),
            ("the same again, one giant tensor", self.publish_again(giant), 2.0),
            ("the same again, 300 tensors, pack not in the page cache", self.publish_again(many, cold=True), None),
        ]
        for name, pairs, goal in rows:
            print(pairs.row(name, goal), flush=True)

    def small_files(self, count):
        """A directory tree of `count` files of 1 to 4 KiB, a thousand in each directory."""
        tree = self.dir / "small"
        for number in range(count):
            directory = tree / f"{number // 1000:03d}"
            directory.mkdir(parents=True, exist_ok=True)
            (directory / f"{number}.txt").write_bytes(f"{number:08d}".encode() * (128 + number % 385))
        return tree

    def exporting(self):
        """Many small files, where the calls for each file count and not the bytes."""
        tree = self.small_files(self.files)
        store = self.new_store()
        run(self.weft, "--store", store, "--quiet", "import", tree, "--name", "small")
        out = self.dir / "out"

        def timed(*command):
            shutil.rmtree(out, ignore_errors=True)
            settle()
            return seconds(*command)

        pairs = Pairs.alternate(self.pairs, lambda: timed(self.weft, "--store", store, "--quiet", "export", "small", out),
                                lambda: timed("cp", "-r", tree, out), warm_up=1)
        print("\n" + PAIR_HEAD)
        print(pairs.row(f"export of {self.files:,} small files, durable, against cp -r without a sync", 0.5), flush=True)

    def packs_bytes(self, store):
        return sum(p.stat().st_blocks * 512 for p in (store / "packs").iterdir())

    def sharing(self):
        print("\n| layers changed of 100 | bytes added | unique bytes | added ÷ unique | goal | met |\n|---|---|---|---|---|---|")
        size = 400 * MIB
        for percent in (25, 50, 75, 100):
            store = self.new_store()
            base = self.model("base", 100, size)
            run(self.weft, "--store", store, "--quiet", "import", base, "--name", "dense")
            before = self.packs_bytes(store)
            child = self.model(f"child-{percent}", 100, size, percent, 2)
            run(self.weft, "--store", store, "--quiet", "import", child, "--name", "dense", "--parent", "dense")
            added = self.packs_bytes(store) - before
            unique = size * percent // 100
            child.unlink()
            ratio = added / unique
            print(f"| {percent} | {added / MIB:.1f} MiB | {unique / MIB:.1f} MiB | {ratio:.4f} | ≤ 1.01 | "
                  f"{'yes' if ratio <= 1.01 else 'NO'} |", flush=True)

    def memory(self):
        print("\n| input | importer's RssAnon + RssShmem, peak | goal | met |\n|---|---|---|---|")
        for size in (64 * MIB, 4 * GIB):
            source = self.model(f"memory-{size}", 64, size)
            store = self.new_store()
            peak = measure.peak_memory(self.weft, "--store", store, "--quiet", "import", source, "--name", "m")
            print(f"| {size / MIB:.0f} MiB | {peak / MIB:.1f} MiB | ≤ 256 MiB | {'yes' if peak <= 256 * MIB else 'NO'} |",
                  flush=True)
            source.unlink()

    def index(self):
        print("\n| blobs in the index | lookups a second, one thread | bytes a blob |\n|---|---|---|")
        for count in (10_000, 100_000, 1_000_000):
            shutil.rmtree(self.dir / "index", ignore_errors=True)
            facts = json.loads(run(self.lookups, self.dir / "index", count))
            print(f"| {count:,} | {facts['lookups_per_second']:,.0f} | {facts['bytes_per_blob']:.0f} |", flush=True)

    def formats(self):
        import local_formats  # the libraries that write its files take seconds to load
        import local_formats_reads

        tables = local_formats.TABLES | local_formats_reads.TABLES
        for name in self.tables or tables:
            tables[name](self)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench local")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"), help="where to work: the file system measured")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the published model")
    parser.add_argument("--files", type=int, default=20_000, help="how many small files are exported")
    parser.add_argument("--tables", nargs="+", default=[], metavar="TABLE", choices=FORMAT_TABLES,
                        help="tables of the part formats: " + " ".join(FORMAT_TABLES))
    parser.add_argument("only", nargs="*", choices=[*PARTS, []])
    args = parser.parse_args()
    measure.end_by_signals()
    with tempfile.TemporaryDirectory(prefix="weft-bench.", dir=args.dir) as directory:
        bench = Bench(args.build.resolve(), directory, args.pairs, args.megabytes, args.files, args.tables)
        print(f"Taken on {measure.machine(directory)}; source in the page cache; peer: cp --reflink=never, then fsync.\n")
        for part in args.only or PARTS:
            getattr(bench, part)()


if __name__ == "__main__":
    main()
