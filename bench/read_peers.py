"""Part `peers`: one container, warm, in weft and in other file systems: what each gives to read(2) and to mmap. As in the
part `warm`, both sides are brought in anew for each pair, by the same reads; only tmpfs, which cannot forget, keeps its
pages."""

import measure
from measure import PAIR_HEAD
from read_set import unmount
from read_warm import Warm


def mounted(bench, name, *command):
    """A directory that `command` (its last word left out) mounts."""
    where = bench.dir / name
    where.mkdir()
    measure.run(*command, where)
    bench.undo.callback(unmount, where)
    return where


def peers(bench, native):
    """(name -> the model in that file system, the images that some of them are in)."""
    source = bench.dir / "source"
    source.mkdir()
    model = source / native.name
    model.hardlink_to(native)
    squashed, eroded = bench.dir / "squashfs.image", bench.dir / "erofs.image"
    measure.run("mksquashfs", source, squashed, "-noD", "-noF", "-noI", "-quiet", "-no-progress")
    measure.run("mkfs.erofs", "--quiet", eroded, source)
    memory = mounted(bench, "tmpfs", "mount", "-t", "tmpfs", "-o", f"size={bench.size + (64 << 20)}", "tmpfs")
    measure.run("cp", model, memory)
    directories = {
        "the store's file system": source,
        "tmpfs": memory,
        "bindfs": mounted(bench, "bindfs", "bindfs", "--no-allow-other", source),
        "squashfuse, not compressed": mounted(bench, "squashfuse", "squashfuse", squashed),
        "squashfs of the kernel, loop": mounted(bench, "squashfs", "mount", "-t", "squashfs", "-o", "loop", squashed),
        "EROFS, loop": mounted(bench, "erofs", "mount", "-t", "erofs", "-o", "loop", eroded),
    }
    return {name: directory / native.name for name, directory in directories.items()}, [squashed, eroded]


def run(bench):
    native, ours, store = bench.sides()
    print("Peers: the same container in other file systems, warm\n\n" + PAIR_HEAD)
    files, images = peers(bench, native)
    below = [native, *images, *(store / "packs").glob("*.pack")]
    for name, peer in files.items():
        sides = Warm(peer, ours, below if name == "tmpfs" else [peer, *below])
        for how in ("read", "mmap"):
            pairs = sides.pairs(bench.pairs, lambda path: bench.read_seconds(how, path))
            print(pairs.row(f"{how}; peer: {name}"), flush=True)
