"""`scripts/bench local formats`: how much of each checkpoint weft shows, what a second version adds to the store, what six
formats of one network take, the manifest of many small tensors, the time of an import, and that of load_file() through
safetensors/."""
import collections
import functools
import json
import pathlib
import shutil
import sys

import formats_files
from formats_files import SAFETENSORS, SIX, TORCH, VARIANTS
from measure import PAIR_HEAD, Pairs, drop_caches, run
from read_set import warm

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts/lib"))

from network_files import Network  # noqa: E402

MIB = 1 << 20
CUT_MIN = 4096                                       # bytes of an extent without a tensor, at least
SMALL, MIDDLE, LARGE = 256, 1536, 4096               # widths of layers
LAYERS, CHANGED = 10, 3
SMALL_LAYERS, SMALL_WIDTH = 500, 64                  # of a network with 1,000 parameters
STORED = ("packs", "manifests", "journal")           # the directories that are the store


def written(bench, variant, network):
    """The directory with the files of a variant, saved once."""
    directory = bench.dir / "files" / f"{variant.form} {variant.name} {network}".replace("/", " ")
    if not directory.exists():
        directory.mkdir(parents=True)
        variant.write(directory, network)
    return directory


def publish(bench, store, directory, name):
    run(bench.weft, "--store", store, "--quiet", "import", directory, "--name", name)


def stored_bytes(store):
    return sum(path.stat().st_blocks * 512 for part in STORED for path in (store / part).iterdir())


def places_of(info):
    """The runs of bytes of each file that hold tensors: (begin, end), in order, without overlaps."""
    places = collections.defaultdict(list)
    for tensor in info["tensors"]:
        for place in tensor.get("runs", [tensor]):
            if "offset" in place:  # a tensor without elements has no place
                places[place["file"]].append((place["offset"], place["offset"] + place["bytes"]))
    return {path: united(runs) for path, runs in places.items()}


def united(runs):
    out = []
    for begin, end in sorted(runs):
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((begin, end))
    return out


def cut_bytes(bench, store, info, places):
    """The bytes of the published files in extents of tensors, or in extents of CUT_MIN bytes of files with several."""
    described = json.loads(run(bench.weft, "debug", "manifest", store / "manifests" / info["manifest"], "--json"))
    total = 0
    for file in described["files"]:
        tensors, extents = places.get(file["path"], []), file["extents"]
        for extent in extents:
            begin, end = extent["offset"], extent["offset"] + extent["length"]
            is_large = len(extents) > 1 and extent["length"] >= CUT_MIN
            if is_large or any(first < end and begin < last for first, last in tensors):
                total += extent["length"]
    return total


def reason(info):
    """The first reason for a tensor that is not shown."""
    for file in info["files"]:
        for hidden in file.get("hidden", []):
            return hidden["why"]
        if why := file.get("metadata", {}).get("no tensors"):
            return why
    return ""


def coverage_row(bench, variant):
    """Tensors count by shape and bytes, so that none stands for another one."""
    directory = written(bench, variant, Network(LAYERS, SMALL))
    store = bench.new_store()
    publish(bench, store, directory, "m")
    info = json.loads(run(bench.weft, "--store", store, "info", "m", "--json"))
    listed = collections.Counter(variant.listed(directory))
    found = collections.Counter((tuple(tensor["shape"]), tensor["bytes"]) for tensor in info["tensors"])
    both = sum(size * count for (_, size), count in (listed & found).items())
    coverage = both / sum(size * count for (_, size), count in listed.items())
    places = places_of(info)
    shown = sum(end - begin for runs in places.values() for begin, end in runs)
    cut = cut_bytes(bench, store, info, places)
    met = ("1.000", "yes" if coverage == 1 else "NO") if variant.shown else ("not shown", "")
    return (f"| {variant.form} | {variant.name} | {sum(listed.values())} | {coverage:.3f} | {shown / info['bytes']:.4f} "
            f"| {cut / info['bytes']:.4f} | {reason(info)} | {met[0]} | {met[1]} |")


def coverage(bench):
    print("\n| format | variant | tensors | coverage | shown, of the files | cut, of the files | reason | goal | met |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for variant in VARIANTS:
        print(coverage_row(bench, variant), flush=True)


def growth(bench):
    print(f"\n| second version, 1 of {LAYERS} layers changed | bytes changed | bytes added | added ÷ changed | goal | met |\n"
          "|---|---|---|---|---|---|")
    base, tuned = Network(LAYERS, MIDDLE), Network(LAYERS, MIDDLE, CHANGED)
    first, second = base.arrays(), tuned.arrays()
    changed = sum(array.nbytes for name, array in second.items() if (array != first[name]).any())
    for variant in VARIANTS:
        store = bench.new_store()
        publish(bench, store, written(bench, variant, base), "m")
        before = stored_bytes(store)
        publish(bench, store, written(bench, variant, tuned), "m")
        added = stored_bytes(store) - before
        goal = 1.01 if variant.shown else None
        print(row_of_ratio(f"{variant.form}, {variant.name}", changed * variant.copies, added, goal), flush=True)


def row_of_ratio(name, of, got, goal):
    met = "| | |" if goal is None else f"| ≤ {goal:.2f} | {'yes' if got / of <= goal else 'NO'} |"
    return f"| {name} | {of / MIB:.3f} MiB | {got / MIB:.3f} MiB | {got / of:.4f} {met}"


def six(bench):
    print("\n| formats of one network | one | all | all ÷ one | goal | met |\n|---|---|---|---|---|---|")
    store = bench.new_store()
    empty = stored_bytes(store)
    sizes = []
    for variant in SIX:
        publish(bench, store, written(bench, variant, Network(LAYERS, MIDDLE)), f"m-{len(sizes)}")
        sizes.append(stored_bytes(store) - empty)
    names = ", ".join(variant.form for variant in SIX)
    print(row_of_ratio(f"{len(SIX)}: {names}", sizes[0], sizes[-1], 1.02), flush=True)


def import_pairs(bench, network):
    """Imports of a PyTorch zip into new stores, against those of the same tensors as safetensors."""
    sides = [written(bench, variant, network) for variant in (TORCH, SAFETENSORS)]

    def timed(directory):
        for path in directory.iterdir():
            warm(path)
        return bench.import_seconds(bench.new_store(), directory, "m")

    pairs = Pairs.alternate(bench.pairs, lambda: timed(sides[0]), lambda: timed(sides[1]), warm_up=1)
    for directory in sides:
        shutil.rmtree(directory)
    return pairs


def imports(bench):
    print("\n" + PAIR_HEAD)
    layers = max(1, bench.bytes // (4 * LARGE * LARGE))
    size = 4 * layers * LARGE * LARGE // MIB
    rows = [(Network(layers, LARGE), f"{size} MiB", 0.95)]
    rows += [(Network(count // 2, 8), f"{count:,} small tensors", None) for count in (500, 100_000)]
    for network, name, goal in rows:
        print(import_pairs(bench, network).row(f"import of a PyTorch zip, {name}, against safetensors", goal), flush=True)


def small_tensors(bench):
    """What the manifest and the index have for each tensor of a checkpoint of small ones."""
    print("\n| a model and its Adam state, 1,000 parameters | tensors | below 256 bytes | extents | manifest | of each tensor |\n"
          "|---|---|---|---|---|---|")
    variant, = (one for one in VARIANTS if one.name == "model and Adam")
    store = bench.new_store()
    publish(bench, store, written(bench, variant, Network(SMALL_LAYERS, SMALL_WIDTH)), "m")
    info = json.loads(run(bench.weft, "--store", store, "info", "m", "--json"))
    manifest = store / "manifests" / info["manifest"]
    size, tensors = manifest.stat().st_size, info["tensors"]
    extents = json.loads(run(bench.weft, "debug", "manifest", manifest, "--json"))["files"][0]["extents"]
    tiny = sum(tensor["bytes"] < 256 for tensor in tensors)
    print(f"| weights of {SMALL_WIDTH} × {SMALL_WIDTH}, biases, and a step for each | {len(tensors):,} | {tiny:,} "
          f"| {len(extents):,} | {size:,} bytes | {size / len(tensors):.0f} bytes |", flush=True)


# Prints the seconds of load_file() of a file, with a touch of each page: of the first one, or of the second one.
LOAD = """
import sys, time
from safetensors.torch import load_file
path, cold = sys.argv[1], sys.argv[2] == "first"
if not cold:
    load_file(path)
begun = time.perf_counter()
tensors = load_file(path)
total = sum(float(tensor.view(-1)[::1024].sum()) for tensor in tensors.values())  # of mapped pages
print(time.perf_counter() - begun)
"""


def load_seconds(bench, store, tree, which):
    """In a process and a mount of its own: load_file() of the only container of m@1 in a tree."""
    where = bench.dir / "formats-mnt"
    where.mkdir(exist_ok=True)
    if which == "first":
        drop_caches()
    run(bench.weft.parents[2] / "fuse/mount.weft", store, where)
    try:
        container, = (where / tree / "m/1").glob("*.safetensors")
        return float(run(sys.executable, "-c", LOAD, container, which))
    finally:
        run(bench.weft, "--store", store, "umount", where)


def views(bench):
    """9f: a container of safetensors/ against one of layers/ of equal size."""
    print("\n" + PAIR_HEAD)
    store = bench.new_store()
    network = Network(max(1, bench.bytes // (4 * LARGE * LARGE)), LARGE)
    publish(bench, store, written(bench, TORCH, network), "m")
    for which, goal in (("first", 0.9), ("second", 0.95)):
        sides = [functools.partial(load_seconds, bench, store, tree, which) for tree in ("safetensors", "layers")]
        pairs = Pairs.alternate(bench.pairs, *sides, warm_up=1)
        print(pairs.row(f"load_file of safetensors/, {which} read, against layers/", goal), flush=True)


TABLES = {table.__name__: table for table in (coverage, growth, six, small_tensors, imports, views)}
