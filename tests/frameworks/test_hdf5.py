"""HDF5 files of h5py and Keras: their datasets are tensors, and the libraries read the published files."""
import json
import os
import shutil
import subprocess
import sys

import h5py
import numpy
import pytest
import weftlib
from library_values import datasets
from weftlib import Mount, Store

NARROW = (64, 1)  # chunks; there are 1,200
# The HDF5 version that a file may need: old groups, or everything that is new.
VERSIONS = {"earliest": "earliest", "newest": "latest"}  # a model, and the version of the format that it is written in

KERAS = """
import os, sys, keras, numpy
keras.utils.set_random_seed(5)
directory = sys.argv[1]
layers = keras.layers
model = keras.Sequential([keras.Input((20,)), layers.Dense(300), layers.BatchNormalization(), layers.Dense(10)])
model.compile("adam", "mse")
model.fit(keras.random.normal((32, 20)), keras.random.normal((32, 10)), verbose=0)
model.save(directory + "/model.keras")
model.save(directory + "/legacy.h5")
model.save_weights(directory + "/model.weights.h5")
model.save_weights(directory + "/parts.weights.json", max_shard_size=3e-5)
keras.mixed_precision.set_dtype_policy("bfloat16")
half = keras.Sequential([keras.Input((6,)), layers.Dense(4)])
half.save(directory + "/half.keras")
numpy.save(directory + "/half.npy", keras.ops.convert_to_numpy(keras.ops.cast(half.weights[0], "float32")))
"""

PREDICT = """
import sys, keras, numpy
numpy.save(sys.argv[2], keras.saving.load_model(sys.argv[1], compile=False).predict(numpy.ones((3, 20)), verbose=0))
"""


def run_keras(program, *arguments):
    """In a process of its own: Keras reads its backend once."""
    environment = {**os.environ, "KERAS_BACKEND": "torch", "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, "-c", program, *map(str, arguments)], check=True, env=environment, timeout=600)


def arrays():
    numbers = numpy.random.default_rng(3)
    found = {f"types/{name}": numbers.integers(0, 100, (7, 5)).astype(name)
             for name in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", ">f4", ">i2", ">c16")}
    return {**found, "types/bool": numbers.integers(0, 2, 33).astype(bool), "layer/kernel:0": numbers.normal(size=(300, 200)),
            "scalar": numpy.array(2.5, "f4"), "empty": numpy.zeros((0, 3), "f4")}


def write_compact(file, name, array):
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple(array.shape)
    h5py.h5d.create(file.id, name.encode(), h5py.h5t.IEEE_F32LE, space, creation).write(h5py.h5s.ALL, h5py.h5s.ALL, array)


def write_shown(path, **options):
    with h5py.File(path, "w", **options) as file:
        for name, array in arrays().items():
            file[name] = array
        file["tied"] = file["layer/kernel:0"]
        write_compact(file, "compact", numpy.arange(9, dtype="f4"))
        rows = numpy.random.default_rng(4).normal(size=(256, 300)).astype("f4")
        file.create_dataset("rows", data=rows, chunks=(60, 300))
        file.create_dataset("tiles", data=rows, chunks=(100, 100))
        file.create_dataset("narrow", data=rows, chunks=NARROW)
        backwards = file.create_dataset("backwards", rows.shape, "f4", chunks=(64, 100))
        for top in reversed(range(0, 256, 64)):
            for left in reversed(range(0, 300, 100)):
                backwards[top:top + 64, left:left + 100] = rows[top:top + 64, left:left + 100]
                file.flush()  # the chunks lie in this order
        file.create_dataset("lines", data=rows, chunks=(1, 300))
        file.create_dataset("single", data=rows, chunks=rows.shape)
        for i in range(300):
            file[f"many/layer_{i}"] = numpy.full((3, i % 7 + 1), i, "f4")


def write_hidden(path, other, **options):
    with h5py.File(other, "w") as file:
        file["x"] = numpy.arange(4, dtype="f4")
    with h5py.File(path, "w", **options) as file:
        file["plain"] = numpy.arange(6, dtype="f4")
        file["text"] = ["a", "bc"]
        file["compound"] = numpy.zeros(3, [("a", "f4"), ("b", "i4")])
        weights = numpy.random.default_rng(5).normal(size=(200, 300)).astype("f4")
        file.create_dataset("gzip", data=weights, chunks=(20, 300), compression="gzip")
        file.create_dataset("lzf", data=weights, compression="lzf", shuffle=True)
        file.create_dataset("unwritten", (100, 100), "f4")
        file.create_dataset("outside", (4,), "f4", external=[(str(other), 0, 16)])
        virtual = h5py.VirtualLayout((4,), "f4")
        virtual[:] = h5py.VirtualSource(str(other), "x", (4,))
        file.create_virtual_dataset("virtual", virtual)
        file["soft"], file["external"] = h5py.SoftLink("/plain"), h5py.ExternalLink(str(other), "/x")


@pytest.fixture(name="published", scope="module")
def published_files(area):
    """The store, a mount of it, and the sources. Models: earliest and newest, hidden-earliest and hidden-newest, keras, and
    weights (one tensor of earliest, as safetensors)."""
    source = area / "hdf5"
    for version, written in VERSIONS.items():
        (source / version).mkdir(parents=True)
        (source / f"hidden-{version}").mkdir()
        write_shown(source / version / "model.h5", libver=(written, "latest"))
        write_hidden(source / f"hidden-{version}" / "model.hdf5", area / "other.h5", libver=(written, "latest"))
    (source / "keras").mkdir()
    run_keras(KERAS, source / "keras")
    shutil.move(source / "keras" / "half.npy", area / "half.npy")
    (source / "weights").mkdir()
    kernel = arrays()["layer/kernel:0"]
    (source / "weights" / "w.safetensors").write_bytes(
        weftlib.safetensors_bytes({"w": ("F64", list(kernel.shape), kernel.tobytes())}))
    store = Store(area / "hdf5-store")
    for path in sorted(source.iterdir()):
        if path.name == "keras":
            for file in [*path.glob("*.h5"), *path.glob("*.keras")]:
                store.publish(file, name=f"keras-{file.name}")
        else:
            store.publish(path, name=path.name)
    with Mount(store, area / "hdf5-mnt") as mount:
        yield store, mount, source


def assert_tensors_equal(tensors, expected):
    assert sorted(path.stem for path in tensors.iterdir()) == sorted(expected)
    for name, array in expected.items():
        got = numpy.load(tensors / f"{name}.npy")
        assert got.dtype == array.dtype and got.shape == array.shape, name
        assert got.tobytes() == array.tobytes(), name


@pytest.mark.parametrize("version", VERSIONS)
def test_each_dataset_is_a_tensor(published, version):
    _, mount, source = published
    expected = datasets(source / version / "model.h5")
    assert len(expected) == len(arrays()) + 308
    assert_tensors_equal(mount.tensors(version, 1), expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_h5py_reads_the_published_file(published, version):
    _, mount, source = published
    for model, name in ((version, "model.h5"), (f"hidden-{version}", "model.hdf5")):
        path = mount.version(model, 1) / name
        assert path.read_bytes() == (source / model / name).read_bytes()
    expected, got = datasets(source / version / "model.h5"), datasets(mount.version(version, 1) / "model.h5")
    assert sorted(got) == sorted(expected)
    for name, array in expected.items():
        numpy.testing.assert_array_equal(got[name], array, err_msg=name)
    with h5py.File(mount.version(f"hidden-{version}", 1) / "model.hdf5") as file:
        assert file["gzip"].shape == (200, 300) and file["gzip"][()].any()


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_not_shown_is_listed(published, version):
    store, mount, _ = published
    assert [path.name for path in mount.tensors(f"hidden-{version}", 1).iterdir()] == ["plain.npy"]
    file, = store.json("info", f"hidden-{version}")["files"]
    assert file["format"] == "hdf5" and file["tensors"] == 1
    assert {hidden["name"]: hidden["why"] for hidden in file["hidden"]} == {
        "text": "elements of variable length", "compound": "a compound type", "gzip": "compressed", "lzf": "compressed",
        "unwritten": "never written: its elements are the fill value", "outside": "its elements are in external files",
        "virtual": "its elements are in other datasets (virtual)",
        "soft": "a soft or external link, which is not followed",
        "external": "a soft or external link, which is not followed"}


@pytest.mark.parametrize("name", ["model.keras", "legacy.h5"])
def test_keras_loads_from_the_mount(published, tmp_path, name):
    _, mount, source = published
    run_keras(PREDICT, mount.version(f"keras-{name}", 1) / name, tmp_path / "mounted.npy")
    run_keras(PREDICT, source / "keras" / name, tmp_path / "plain.npy")
    plain = numpy.load(tmp_path / "plain.npy")
    assert plain.any()
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "mounted.npy"), plain)


def test_weights_of_keras_are_tensors(published):
    store, mount, source = published
    weights = datasets(source / "keras" / "model.weights.h5")
    assert "layers.dense.vars.0" in weights
    assert_tensors_equal(mount.tensors("keras-model.weights.h5", 1), weights)
    assert_tensors_equal(mount.tensors("keras-model.keras", 1), weights)
    assert_tensors_equal(mount.tensors("keras-legacy.h5", 1), datasets(source / "keras" / "legacy.h5"))
    file, = store.json("info", "keras-model.keras")["files"]
    assert file["format"] == "keras" and not file.get("hidden")
    both = [mount.tensors(f"keras-{name}", 1) / "layers.dense.vars.0.npy" for name in ("model.keras", "model.weights.h5")]
    assert both[0].samefile(both[1])


@pytest.mark.parametrize("name", ["model.keras", "model.weights.h5", "legacy.h5"])
def test_architecture_of_keras(published, name):
    """The layers of the model, and none of the optimizer."""
    store, mount, _ = published
    graph = json.loads(store.weft("info", f"keras-{name}", "--graph", "json").stdout)
    names = [vertex["name"] for vertex in graph["vertices"]]
    assert len(names) == 3 and not [name for name in names if "optimizer" in name]
    assert [path for path in mount.tensors(f"keras-{name}", 1).iterdir() if path.name.startswith("optimizer")]


def test_shards_of_keras_are_tensors(published):
    _, mount, source = published
    shards = sorted((source / "keras").glob("parts_*.weights.h5"))
    assert len(shards) >= 2
    for shard in shards:
        assert_tensors_equal(mount.tensors(f"keras-{shard.name}", 1), datasets(shard))


def test_bfloat16_of_keras(published, area):
    _, mount, _ = published
    raw = numpy.load(mount.tensors("keras-half.keras", 1) / "layers.dense.vars.0.npy").view(numpy.uint16)
    values = (raw.astype(numpy.uint32) << 16).view(numpy.float32)
    numpy.testing.assert_array_equal(values, numpy.load(area / "half.npy"))


def test_one_tensor_is_stored_once_in_two_formats(published):
    store, mount, _ = published
    kernel = mount.tensors("earliest", 1) / "layer.kernel:0.npy"
    for other in (mount.tensors("weights", 1) / "w.npy", mount.tensors("newest", 1) / "layer.kernel:0.npy",
                  mount.tensors("earliest", 1) / "tied.npy"):
        assert kernel.samefile(other)
    store.assert_sound()


def test_versions_share_chunks_that_did_not_change(published, tmp_path):
    store, _, source = published
    path = tmp_path / "model.hdf5"
    shutil.copyfile(source / "hidden-earliest" / "model.hdf5", path)
    with h5py.File(path, "r+") as file:
        file["plain"][0] = 7
        gzip_bytes = file["gzip"].id.get_storage_size()
    before = store.pack_bytes()
    store.publish(path, name="hidden-earliest")
    assert store.pack_bytes() - before < gzip_bytes / 4


@pytest.mark.parametrize("name", VERSIONS)
def test_chunks_that_touch_are_one_extent(published, name):
    store, _, _ = published
    info = json.loads(store.weft("info", name, "--json").stdout)
    runs = {tensor["name"]: tensor.get("runs", []) for tensor in info["tensors"]}
    assert 1 <= len(runs["narrow"]) < 100
    assert len(runs["backwards"]) >= 4
    file, = info["files"]
    assert file["extents"] < 1200


def test_a_broken_file_is_kept(published, tmp_path):
    store, _, source = published
    path = tmp_path / "broken.h5"
    path.write_bytes((source / "earliest" / "model.h5").read_bytes()[:-3])
    store.publish(path, name="broken")
    assert "  no tensors in broken.h5: hdf5: the file is truncated: " in store.weft("info", "broken").stdout
