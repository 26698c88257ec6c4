"""layers/ of a checkpoint in each format: every tensor that weft shows is in one layer, as the same file as in tensors/."""
import json
import os
import pickle
import zipfile

import bundlelib
import gguf
import h5py
import numpy
import onnx
import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.numpy import save_file
from safetensors.torch import load_file
from weftlib import TOP, Mount, Store

SEEDS = TOP / "tests/fuzz/corpus"  # of formats whose libraries need other versions than these tests


def arrays():
    """The tensors of three layers, and one that is in no layer."""
    numbers = numpy.random.default_rng(7)
    shapes = {"embed.weight": (30, 8), "block.0.weight": (8, 8), "block.0.bias": (8,), "block.1.weight": (8, 8),
              "block.1.bias": (8,), "scale": (3,)}
    return {name: numbers.normal(size=shape).astype("f4") for name, shape in shapes.items()}


def torch_tensors():
    """One of them is transposed in memory."""
    tensors = {name: torch.from_numpy(array) for name, array in arrays().items()}
    return tensors | {"block.1.weight": tensors["block.1.weight"].t().contiguous().t()}


def save_npz(directory):
    numpy.savez(directory / "m.npz", **arrays() | {"block.0.weight": numpy.asfortranarray(arrays()["block.0.weight"])})


def save_npy(directory):
    for name, array in arrays().items():
        numpy.save(directory / f"{name}.npy", array)


def save_safetensors(directory):
    save_file(arrays(), directory / "model.safetensors")


def save_gguf(directory):
    writer = gguf.GGUFWriter(directory / "m.gguf", "llama")
    for name, array in arrays().items():
        writer.add_tensor(name, array)
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()


def save_torch(directory):
    torch.save(torch_tensors(), directory / "pytorch_model.bin")


def save_torch_as_it_was(directory):
    torch.save(torch_tensors(), directory / "m.pt", _use_new_zipfile_serialization=False)


def save_pickle(directory):
    (directory / "m.pkl").write_bytes(pickle.dumps(arrays(), protocol=4))


def save_torch_export(directory):
    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, tensor in torch_tensors().items():
                *layers, name = name.split(".")
                layer = self
                for inner in layers:
                    if not hasattr(layer, inner):
                        layer.add_module(inner, torch.nn.Module())
                    layer = getattr(layer, inner)
                layer.register_parameter(name, torch.nn.Parameter(tensor))

        def forward(self, x):
            return x + sum(parameter.sum() for parameter in self.parameters())

    torch.export.save(torch.export.export(Network(), (torch.ones(2),)), directory / "m.pt2")


def save_distributed(directory):
    dcp.save(torch_tensors(), checkpoint_id=str(directory), no_dist=True)


def save_shards(directory):
    """As HuggingFaceStorageWriter of two processes: each file has half of the columns, or of the only dimension."""
    for rank in 0, 1:
        halves = {name: numpy.array_split(array, 2, axis=-1) for name, array in arrays().items()}
        begins = {name: [0] * (array.ndim - 1) + [rank * halves[name][0].shape[-1]] for name, array in arrays().items()}
        info = {name: {"saved_offsets": begin} for name, begin in begins.items()}
        save_file({name: numpy.ascontiguousarray(half[rank]) for name, half in halves.items()},
                  directory / f"shard-0000{rank}-model-00001-of-00001.safetensors",
                  metadata={"format": "pt", "DCP_SHARDING_INFO": json.dumps(info)})


def fill(file):
    for name, array in arrays().items():
        file[name.replace(".", "/")] = array


def save_hdf5(directory):
    with h5py.File(directory / "m.h5", "w") as file:
        fill(file)


def save_hdf5_in_tiles(directory):
    with h5py.File(directory / "m.hdf5", "w", libver="latest") as file:
        for name, array in arrays().items():
            file.create_dataset(name.replace(".", "/"), data=array, chunks=tuple(min(5, side) for side in array.shape))


def save_keras(directory):
    with h5py.File(directory / "weights", "w") as file:
        fill(file)
    with zipfile.ZipFile(directory / "m.keras", "w") as archive:
        archive.writestr("config.json", "{}")
        archive.write(directory / "weights", "model.weights.h5")
    (directory / "weights").unlink()


def save_onnx(directory, **options):
    initializers = [onnx.numpy_helper.from_array(array, name) for name, array in arrays().items()]
    model = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], initializers))
    onnx.save_model(model, directory / "m.onnx", **options)


def save_onnx_beside(directory):
    save_onnx(directory, save_as_external_data=True, location="m.onnx_data", size_threshold=0)


def save_bundle(directory):
    """The largest tensor is partitioned by its columns."""
    slices = {"embed.weight": [((0, 30), (0, 3)), ((0, 30), (3, 5))]}
    bundlelib.write_checkpoint(directory / "m.ckpt", {
        name.replace(".", "/"): (1, array, slices.get(name, ())) for name, array in arrays().items()}, shards=2)


def save_tflite(directory):
    (directory / "m.tflite").write_bytes((SEEDS / "tflite/tensors").read_bytes())


def save_flax(directory):
    (directory / "flax_model.msgpack").write_bytes((SEEDS / "flax/state").read_bytes())


SEED = b"0123456789abcdefABCDEFGH"  # what tests/fuzz/make_corpus.py writes
OTHERS = {
    "tflite": {"w": numpy.frombuffer(SEED, "<f4").reshape(2, 3), "tied": numpy.frombuffer(SEED, "<i4")},
    "flax": {"params.dense.kernel": numpy.frombuffer(SEED, "<f4").reshape(2, 3),
             "params.dense.bias": numpy.frombuffer(SEED[:6], "V2"), "list.0": numpy.frombuffer(SEED[:4], "<i4").reshape(())},
}
WRITERS = {writer.__name__[len("save_"):]: writer for writer in (
    save_npz, save_npy, save_safetensors, save_gguf, save_torch, save_torch_as_it_was, save_pickle, save_torch_export,
    save_distributed, save_shards, save_hdf5, save_hdf5_in_tiles, save_keras, save_onnx, save_onnx_beside, save_bundle,
    save_tflite, save_flax)}


def expected_of(name):
    return OTHERS.get(name, arrays())


@pytest.fixture(scope="module")
def mounted(area):
    """A model of each writer's name."""
    store = Store(area / "layers-store")
    for name, save in WRITERS.items():
        directory = area / "layers" / name
        directory.mkdir(parents=True)
        save(directory)
        store.publish(directory, name=name)
    with Mount(store, area / "layers-mnt") as mount:
        yield mount


def place(path):
    status = path.stat()
    return status.st_dev, status.st_ino


def assert_equal(path, array, name):
    got = numpy.load(path)
    assert got.shape == array.shape and got.dtype.itemsize == array.dtype.itemsize, name
    assert got.tobytes() == array.tobytes(), name


@pytest.mark.parametrize("name", WRITERS)
def test_each_tensor_is_in_one_layer(mounted, name):
    """A tensor without a dot in its name is in no layer: it lies at the top of the tree."""
    expected = expected_of(name)
    layers, tensors = mounted.layers(name, 1), mounted.tensors(name, 1)
    found = [path.relative_to(layers) for path in layers.rglob("*.npy")]
    assert sorted(".".join(path.parts) for path in found) == sorted(f"{title}.npy" for title in expected)
    assert sorted(os.listdir(tensors)) == sorted(f"{title}.npy" for title in expected)
    for title, array in expected.items():
        in_layer = (layers / title.replace(".", "/")).with_suffix(".npy")
        assert place(in_layer) == place(tensors / f"{title}.npy"), title
        assert_equal(in_layer, array, title)
        assert_equal(tensors / f"{title}.npy", array, title)


def layers_above(title):
    """block.0.weight is below block and block.0."""
    parts = title.split(".")[:-1]
    return [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


@pytest.mark.parametrize("name", WRITERS)
def test_the_facts_of_a_layer(mounted, name):
    """layer.json lists the tensors of its directory."""
    layers = mounted.layers(name, 1)
    listed = {facts: [tensor["name"] for tensor in json.loads(facts.read_text())["tensors"]] for facts in layers.rglob("layer.json")}
    assert sorted(sum(listed.values(), [])) == sorted(expected_of(name))
    for facts, titles in listed.items():
        layer = facts.parent.relative_to(layers).parts
        assert sorted(titles) == sorted(".".join([*layer, path.stem]) for path in facts.parent.glob("*.npy"))


@pytest.mark.parametrize("name", WRITERS)
def test_the_container_of_a_layer(mounted, name):
    """It has the tensors below, by their full names, but for those that are not one run of a file: tiles, and parts."""
    one_run = [tensor["name"] for tensor in mounted.store.json("info", name)["tensors"] if "runs" not in tensor]
    layers = mounted.layers(name, 1)
    held = {}
    for path in layers.rglob("*.safetensors"):
        held[".".join(path.relative_to(layers).with_suffix("").parts)] = load_file(path)
    assert held.keys() == {layer for title in one_run for layer in layers_above(title)}
    for layer, tensors in held.items():
        assert tensors.keys() == {title for title in one_run if layer in layers_above(title)}
        for title, tensor in tensors.items():
            array = expected_of(name)[title]
            assert tuple(tensor.shape) == array.shape, title
            assert tensor.reshape(-1).view(torch.uint8).numpy().tobytes() == array.tobytes(), title
