"""Files of torch.save: their tensors are tensors of weft, and torch reads the published files."""
import collections
import json
import pickle
import subprocess
import sys

import numpy
import pytest
import torch
import weftlib
from weftlib import Mount, Store

# Types that numpy lacks. Their views have the raw bytes.
RAW = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)


# Of the pickles in files before PyTorch 1.6.
PROTOCOLS = (2, 3, 4)


class Runs:
    """An object whose pickle calls os.system."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        import os
        return os.system, (f"touch {self.path}",)


def state_dict():
    torch.manual_seed(7)
    base = torch.randn(64, 48)
    tensors = {"base": base, "tied": base, "row": base[3], "transposed": base.t(), "column": base[:, 5],
               "expanded": base[0].expand(5, 48), "channels": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
               "scalar": torch.tensor(2.5), "none": torch.zeros(0, 3), "layer.weight": torch.randn(300, 100)}
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128, torch.float8_e4m3fn,
                  torch.float8_e5m2):
        tensors[f"types.{str(dtype)[6:]}"] = torch.randn(3, 5).to(dtype)
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64, torch.uint64):
        tensors[f"integers.{str(dtype)[6:]}"] = torch.arange(15).reshape(3, 5).to(dtype)
    tensors["bool"] = torch.tensor([True, False, True])
    return tensors


def old_state_dict():
    """PyTorch writes the other types in this way too, and cannot load them."""
    new = (torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2)
    return {name: tensor for name, tensor in state_dict().items() if tensor.dtype not in new}


def checkpoint():
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(5, 4)).sum().backward()
    optimizer.step()
    return {"epoch": 3, "state_dict": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state(),
            "parameter": model[0].weight, "sparse": torch.eye(4).to_sparse(),
            "conjugate": torch.randn(3, dtype=torch.complex64).conj()}


def arrays():
    return {"c": numpy.arange(6.0).reshape(2, 3), "fortran": numpy.asfortranarray(numpy.arange(6).reshape(2, 3)),
            "list": [numpy.ones((1, 4), "<f2")]}


def flattened(value, name=""):
    """The tensors of a checkpoint, by the names that weft gives them."""
    if isinstance(value, torch.Tensor):
        return {name: value}
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    found = {}
    for key, inner in pairs:
        found.update(flattened(inner, f"{name}.{key}" if name else str(key)))
    return found


@pytest.fixture(scope="module")
def published(area):
    """Models: state, nested, evil, broken, weights (one tensor of state, as safetensors), arrays (numpy in a pickle), and
    of each protocol a state and a checkpoint as PyTorch wrote them before 1.6."""
    source = area / "torch"
    source.mkdir()
    torch.save(state_dict(), source / "state.pt")
    torch.save(checkpoint(), source / "nested.ckpt")
    torch.save({"w": torch.ones(3), "x": Runs(area / "ran"), "y": collections.deque([1])}, source / "evil.bin")
    for protocol in PROTOCOLS:
        old = {"_use_new_zipfile_serialization": False, "pickle_protocol": protocol}
        torch.save(old_state_dict(), source / f"old-state-{protocol}.pt", **old)
        torch.save(checkpoint(), source / f"old-nested-{protocol}.ckpt", **old)
    torch.save({"x": Runs(area / "ran")}, source / "old-evil.bin", _use_new_zipfile_serialization=False)
    (source / "arrays.pkl").write_bytes(pickle.dumps(arrays(), protocol=4))
    (source / "broken.bin").write_bytes((source / "state.pt").read_bytes()[:-3])
    weight = state_dict()["layer.weight"].numpy()
    (source / "weights.safetensors").write_bytes(
        weftlib.safetensors_bytes({"w": ("F32", list(weight.shape), weight.tobytes())}))
    store = Store(area / "torch-store")
    for path in source.iterdir():
        store.publish(path, name=path.stem)
    with Mount(store, area / "torch-mnt") as mount:
        yield store, mount, source


def assert_equal(path, tensor, name):
    got = numpy.load(path)
    expected = tensor.detach().contiguous()
    if tensor.dtype in RAW:
        got, expected = got.view(numpy.uint8), expected.view(torch.uint8)
    assert got.shape == tuple(expected.shape), name
    numpy.testing.assert_array_equal(got, expected.numpy(), err_msg=name)


def test_each_tensor_of_a_state_dict(published):
    _, mount, _ = published
    tensors = mount.tensors("state", 1)
    assert sorted(path.name for path in tensors.iterdir()) == sorted(f"{name}.npy" for name in state_dict())
    for name, tensor in state_dict().items():
        assert_equal(tensors / f"{name}.npy", tensor, name)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_tensor_of_an_old_file(published, protocol):
    store, mount, _ = published
    name = f"old-state-{protocol}"
    tensors = mount.tensors(name, 1)
    assert sorted(path.name for path in tensors.iterdir()) == sorted(f"{tensor}.npy" for tensor in old_state_dict())
    for tensor, value in old_state_dict().items():
        assert_equal(tensors / f"{tensor}.npy", value, tensor)
    file, = store.json("info", name)["files"]
    assert file["format"] == "torch legacy" and file["coverage"] == 1
    assert (tensors / "layer.weight.npy").samefile(mount.tensors("state", 1) / "layer.weight.npy")
    loaded = torch.load(mount.version(name, 1) / f"{name}.pt", weights_only=False)  # True is for protocol 2
    assert loaded["transposed"].equal(state_dict()["transposed"])


def test_arrays_in_a_pickle(published):
    store, mount, _ = published
    tensors = mount.tensors("arrays", 1)
    for name, array in (("c", arrays()["c"]), ("fortran", arrays()["fortran"]), ("list.0", arrays()["list"][0])):
        got = numpy.load(tensors / f"{name}.npy")
        assert got.dtype == array.dtype
        numpy.testing.assert_array_equal(got, array)
    assert store.json("info", "arrays")["files"][0]["format"] == "pickle"


def test_shards_of_an_index(published, tmp_path):
    """The index names a tensor in the wrong shard, and then a shard that is not there: both are remarks."""
    store, mount, _ = published
    shards = {"pytorch_model-00001-of-00002.bin": {"a": torch.ones(3)}, "pytorch_model-00002-of-00002.bin": {"b": torch.zeros(2)}}
    for path, tensors in shards.items():
        torch.save(tensors, tmp_path / path)
    weight_map = {name: path for path, tensors in shards.items() for name in tensors}
    index = tmp_path / "pytorch_model.bin.index.json"

    def remark_of(content):
        index.write_text(content)
        store.publish(tmp_path, name="shards")
        return next(file for file in store.json("info", "shards")["files"] if file["path"] == index.name).get("metadata", {}).get("remark")

    assert remark_of(json.dumps({"metadata": {}, "weight_map": weight_map})) is None
    assert_equal(mount.tensors("shards", 1) / "a.npy", torch.ones(3), "a")
    assert_equal(mount.tensors("shards", 1) / "b.npy", torch.zeros(2), "b")
    wrong = {**weight_map, "a": weight_map["b"]}
    assert "expected tensor a in pytorch_model-00002-of-00002.bin" in remark_of(json.dumps({"weight_map": wrong}))
    assert "expected the shard none.bin" in remark_of(json.dumps({"weight_map": {"a": "none.bin"}}))
    assert remark_of("{") is not None


def test_info_has_a_line_for_each_file(published):
    store, _, source = published
    text = store.weft("info", "nested").stdout
    assert "  file       nested.ckpt: torch zip, " in text and " in tensors, coverage 0.9" in text
    file, = store.json("info", "nested")["files"]
    assert 0.9 < file["coverage"] < 1
    assert file["in_tensors"] < (source / "nested.ckpt").stat().st_size
    file, = store.json("info", "state")["files"]
    assert file["coverage"] == 1


@pytest.mark.parametrize("name", ["nested", *(f"old-nested-{protocol}" for protocol in PROTOCOLS)])
def test_nested_checkpoint(published, name):
    store, mount, source = published
    loaded = torch.load(source / f"{name}.ckpt", weights_only=False)
    expected = flattened({**loaded, "sparse": {"indices": loaded["sparse"]._indices(), "values": loaded["sparse"]._values()}})
    del expected["conjugate"]
    tensors = mount.tensors(name, 1)
    assert sorted(path.stem for path in tensors.iterdir()) == sorted(expected)
    for key, tensor in expected.items():
        assert_equal(tensors / f"{key}.npy", tensor, key)
    hidden, = store.json("info", name)["files"][0]["hidden"]
    assert hidden["name"] == "conjugate" and hidden["why"] == "its values are conjugated or negated when they are read"


def test_architecture_of_a_nested_checkpoint(published):
    """The layers of the model, and none of the optimizer."""
    store, mount, _ = published
    graph = json.loads(store.weft("info", "nested", "--graph", "json").stdout)
    assert [vertex["name"] for vertex in graph["vertices"]] == ["state_dict.0", "state_dict.1"]
    assert (mount.version("nested", 1, "layers") / "optimizer/state/0/layer.json").is_file()


@pytest.mark.parametrize("mmap", [False, True])
def test_torch_loads_the_published_file(published, mmap):
    _, mount, source = published
    path = mount.version("state", 1) / "state.pt"
    assert path.read_bytes() == (source / "state.pt").read_bytes()
    loaded = torch.load(path, weights_only=True, mmap=mmap)
    for name, tensor in state_dict().items():
        assert loaded[name].stride() == tensor.stride()
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].to(torch.complex128).equal(tensor.to(torch.complex128)), name


def test_globals_are_listed_and_nothing_runs(published, area):
    store, mount, source = published
    metadata = store.json("info", "evil")["files"][0]["metadata"]
    unsafe = set(torch.serialization.get_unsafe_globals_in_checkpoint(source / "evil.bin"))
    assert {name.replace("posix.", "os.") for name in unsafe} == {
        name.replace("posix.", "os.") for name in metadata["globals beyond weights_only"].split()}
    assert "torch.FloatStorage" in metadata["globals"].split()
    assert f"  globals    in evil.bin, beyond weights_only: {metadata['globals beyond weights_only']}\n" in (
        store.weft("info", "evil").stdout)
    assert "globals beyond weights_only" not in store.json("info", "state")["files"][0]["metadata"]
    old = store.json("info", "old-evil")["files"][0]["metadata"]
    assert [name.replace("posix.", "os.") for name in old["globals beyond weights_only"].split()] == ["os.system"]
    assert not (area / "ran").exists()
    assert_equal(mount.tensors("evil", 1) / "w.npy", torch.ones(3), "w")


def test_allowed_globals_are_those_of_the_installed_torch():
    """src/format/torch/torch_globals.cc has the names of PyTorch 2.13."""
    if not torch.__version__.startswith("2.13."):
        pytest.skip(f"PyTorch {torch.__version__}")
    from torch._weights_only_unpickler import _get_allowed_globals
    text = (weftlib.TOP / "src/format/torch/torch_globals.cc").read_text()
    listed = text[text.index("kAllowed"):text.index("});")].split('"')[1::2]
    assert listed == sorted(_get_allowed_globals())


def test_broken_archive_is_kept(published):
    store, mount, source = published
    assert "  no tensors in broken.bin: " in store.weft("info", "broken").stdout
    assert (mount.version("broken", 1) / "broken.bin").read_bytes() == (source / "broken.bin").read_bytes()


def test_one_tensor_is_stored_once_in_two_formats(published):
    store, mount, _ = published
    assert (mount.tensors("state", 1) / "layer.weight.npy").samefile(mount.tensors("weights", 1) / "w.npy")
    assert (mount.tensors("state", 1) / "base.npy").samefile(mount.tensors("state", 1) / "tied.npy")
    store.assert_sound()


def test_module_with_its_class(published, tmp_path):
    """A whole module is named as its state_dict(). A process of its own has the class, which no other needs."""
    store, _, _ = published
    subprocess.run([sys.executable, "-c", "import sys, torch; torch.manual_seed(1)\n"
                    "class Net(torch.nn.Module):\n"
                    "    def __init__(self):\n"
                    "        super().__init__()\n"
                    "        self.inner = torch.nn.Linear(4, 3)\n"
                    "        self.register_buffer('mean', torch.ones(3))\n"
                    "torch.save(Net(), sys.argv[1])", tmp_path / "module.pt"], check=True)
    store.publish(tmp_path / "module.pt", name="module")
    names = sorted(tensor["name"] for tensor in store.json("info", "module")["tensors"])
    assert names == ["inner.bias", "inner.weight", "mean"]
    metadata = store.json("info", "module")["files"][0]["metadata"]
    assert "__main__.Net" in metadata["globals beyond weights_only"].split()


OLD_OR_ZIP = pytest.mark.parametrize("zipped", [True, False])


def published_alone(published, path, name):
    """The tensors/ of a new model with this file, and the names in it."""
    store, mount, _ = published
    store.publish(path, name=name)
    assert (mount.version(name, 1) / path.name).read_bytes() == path.read_bytes()
    tensors = mount.tensors(name, 1)
    return tensors, sorted(entry.stem for entry in tensors.iterdir())


def assert_integers(path, tensor, name):
    assert_equal(path, tensor, name)
    assert numpy.load(path).dtype == tensor.numpy().dtype, name


@OLD_OR_ZIP
def test_quantized_tensors(published, tmp_path, zipped):
    """Their files in tensors/ have the integers. Scales and zero points of channels are tensors beside them."""
    torch.manual_seed(3)
    values = torch.randn(5, 7)
    tensors = {str(dtype)[6:]: torch.quantize_per_tensor(values, 0.05, 3, dtype)
               for dtype in (torch.qint8, torch.quint8, torch.qint32)}
    tensors["transposed"] = tensors["qint8"].t()
    tensors["channels"] = torch.quantize_per_channel(values, torch.rand(5) + 0.1, torch.arange(5), 0, torch.qint8)
    tensors["floats"] = torch.quantize_per_channel(values, torch.rand(7) + 0.1, torch.rand(7), 1, torch.quint8)
    torch.save(tensors, tmp_path / "quantized.pt", _use_new_zipfile_serialization=zipped)
    shown, names = published_alone(published, tmp_path / "quantized.pt", f"quantized-{zipped}")
    expected = {name: tensor.int_repr().contiguous() for name, tensor in tensors.items()}
    for name in "channels", "floats":
        expected[f"{name}.scales"] = tensors[name].q_per_channel_scales()
        expected[f"{name}.zero_points"] = tensors[name].q_per_channel_zero_points()
    assert names == sorted(expected)
    for name, tensor in expected.items():
        assert_integers(shown / f"{name}.npy", tensor, name)


@OLD_OR_ZIP
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_compressed_sparse_tensors(published, tmp_path, layout, zipped):
    dense = torch.tensor([[0.0, 1, 0, 2, 0], [3, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 4, 5, 0, 6]])
    sparse = dense.to_sparse(layout=getattr(torch, f"sparse_{layout}"))
    torch.save({"w": sparse}, tmp_path / "sparse.pt", _use_new_zipfile_serialization=zipped)
    shown, names = published_alone(published, tmp_path / "sparse.pt", f"{layout}-{zipped}")
    compressed, plain = (sparse.crow_indices(), sparse.col_indices()) if layout == "csr" else (
        sparse.ccol_indices(), sparse.row_indices())
    expected = {"w.compressed_indices": compressed, "w.plain_indices": plain, "w.values": sparse.values()}
    assert names == sorted(expected)
    for name, tensor in expected.items():
        assert_integers(shown / f"{name}.npy", tensor, name)


@pytest.mark.parametrize("frozen", [False, True])
def test_constants_of_a_script(published, tmp_path, frozen):
    """TorchScript keeps them apart from the parameters. A frozen script has nothing else."""
    torch.manual_seed(5)
    factor = torch.randn(3)

    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 3)

        def forward(self, x):
            return self.inner(x) * factor

    module = Scaled().eval()
    script = torch.jit.trace(module, torch.randn(2, 4))
    torch.jit.save(torch.jit.freeze(script) if frozen else script, tmp_path / "script.pt")
    shown, names = published_alone(published, tmp_path / "script.pt", f"script-{frozen}")
    constants = torch.jit.load(tmp_path / "script.pt").code_with_constants[1].const_mapping
    expected = {f"constants.{name.removeprefix('c')}": tensor for name, tensor in constants.items()}
    assert len(expected) == (3 if frozen else 1)
    if not frozen:
        expected.update(module.state_dict())
    assert names == sorted(expected)
    for name, tensor in expected.items():
        assert_equal(shown / f"{name}.npy", tensor, name)
