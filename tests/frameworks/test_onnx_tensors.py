"""Models of ONNX: their tensors are tensors of weft, and onnx and onnxruntime read the published files."""
import numpy
import onnx
import onnxruntime
import pytest
import weftlib
from library_values import PACKED, bytes_of, is_shown, tensors_of
from onnx import TensorProto, helper, numpy_helper
from weftlib import Mount, Store

RAW = [kind for kind in TensorProto.DataType.values() if kind not in (TensorProto.UNDEFINED, TensorProto.STRING)]
TYPED = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.COMPLEX64, TensorProto.COMPLEX128, TensorProto.INT32,
         TensorProto.INT64, TensorProto.UINT64, TensorProto.UINT8, TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.BFLOAT16]
LAYERS = 10


def named(name, array):
    return numpy_helper.from_array(numpy.asarray(array), name)


def model_of(nodes, initializers, width=64, **more):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, width])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, width])], initializers)
    return helper.make_model(graph, producer_name="weft", opset_imports=[helper.make_opsetid("", 17)], ir_version=9, **more)


def network(changed=None):
    """Ten layers, a constant, and an If with a subgraph on each side. onnxruntime runs it."""
    numbers = numpy.random.default_rng(3)
    nodes, initializers, value = [], [], "x"
    for layer in range(LAYERS):
        weight = numbers.normal(0, 0.1, (64, 64)).astype(numpy.float32)
        initializers.append(named(f"layer.{layer}.weight", weight + (layer == changed)))
        nodes.append(helper.make_node("MatMul", [value, f"layer.{layer}.weight"], [f"h{layer}"], name=f"/layer/{layer}/MatMul"))
        value = f"h{layer}"
    sides = []
    for side, bias in (("then", 1), ("else", -1)):
        add = helper.make_node("Add", [value, f"{side}.bias"], [f"{side}.out"], name=f"{side}.add")
        sides.append(helper.make_graph([add], side, [], [helper.make_tensor_value_info(f"{side}.out", TensorProto.FLOAT, [1, 64])],
                                       [named(f"{side}.bias", numpy.full((1, 64), bias, numpy.float32))]))
    nodes.append(helper.make_node("Constant", [], ["condition"], name="condition", value=named("", numpy.array(True))))
    nodes.append(helper.make_node("If", ["condition"], ["y"], name="choice", then_branch=sides[0], else_branch=sides[1]))
    return model_of(nodes, initializers)


def zoo():
    """Tensors of each type and in each place, equal names, and what weft hides. No library runs it."""
    numbers = numpy.random.default_rng(5)
    initializers = []
    for kind in RAW:
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        initializers.append(named(f"raw/{TensorProto.DataType.Name(kind)}", numbers.integers(0, 2, (3, 4)).astype(dtype)))
    for kind in TYPED:
        values = numbers.integers(0, 2, (2, 3)).astype(helper.tensor_dtype_to_np_dtype(kind))
        initializers.append(helper.make_tensor(f"typed/{TensorProto.DataType.Name(kind)}", kind, (2, 3), values))
    initializers += [named("none", numpy.zeros((0, 3), numpy.float32)), named("scalar", numpy.float64(2.5)),
                     named("twice", numpy.arange(4.0)), named("twice", numpy.arange(5.0)), named("texts", numpy.array(["a", "b"], object))]
    nodes = [helper.make_node("Constant", [], ["c0"], value=named("", numpy.arange(3))),
             helper.make_node("Constant", [], ["c1"], name="node", value=named("c", numpy.arange(4)))]
    function = helper.make_function("local", "Twice", [], ["y"], [
        helper.make_node("Constant", [], ["y"], name="inside", value=named("", numpy.arange(6.0)))], [helper.make_opsetid("", 17)])
    model = model_of(nodes, initializers, functions=[function])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(
        named("sparse", numpy.arange(3, dtype=numpy.float32)), named("", numpy.array([1, 5, 7])), [9]))
    model.training_info.add().initialization.initializer.append(named("seed", numpy.arange(2.0)))
    return model


@pytest.fixture(scope="module")
def published(area):
    """Models: inline, one (external data in one file), many (a file for each tensor), zoo, weights (a tensor as
    safetensors), outside (a path that leaves the directory), broken."""
    source = area / "onnx"
    for name in ("inline", "one", "many", "zoo", "weights", "outside", "broken"):
        (source / name).mkdir(parents=True)
    onnx.save_model(network(), source / "inline/net.onnx")
    onnx.save_model(network(), source / "one/net.onnx", save_as_external_data=True, location="net.onnx_data", size_threshold=0)
    onnx.save_model(network(), source / "many/net.onnx", save_as_external_data=True, all_tensors_to_one_file=False, size_threshold=0)
    onnx.save_model(zoo(), source / "zoo/zoo.onnx")
    (source / "broken/net.onnx").write_bytes((source / "inline/net.onnx").read_bytes()[:-3])
    weight = numpy_helper.to_array(network().graph.initializer[3])
    (source / "weights/w.safetensors").write_bytes(
        weftlib.safetensors_bytes({"w": ("F32", list(weight.shape), weight.tobytes())}))
    outside = network()
    for number, location in enumerate(("../inline/net.onnx", "/etc/hostname", "sub/../../x", "missing")):
        tensor = outside.graph.initializer[number]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
    (source / "outside/net.onnx").write_bytes(outside.SerializeToString())
    store = Store(area / "onnx-store")
    for path in sorted(source.iterdir()):
        store.publish(path, name=path.name)
    with Mount(store, area / "onnx-mnt") as mount:
        yield store, mount, source


@pytest.mark.parametrize("name", ["inline", "one", "many", "zoo"])
def test_each_tensor_of_a_model(published, name):
    _, mount, source = published
    path, = (source / name).glob("*.onnx")
    expected = {title: tensor for title, tensor in tensors_of(onnx.load(path, load_external_data=False)).items()
                if is_shown(tensor)}
    assert len(expected) >= LAYERS + 3
    views = mount.tensors(name, 1)
    assert sorted(view.name for view in views.iterdir()) == sorted(f"{title.replace('/', '%2F')}.npy" for title in expected)
    for title, tensor in expected.items():
        view = numpy.load(views / f"{title.replace('/', '%2F')}.npy")
        assert view.tobytes() == bytes_of(tensor, path.parent), title
        if tensor.data_type not in PACKED:
            assert view.shape == tuple(tensor.dims), title


def test_other_tensors_are_hidden_with_a_reason(published):
    store, _, source = published
    hidden = {one["name"]: one["why"] for one in store.json("info", "zoo")["files"][0]["hidden"]}
    model = tensors_of(onnx.load(source / "zoo/zoo.onnx"))
    assert sorted(hidden) == sorted(name for name, tensor in model.items() if not is_shown(tensor))
    assert hidden["raw/INT4"] == "a type that weft lacks, INT4"
    assert hidden["texts"] == "a type that weft lacks, STRING"
    assert hidden["typed/FLOAT16"] == hidden["typed/INT64"] == "its elements are numbers of variable length"


def test_no_file_outside_of_the_directory(published):
    store, mount, _ = published
    info = store.json("info", "outside")["files"][0]
    hidden = {one["name"]: one["why"] for one in info["hidden"]}
    assert sorted(hidden) == [f"layer.{number}.weight" for number in range(4)]
    assert [hidden[name].startswith("expected a file below the model's directory") for name in sorted(hidden)] == [
        True, True, True, False]
    assert hidden["layer.3.weight"] == "its external data is in no file missing of the version"
    assert len(list(mount.tensors("outside", 1).iterdir())) == LAYERS - 4 + 3


def test_external_data_behind_a_link(store, published, tmp_path):
    """An import follows a link to a regular file, so the version has the data. A model that is published alone has none,
    and weft does not look for it."""
    source = published[2] / "one"
    (tmp_path / "m").mkdir()
    (tmp_path / "m/net.onnx").write_bytes((source / "net.onnx").read_bytes())
    (tmp_path / "m/net.onnx_data").symlink_to(source / "net.onnx_data")
    store.publish(tmp_path / "m", name="both")
    store.publish(tmp_path / "m/net.onnx", name="alone")
    files = {name: store.json("info", name)["files"] for name in ("both", "alone")}
    assert [file["tensors"] for file in files["both"]] == [LAYERS + 3, 0]
    file, = files["alone"]
    assert {one["why"] for one in file["hidden"]} == {"its external data is in no file net.onnx_data of the version"}
    with Mount(store, tmp_path / "mnt") as mount:
        data = mount.version("both", 1) / "net.onnx_data"
        assert not data.is_symlink() and data.read_bytes() == (source / "net.onnx_data").read_bytes()


@pytest.mark.parametrize("name", ["inline", "one", "many", "zoo"])
def test_onnx_loads_the_published_model(published, name):
    _, mount, source = published
    path, = (source / name).glob("*.onnx")
    published_path = mount.version(name, 1) / path.name
    assert published_path.read_bytes() == path.read_bytes()
    assert onnx.load(published_path) == onnx.load(path)


@pytest.mark.parametrize("name", ["inline", "one", "many"])
def test_onnxruntime_runs_the_published_model(published, name):
    """onnxruntime maps external data."""
    _, mount, source = published
    x = numpy.random.default_rng(9).normal(size=(1, 64)).astype(numpy.float32)
    results = [onnxruntime.InferenceSession(str(directory / "net.onnx"), providers=["CPUExecutionProvider"]).run(None, {"x": x})
               for directory in (mount.version(name, 1), source / name)]
    assert results[0][0].tobytes() == results[1][0].tobytes()


def test_broken_model_is_kept(published):
    store, mount, source = published
    assert "  no tensors in net.onnx: protobuf: expected " in store.weft("info", "broken").stdout
    assert (mount.version("broken", 1) / "net.onnx").read_bytes() == (source / "broken/net.onnx").read_bytes()


def test_one_tensor_is_stored_once(published, tmp_path):
    """Wherever the model has it, and in another format. A tensor in another file of the model is a view of its own."""
    store, mount, source = published
    alone = mount.tensors("weights", 1) / "w.npy"
    assert (mount.tensors("inline", 1) / "layer.3.weight.npy").samefile(alone)
    for name in ("one", "many"):
        assert (mount.tensors(name, 1) / "layer.3.weight.npy").read_bytes() == alone.read_bytes()
    other = Store(tmp_path / "other")
    other.publish(source / "inline", name="inline")
    before = other.pack_bytes()
    for name in ("one", "many"):
        other.publish(source / name, name=name)
    assert other.pack_bytes() - before < before / 10  # the graphs, and what lies between the tensors
    store.assert_sound()


def test_versions_share_what_did_not_change(published, tmp_path):
    store, _, _ = published
    layer = 64 * 64 * 4
    for name, external in (("inline", {}), ("one", {"save_as_external_data": True, "location": "net.onnx_data", "size_threshold": 0})):
        (tmp_path / name).mkdir()
        onnx.save_model(network(changed=4), tmp_path / name / "net.onnx", **external)
        before = store.pack_bytes()
        store.publish(tmp_path / name, name=name)
        assert store.pack_bytes() - before < 2 * layer
