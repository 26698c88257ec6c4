"""Part `views`: what is read through FUSE, cold in FUSE and warm below, against a file system on libfuse that has the
same bytes in memory, the same requests and the same readahead (bench/memory_fs.cc)."""

from measure import PAIR_HEAD, Pairs
from read_set import forget, warm

GOAL = 0.9


def cold_in_fuse(bench, how, path):
    forget(path)
    return bench.read_seconds(how, path)


def make(bench):
    """Name -> a file that no pack holds as a whole."""
    store = bench.store()
    bench.publish(store, bench.model("base", 300, bench.size), "many")
    bench.publish(store, bench.model("derived", 300, bench.size, 25, 2), "many", "--parent", "many")
    bench.publish(store, bench.model("giant", 1, bench.size), "giant")
    mount = bench.mount(store, "mnt", "assembly_cache_max=0")  # else the composed file is soon read from one
    return {
        "tensor view": mount / "tensors/giant/1/dense.0.kernel.npy",
        "layer container, 300 tensors": mount / "layers/many/1/dense.safetensors",
        "composed file, not assembled": mount / "models/many/2/derived.safetensors",
    }


def run(bench):
    files = make(bench)
    print("Through FUSE, warm below; peer: a memory file system on libfuse, mounted by the same user")
    print(f"The mount: {bench.mode()}\n\n{PAIR_HEAD}")
    for number, (name, ours) in enumerate(files.items()):
        peer = bench.memory_fs(ours, f"memory-{number}")
        warm(ours)
        for how in ("read", "mmap"):
            pairs = Pairs.alternate(bench.pairs, lambda: cold_in_fuse(bench, how, ours),
                                    lambda: cold_in_fuse(bench, how, peer), warm_up=1)
            print(pairs.row(f"{name}, {how}", GOAL), flush=True)
