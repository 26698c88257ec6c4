"""`scripts/bench local formats`: how much of each checkpoint weft shows, what a second version adds to the store, what six
formats of one network take, and the time of an import."""
import collections
import json
import pathlib
import shutil
import sys

import formats_files
from formats_files import SAFETENSORS, SIX, TORCH, VARIANTS
from measure import PAIR_HEAD, Pairs, run
from read_set import warm

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts/lib"))

from network_files import Network  # noqa: E402

MIB = 1 << 20
CUT_MIN = 4096                                       # bytes of an extent without a tensor, at least
SMALL, SMALL_LAYER, LARGE_LAYER = 256, 1024, 4096    # widths
LAYERS, CHANGED = 10, 3
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


def is_cut(extent, number, tensors, extents):
    return number in tensors or (len(extents) > 1 and extent["length"] >= CUT_MIN)


def cut_bytes(bench, store, manifest):
    """The bytes of the published files in extents of tensors, or in extents of CUT_MIN bytes of files with several."""
    described = json.loads(run(bench.weft, "debug", "manifest", store / "manifests" / manifest, "--json"))
    total = 0
    for file in described["files"]:
        named = {tensor["extent"] for tensor in file["tensors"]}
        total += sum(extent["length"] for number, extent in enumerate(file["extents"])
                     if is_cut(extent, number, named, file["extents"]))
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
    cut = cut_bytes(bench, store, info["manifest"])
    met = ("1.000", "yes" if coverage == 1 else "NO") if variant.shown else ("not shown", "")
    return (f"| {variant.form} | {variant.name} | {sum(listed.values())} | {coverage:.3f} | {info['tensor_bytes'] / info['bytes']:.4f} "
            f"| {cut / info['bytes']:.4f} | {reason(info)} | {met[0]} | {met[1]} |")


def coverage(bench):
    print("\n| format | variant | tensors | coverage | shown, of the files | cut, of the files | reason | goal | met |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for variant in VARIANTS:
        print(coverage_row(bench, variant), flush=True)


def growth(bench):
    print(f"\n| second version, 1 of {LAYERS} layers changed | bytes changed | bytes added | added ÷ changed | goal | met |\n"
          "|---|---|---|---|---|---|")
    base, tuned = Network(LAYERS, SMALL_LAYER), Network(LAYERS, SMALL_LAYER, CHANGED)
    first, second = base.arrays(), tuned.arrays()
    changed = sum(array.nbytes for name, array in second.items() if (array != first[name]).any())
    for variant in VARIANTS:
        store = bench.new_store()
        publish(bench, store, written(bench, variant, base), "m")
        before = stored_bytes(store)
        publish(bench, store, written(bench, variant, tuned), "m")
        added = stored_bytes(store) - before
        print(row_of_ratio(f"{variant.form}, {variant.name}", changed, added, 1.01 if variant.shown else None), flush=True)


def row_of_ratio(name, of, got, goal):
    met = "| |" if goal is None else f"| ≤ {goal:.2f} | {'yes' if got / of <= goal else 'NO'} |"
    return f"| {name} | {of / MIB:.3f} MiB | {got / MIB:.3f} MiB | {got / of:.4f} {met}"


def six(bench):
    print("\n| formats of one network | one | all | all ÷ one | goal | met |\n|---|---|---|---|---|---|")
    store = bench.new_store()
    empty = stored_bytes(store)
    sizes = []
    for variant in SIX:
        publish(bench, store, written(bench, variant, Network(LAYERS, SMALL_LAYER)), f"m-{len(sizes)}")
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
    layers = max(1, bench.bytes // (4 * LARGE_LAYER * LARGE_LAYER))
    size = 4 * layers * LARGE_LAYER * LARGE_LAYER // MIB
    print(import_pairs(bench, Network(layers, LARGE_LAYER)).row(f"import of a PyTorch zip, {size} MiB, against safetensors", 0.95),
          flush=True)
    for layers in (250, 50_000):
        row = import_pairs(bench, Network(layers, 8)).row(f"import of a PyTorch zip, {2 * layers:,} small tensors, against safetensors")
        print(row, flush=True)


def measure(bench):
    for table in (coverage, growth, six, imports):
        table(bench)
