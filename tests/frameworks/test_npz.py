"""npz files of numpy: their arrays are tensors, and numpy reads the published files."""
import numpy
import pytest
import weftlib
import zoo
from weftlib import Mount, Store


def arrays():
    """Those of the npy zoo, and what only an npz has: names with a slash, many types."""
    numbers = numpy.random.default_rng(11)
    more = {f"types/{name}": numbers.integers(0, 100, (3, 5)).astype(name)
            for name in ("int8", "uint16", "int32", "uint64", "float16", "float64", "complex64")}
    return {**zoo.npy_arrays(), **more, "layer.weight": numbers.normal(size=(2000, 30)).astype(numpy.float32)}


@pytest.fixture(scope="module")
def published(area):
    """The store and a mount of it. Models: stored, deflated, weights (the same as safetensors), objects."""
    source = area / "npz"
    source.mkdir()
    numpy.savez(source / "stored.npz", **arrays())
    numpy.savez_compressed(source / "deflated.npz", **arrays())
    numpy.savez(source / "objects.npz", some=numpy.array([{}, None]), fields=numpy.zeros(2, "f4,i4"), plain=numpy.arange(4))
    weight = arrays()["layer.weight"]
    (source / "weights.safetensors").write_bytes(
        weftlib.safetensors_bytes({"w": ("F32", list(weight.shape), weight.tobytes())}))
    store = Store(area / "npz-store")
    for path in source.iterdir():
        store.publish(path, name=path.stem)
    with Mount(store, area / "npz-mnt") as mount:
        yield store, mount, source


def escaped(name):
    return name.replace("/", "%2F")


def test_each_array_is_a_tensor(published):
    _, mount, _ = published
    tensors = mount.tensors("stored", 1)
    assert sorted(path.name for path in tensors.iterdir()) == sorted(f"{escaped(name)}.npy" for name in arrays())
    for name, array in arrays().items():
        got = numpy.load(tensors / f"{escaped(name)}.npy")
        assert got.dtype == array.dtype and got.shape == array.shape, name
        numpy.testing.assert_array_equal(got, array, err_msg=name)


@pytest.mark.parametrize("model", ["stored", "deflated"])
def test_numpy_reads_the_published_file(published, model):
    _, mount, source = published
    path = mount.version(model, 1) / f"{model}.npz"
    assert path.read_bytes() == (source / f"{model}.npz").read_bytes()
    with numpy.load(path) as loaded:
        assert sorted(loaded) == sorted(arrays())
        for name, array in arrays().items():
            assert loaded[name].dtype == array.dtype, name
            numpy.testing.assert_array_equal(loaded[name], array, err_msg=name)


def test_compressed_arrays_are_hidden(published):
    store, mount, _ = published
    assert list(mount.tensors("deflated", 1).iterdir()) == []
    file, = store.json("info", "deflated")["files"]
    assert file["format"] == "npz" and file["tensors"] == 0
    assert sorted(hidden["name"] for hidden in file["hidden"]) == sorted(arrays())
    assert {hidden["why"] for hidden in file["hidden"]} == {"compressed"}
    assert all(hidden["bytes"] > 0 for hidden in file["hidden"])
    text = store.weft("info", "deflated").stdout
    assert text.count("  not shown  deflated.npz: ") == 9 and ": compressed\n" in text
    assert f"deflated.npz: {len(arrays()) - 8} tensors more; --json lists them\n" in text


def test_objects_and_fields_are_hidden(published):
    store, mount, _ = published
    assert [path.name for path in mount.tensors("objects", 1).iterdir()] == ["plain.npy"]
    text = store.weft("info", "objects").stdout
    assert "expected elements of a fixed size, got an array of Python objects" in text
    assert "expected elements of one type, got an array of a structured type" in text


def test_one_tensor_is_stored_once_in_two_formats(published):
    store, mount, _ = published
    in_npz = mount.tensors("stored", 1) / "layer.weight.npy"
    assert in_npz.samefile(mount.tensors("weights", 1) / "w.npy")
    store.assert_sound()


def test_versions_share_what_did_not_change(published, tmp_path):
    """Of a compressed file too: an unchanged array compresses to the same bytes."""
    store, _, _ = published
    changed = arrays()
    changed["f64"] = changed["f64"] + 1
    for model, save in (("stored", numpy.savez), ("deflated", numpy.savez_compressed)):
        save(tmp_path / f"{model}.npz", **changed)
        before = store.pack_bytes()
        store.publish(tmp_path / f"{model}.npz", name=model)
        assert store.pack_bytes() - before < arrays()["layer.weight"].nbytes / 2
