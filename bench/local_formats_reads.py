"""Tables of `scripts/bench local formats` that time reads: headers, distributed checkpoints, and the formats' own libraries."""
import contextlib
import statistics
import tempfile
import time

from formats_files import HDF5, KERAS, NPZ, ONNX, SIX, TORCH, VARIANTS, keras
from local_formats import LARGE, MIB, publish, written
from measure import PAIR_HEAD, Pairs, run, seconds
from network_files import Network
from read_set import forget, unmount, warm

TIMES = 5
SAME_DISK = 0.97  # of the speed of the plain directory
SAME_READ = 0.5


def headers(bench):
    """`weft match FILE` reads the headers of a file as an import does, then asks the index: it is empty here."""
    print(f"\n| headers, of {TIMES} runs | tensors | median | goal | met |\n|---|---|---|---|---|")
    store = bench.new_store()
    for tensors, goal in ((500, 0.05), (100_000, 2)):
        for variant in SIX:
            path, = written(bench, variant, Network(tensors // 2, 8)).iterdir()
            warm(path)
            took = statistics.median(seconds(bench.weft, "--store", store, "--quiet", "match", path) for _ in range(TIMES))
            print(f"| {variant.form} | {tensors:,} | {took:.3f} s | ≤ {goal} s | {'yes' if took <= goal else 'NO'} |", flush=True)


@contextlib.contextmanager
def mounted(bench, store):
    with tempfile.TemporaryDirectory(prefix="mount.", dir=bench.dir) as directory:
        where = bench.dir / directory / "mnt"
        where.mkdir()
        run(bench.mount_weft, store, where)
        try:
            yield where
        finally:
            unmount(where)


def timed(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def large_network(bench):
    return Network(max(1, bench.bytes // (4 * LARGE * LARGE)), LARGE)


def load_tensors(paths):
    import numpy

    for path in paths:
        numpy.load(path).view(numpy.uint8).max()


def dimensions(bench):
    """All tensors of two distributed checkpoints of one network. Tensors of shards of columns lie in boxes."""
    print("\n" + PAIR_HEAD.replace("weft", "dimension 1").replace("peer", "dimension 0"))
    store = bench.new_store()
    network = large_network(bench)
    for number in (0, 1):
        variant, = (one for one in VARIANTS if one.form == "DCP" and one.name == f"dimension {number}")
        publish(bench, store, written(bench, variant, network), f"d{number}")
    with mounted(bench, store) as mount:
        sides = [sorted((mount / f"tensors/d{number}/1").iterdir()) for number in (0, 1)]
        for ours, peer in zip(sides[1], sides[0]):
            if ours.read_bytes() != peer.read_bytes():  # which also brings the packs into the page cache
                raise RuntimeError(f"{ours} has other bytes than {peer}")

        def first_read(paths):
            for path in paths:
                forget(path)
            return timed(lambda: load_tensors(paths))

        size = sum(path.stat().st_size for path in sides[0]) // MIB
        for name, read in (("first read", first_read), ("second read", lambda paths: timed(lambda: load_tensors(paths)))):
            pairs = Pairs.alternate(TIMES, lambda: read(sides[1]), lambda: read(sides[0]), warm_up=1)
            print(pairs.row(f"tensors/ of a DCP checkpoint, {size} MiB, {name}", SAME_READ), flush=True)


def torch_mapped(path):
    import torch

    return {name: float(tensor.sum()) for name, tensor in torch.load(path, mmap=True, weights_only=True).items()}


def hdf5_read(path):
    import h5py

    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: float(item[()].sum())}) if isinstance(item, h5py.Dataset) else None)
    return found


def keras_load(path):
    model = keras().saving.load_model(path, compile=False)
    return {weight.path: float(keras().ops.sum(weight)) for weight in model.weights}


def npz_read(path):
    import numpy

    with numpy.load(path) as arrays:
        return {name: float(array.sum()) for name, array in arrays.items()}


def onnx_run(path):
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    result, = session.run(None, {"h0": numpy.ones((1, LARGE), numpy.float32)})
    return result.tobytes()


def libraries(bench):
    """Each library reads the file of models/ and the same one in the plain directory, both in the page cache."""
    print("\n" + PAIR_HEAD)
    external = next(one for one in VARIANTS if one.name == "external, one file")
    rows = [("torch.load(mmap=True), all tensors summed", TORCH, torch_mapped), ("h5py, all datasets", HDF5, hdf5_read),
            ("keras.saving.load_model, all weights summed", KERAS, keras_load), ("numpy.load of npz", NPZ, npz_read),
            ("onnxruntime, session and run, in the file", ONNX, onnx_run),
            ("onnxruntime, session and run, external data", external, onnx_run)]
    network = large_network(bench)
    for name, variant, read in rows:
        directory = written(bench, variant, network)
        store = bench.new_store()
        publish(bench, store, directory, "m")
        with mounted(bench, store) as mount:
            native = sorted(directory.iterdir())[0]
            ours = mount / "models/m/1" / native.name
            for path in (*directory.iterdir(), *ours.parent.iterdir()):
                warm(path)
            if read(str(ours)) != read(str(native)):
                raise RuntimeError(f"{name}: other values than from the plain directory")
            pairs = Pairs.alternate(TIMES, lambda: timed(lambda: read(str(ours))), lambda: timed(lambda: read(str(native))),
                                    warm_up=1)
            print(pairs.row(name, SAME_DISK), flush=True)


TABLES = {table.__name__: table for table in (headers, dimensions, libraries)}
