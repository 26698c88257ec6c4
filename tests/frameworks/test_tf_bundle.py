"""Checkpoints of TensorFlow: each variable is a tensor of weft. The files are those of tests/bundlelib.py, as TensorFlow
needs other versions of the libraries than these tests."""
import bundlelib
import ml_dtypes
import numpy
import pytest
import weftlib
from weftlib import Mount, Store

# By the numbers of DataType.
TYPES = {1: "f4", 2: "f8", 3: "i4", 4: "u1", 5: "i2", 6: "i1", 8: "c8", 9: "i8", 10: "?", 14: ml_dtypes.bfloat16, 17: "u2",
         18: "c16", 19: "f2", 22: "u4", 23: "u8", 24: ml_dtypes.float8_e5m2, 25: ml_dtypes.float8_e4m3fn}
FLOAT, STRING = 1, 7
LAYERS = 10


def layers(changed=None):
    numbers = numpy.random.default_rng(3)
    arrays = [numbers.normal(size=(64, 64)).astype("f4") + (layer == changed) for layer in range(LAYERS)]
    return {f"layer_{layer}/kernel/.ATTRIBUTES/VARIABLE_VALUE": (FLOAT, array, ()) for layer, array in enumerate(arrays)}


def zoo():
    numbers = numpy.random.default_rng(5)
    found = {f"types/{kind}": (kind, numbers.integers(0, 2, (3, 5)).astype(dtype), ()) for kind, dtype in TYPES.items()}
    return {**found, "empty": (FLOAT, numpy.zeros((0, 3), "f4"), ()), "scalar": (FLOAT, numpy.array(2.5, "f4"), ()),
            "a.b": (FLOAT, numpy.arange(3, dtype="f4"), ()), "a/b": (FLOAT, numpy.arange(4, dtype="f4"), ())}


def partitioned():
    whole = numpy.random.default_rng(7).normal(size=(100, 70)).astype("f4")
    rows = [((0, 40), (0, 70)), ((40, 40), (0, 70)), ((80, 20), (0, 70))]
    columns = [((0, 100), (0, 30)), ((0, 100), (30, 40))]
    tiles = [((y, 50), (x, 35)) for y in (0, 50) for x in (0, 35)]
    return {"rows": (FLOAT, whole, rows), "net/columns": (FLOAT, whole, columns), "tiles": (FLOAT, whole, tiles),
            "holed": (FLOAT, whole, [((0, 50), (0, 70))])}


@pytest.fixture(scope="module")
def published(area):
    """Models: net (a SavedModel's variables), zoo, partitioned (in two data files), lacking (without the second), broken."""
    source = area / "tf"
    bundlelib.write_checkpoint(source / "net/variables/variables", layers(),
                               others=[("_CHECKPOINTABLE_OBJECT_GRAPH", STRING, b"graph" * 2000)])
    bundlelib.write_checkpoint(source / "zoo/model.ckpt-7", zoo(), blocks=5)
    for name in "partitioned", "lacking":
        bundlelib.write_checkpoint(source / name / "model.ckpt", partitioned(), shards=2)
    (source / "lacking/model.ckpt.data-00001-of-00002").unlink()
    bundlelib.write_checkpoint(source / "broken/ckpt-1", layers())
    index = source / "broken/ckpt-1.index"
    index.write_bytes(index.read_bytes()[:-1])
    store = Store(area / "tf-store")
    for path in sorted(source.iterdir()):
        store.publish(path, name=path.name)
    with Mount(store, area / "tf-mnt") as mount:
        yield store, mount, source


def hidden_in(store, model):
    """The reasons in the index, by name."""
    return {one["name"]: one["why"] for file in store.json("info", model)["files"] for one in file.get("hidden", [])}


@pytest.mark.parametrize(("model", "tensors"), [("net", layers()), ("zoo", zoo()), ("partitioned", partitioned())])
def test_each_tensor_of_a_checkpoint(published, model, tensors):
    _, mount, _ = published
    expected = {name.replace("/", "."): array for name, (_, array, _) in tensors.items() if name not in ("holed", "a/b")}
    if "a/b" in tensors:
        expected["a.b~2"] = tensors["a/b"][1]
    views = mount.tensors(model, 1)
    assert sorted(view.name for view in views.iterdir()) == sorted(f"{name}.npy" for name in expected)
    for name, array in expected.items():
        view = numpy.load(views / f"{name}.npy")
        assert view.shape == array.shape, name
        assert view.tobytes() == array.tobytes(), name


def test_other_tensors_are_hidden_with_a_reason(published):
    store, _, _ = published
    assert hidden_in(store, "net") == {"_CHECKPOINTABLE_OBJECT_GRAPH": "a type that weft lacks, STRING"}
    assert list(hidden_in(store, "partitioned")) == ["holed"]


def test_a_missing_data_file_hides_its_tensors(published):
    store, mount, _ = published
    reasons = hidden_in(store, "lacking")
    assert reasons["rows"] == "no file model.ckpt.data-00001-of-00002 is beside the index"
    assert sorted([*reasons, *(view.stem for view in mount.tensors("lacking", 1).iterdir())]) == sorted(
        name.replace("/", ".") for name in partitioned())


def test_published_files_are_unchanged(published):
    _, mount, source = published
    for directory in source.iterdir():
        for path in directory.rglob("*"):
            if path.is_file():
                assert (mount.version(directory.name, 1) / path.relative_to(directory)).read_bytes() == path.read_bytes()


def test_broken_index_is_kept(published):
    store, _, _ = published
    assert "  no tensors in ckpt-1.index: table: expected a magic number" in store.weft("info", "broken").stdout


def test_one_tensor_is_stored_once_in_two_formats(published, tmp_path):
    store, _, _ = published
    weight = layers()["layer_3/kernel/.ATTRIBUTES/VARIABLE_VALUE"][1]
    (tmp_path / "w.safetensors").write_bytes(weftlib.safetensors_bytes({"w": ("F32", list(weight.shape), weight.tobytes())}))
    before = store.pack_bytes()
    store.publish(tmp_path / "w.safetensors", name="weights")
    assert store.pack_bytes() - before < weight.nbytes / 2
    store.assert_sound()


def test_versions_share_what_did_not_change(published, tmp_path):
    store, _, _ = published
    bundlelib.write_checkpoint(tmp_path / "net/variables/variables", layers(changed=4),
                               others=[("_CHECKPOINTABLE_OBJECT_GRAPH", STRING, b"graph" * 2000)])
    before = store.pack_bytes()
    store.publish(tmp_path / "net", name="net")
    assert store.pack_bytes() - before < 2 * 64 * 64 * 4
