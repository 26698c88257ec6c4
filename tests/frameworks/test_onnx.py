"""onnx refuses external data that is a link or has a second hard link."""
import os
import types

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from weftlib import Mount, Store

PLACES = ["models/org/net/1", "models/org/net/latest", "models/a/b/net/1", "datasets/org/set/1"]


def write_net(directory):
    """A model whose weights lie beside it."""
    weights = numpy_helper.from_array(numpy.arange(1 << 20, dtype=numpy.float32).reshape(1024, 1024), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1024])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1024])], [weights])
    net = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    os.makedirs(directory)
    onnx.save_model(net, directory / "net.onnx", save_as_external_data=True, location="net.onnx_data", size_threshold=0)
    return directory


@pytest.fixture(scope="module", name="shown")
def fixture_shown(tmp_path_factory):
    area = tmp_path_factory.mktemp("onnx")
    plain = write_net(area / "plain")
    store = Store(area / "store")
    for name in ("org/net", "a/b/net"):
        store.publish(plain, name=name)
    store.weft("import", plain, "--name", "org/set", "--dataset")
    with Mount(store, area / "mnt") as mount:
        yield types.SimpleNamespace(mount=mount, plain=plain)


@pytest.mark.parametrize("place", PLACES)
def test_external_data(shown, tmp_path, place):
    path = str(shown.mount / place / "net.onnx")
    net, expected = onnx.load(path), onnx.load(shown.plain / "net.onnx")
    assert net.graph.initializer[0].raw_data == expected.graph.initializer[0].raw_data
    onnx.checker.check_model(path)
    onnx.shape_inference.infer_shapes_path(path, str(tmp_path / "inferred.onnx"))
    loaded = onnx.load(path, load_external_data=False)
    onnx.external_data_helper.load_external_data_for_model(loaded, os.path.dirname(path))
    assert loaded == expected
