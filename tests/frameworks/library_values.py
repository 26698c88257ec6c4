"""The tensors of a model file as the format's own library gives them, by the names that weft gives them.

Nothing of the file runs: PyTorch's pickles get stubs in place of the classes that they name."""
import collections
import io
import pathlib
import pickle
import tempfile
import types
import zipfile

import h5py
import numpy
import onnx
import torch
from onnx import TensorProto, numpy_helper

from weftlib import TOP, run

# Types of ONNX whose elements are packed. Their views have the raw bytes.
PACKED = (TensorProto.FLOAT4E2M1, TensorProto.FLOAT6E2M3, TensorProto.FLOAT6E3M2)
LACKING = (TensorProto.UINT4, TensorProto.INT4, TensorProto.UINT2, TensorProto.INT2)
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.COMPLEX64, TensorProto.COMPLEX128)
# TensorFlow needs other versions of the libraries than these tests. scripts/campaign long makes its Python.
TENSORFLOW = TOP / "build/venv-tensorflow/bin/python"
LOAD_CHECKPOINT = """
import sys, numpy, tensorflow
stem = sys.argv[1]
reader = (tensorflow.compat.v1.train.NewCheckpointReader if stem.endswith("/") else tensorflow.train.load_checkpoint)(stem)
numpy.savez(sys.argv[2], **{name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()})
"""
# The interpreter has no values of tensors that it has not computed.
LOAD_TFLITE = """
import sys, numpy, tensorflow
interpreter, arrays, used = tensorflow.lite.Interpreter(model_path=sys.argv[1]), {}, {}
for one in interpreter.get_tensor_details():
    try:
        value = interpreter.get_tensor(one["index"])
    except ValueError:
        continue
    used[one["name"]] = used.get(one["name"], 0) + 1
    arrays[one["name"] if used[one["name"]] == 1 else f"{one['name']}~{used[one['name']]}"] = value
numpy.savez(sys.argv[2], **arrays)
"""
MODULE = ("_parameters", "_buffers", "_modules")  # of a pickled module of PyTorch; its state_dict() has no such names


def datasets(path):
    """The datasets of a file by weft's names. A hard link is a second name."""
    found = {}

    def walk(group, prefix):
        for name in group:
            if isinstance(group.get(name, getlink=True), h5py.HardLink):
                item = group[name]
                if isinstance(item, h5py.Group):
                    walk(item, f"{prefix}{name}.")
                else:
                    found[prefix + name] = numpy.asarray(item[()], item.dtype)
    with h5py.File(path) as file:
        walk(file, "")
    return found


def tensors_of_attribute(attribute, name):
    if attribute.HasField("t"):
        yield name, attribute.t
    for tensor in attribute.tensors:
        yield name, tensor
    for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
        yield from tensors_of_graph(graph, f"{name}.")


def tensors_of_nodes(nodes, prefix):
    for node in nodes:
        for attribute in node.attribute:
            yield from tensors_of_attribute(attribute, f"{prefix}{node.name or node.output[0]}.{attribute.name}")


def tensors_of_graph(graph, prefix=""):
    yield from tensors_of_nodes(graph.node, prefix)
    for tensor in graph.initializer:
        yield prefix + tensor.name, tensor
    for sparse in graph.sparse_initializer:
        yield f"{prefix}{sparse.values.name}.values", sparse.values
        yield f"{prefix}{sparse.values.name}.indices", sparse.indices


def tensors_of(model):
    """All tensors of an ONNX model by the names that weft gives them, in the order of the file."""
    places = [tensors_of_graph(model.graph)]
    places += [tensors_of_graph(info.initialization, "training_info.initialization.") for info in model.training_info]
    places += [tensors_of_nodes(function.node, f"{function.name}.") for function in model.functions]
    found, used = {}, collections.Counter()
    for place in places:
        for name, tensor in place:
            used[name] += 1
            found[name if used[name] == 1 else f"{name}~{used[name]}"] = tensor
    return found


def is_shown(tensor):
    numbers_of_fixed_length = tensor.HasField("raw_data") or tensor.data_location or tensor.data_type in FLOATS
    return tensor.data_type not in (*LACKING, TensorProto.STRING) and numbers_of_fixed_length


def bytes_of(tensor, directory):
    """The elements in memory. Those of fewer than 8 bits stay packed."""
    return tensor.raw_data if tensor.data_type in PACKED else numpy_helper.to_array(tensor, str(directory)).tobytes()


class Stub:
    """What a pickle makes of a class that PyTorch needs no value of: its arguments, items and state."""

    def __new__(cls, *arguments, **_):
        self = object.__new__(cls)
        self.arguments, self.items, self.pairs, self.state = arguments, [], {}, None
        return self

    def __init__(self, *_, **__):
        pass

    def __setstate__(self, state):
        self.state = state

    def __setitem__(self, key, value):
        self.pairs[key] = value

    def append(self, item):
        self.items.append(item)

    def extend(self, items):
        self.items.extend(items)


class Stubs(pickle.Unpickler):
    """Knows the functions that make tensors, and no other."""

    def find_class(self, module, name):
        if (module == "torch._utils" and name.startswith("_rebuild_")) or (module, name) == ("collections", "OrderedDict"):
            return super().find_class(module, name)
        if module == "torch" and name.endswith("Storage"):
            return torch.serialization.StorageType(name)
        return type(name, (Stub,), {})


STUBS = types.SimpleNamespace(__name__="stubs", Unpickler=Stubs, load=lambda file, **options: Stubs(file, **options).load())


def walk(value, name, found, within=()):
    """Adds the tensors in a value of a pickle, which may hold itself."""
    def below(pairs, of_module=False):
        for key, inner in pairs:
            own = of_module and key in MODULE
            walk(inner, name if own else f"{name}.{key}" if name else str(key), found, (*within, value))

    if any(value is outer for outer in within):
        return
    if isinstance(value, torch.Tensor):
        found[name] = value.detach().contiguous().numpy()
    elif isinstance(value, dict):
        below(value.items(), {"_parameters", "_modules"} <= value.keys())
    elif isinstance(value, (list, tuple)):
        below(enumerate(value))
    elif isinstance(value, Stub):
        below(value.pairs.items())
        below(enumerate(value.items))
        below(enumerate(value.arguments))
        below(value.state.items() if isinstance(value.state, dict) else enumerate(value.state or ()), True)


def torch_tensors(path):
    """Of a file of torch.save."""
    try:
        value = torch.load(path, "cpu", weights_only=True)
    except pickle.UnpicklingError:  # it names classes
        value = torch.load(path, "cpu", pickle_module=STUBS, weights_only=False)
    found = {}
    walk(value, "", found)
    return found


def script_tensors(path):
    """Of a TorchScript archive. torch.jit.load would run its code, so only PyTorch's reader of the archive takes part."""
    archive, found = torch._C.PyTorchFileReader(str(path)), {}

    def value_of(folder):
        def storage(identity):
            _, kind, key, _, count = identity
            data = bytearray(archive.get_record(f"{folder}/{key}"))
            assert len(data) == count * kind.dtype.itemsize
            return torch.TypedStorage(wrap_storage=torch.frombuffer(data, dtype=torch.uint8).untyped_storage() if data
                                      else torch.UntypedStorage(0), dtype=kind.dtype, _internal=True)

        unpickler = Stubs(io.BytesIO(archive.get_record(f"{folder}.pkl")))
        unpickler.persistent_load = storage
        return unpickler.load()

    walk(value_of("data"), "", found)
    walk(value_of("constants"), "constants", found)
    return found


def keras_tensors(path):
    """Of a .keras file, whose weights are an HDF5 file in a zip archive."""
    with zipfile.ZipFile(path) as archive:
        return datasets(io.BytesIO(archive.read("model.weights.h5")))


def onnx_tensors(path):
    """Of an ONNX model, without the tensors that weft hides."""
    return {name: numpy_helper.to_array(tensor, str(path.parent))
            for name, tensor in tensors_of(onnx.load(path, load_external_data=False)).items() if is_shown(tensor)}


def npz_tensors(path):
    with numpy.load(path) as arrays:
        return dict(arrays)


def tensorflow_arrays(program, path):
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory) / "tensors.npz"
        run([TENSORFLOW, "-c", program, path, out])
        return npz_tensors(out)


def bundle_tensors(stem):
    """Of a checkpoint of TensorFlow, whose names have slashes in place of weft's dots. `stem` is the path of the index
    without ".index", or a directory that has a file of this name."""
    arrays = tensorflow_arrays(LOAD_CHECKPOINT, f"{stem}/" if stem.is_dir() else stem)
    return {name.replace("/", "."): array for name, array in arrays.items()}


def tflite_tensors(path):
    """The constants of a TFLite model."""
    return tensorflow_arrays(LOAD_TFLITE, path)
