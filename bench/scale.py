"""scripts/bench scale: what every command costs as the versions grow, and whether it stalls those beside it."""

import argparse
import contextlib
import os
import pathlib
import tempfile

import scale_peers
import scale_publish
import scale_wide
from measure import end_by_signals, machine
from scale_commands import Commands
from scale_store import ScaleStore

PARTS = ("commands", "publish", "peers", "wide")


def measure_shape(args, shape, count):
    with new_directory(args.dir) as directory, new_directory(args.memory) as memory:
        store = ScaleStore(args.build.resolve(), directory, memory, shape, count)
        print(f"\n### {shape}, {count:,} versions\n")
        print(f"Filled in {store.fill(shape):.1f} s.\n", flush=True)
        if "publish" in args.parts and shape == "fan":
            scale_publish.run(store)
        if "commands" in args.parts:
            Commands(store).run()


def measure_wide(args):
    with new_directory(args.dir) as directory, new_directory(args.memory) as memory:
        store = ScaleStore(args.build.resolve(), directory, memory, "models", 10)
        store.fill("models")
        scale_wide.run(store)


@contextlib.contextmanager
def new_directory(parent):
    with tempfile.TemporaryDirectory(prefix="weft-bench.", dir=parent) as directory:
        yield pathlib.Path(directory)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench scale", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"), help="where to work, on a real disk")
    parser.add_argument("--memory", default="/dev/shm",
                        help="a tmpfs, where stores are filled: 4 GB for 100,000 versions")
    parser.add_argument("--versions", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--shapes", nargs="+", choices=ScaleStore.SHAPES, default=ScaleStore.SHAPES,
                        help="models of one version; one model; fine-tunes that share 97 of 100 tensors")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    args = parser.parse_args()
    args.parts = args.parts or PARTS
    end_by_signals()
    print(f"Taken on {machine(args.dir)}. † beside the writers.")
    if "wide" in args.parts:
        measure_wide(args)
    for count in args.versions:
        for shape in args.shapes:
            if "commands" in args.parts or ("publish" in args.parts and shape == "fan"):
                measure_shape(args, shape, count)
        if "peers" in args.parts:
            with new_directory(args.dir) as directory:
                scale_peers.run(directory, count)


if __name__ == "__main__":
    main()
