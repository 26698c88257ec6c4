"""The files of `scripts/bench local formats`: each variant of each format by its real writer, and the tensors that its own
library lists. weft takes no part. TensorFlow and Flax need other versions of the libraries than these benches: their files
are made here, and the tensors are those that were written."""
import functools
import os
import pathlib
import struct
import sys
import typing

import numpy

TOP = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOP / "scripts/lib"), str(TOP / "tests")]

import bundlelib  # noqa: E402
import network_files  # noqa: E402
import tflitelib  # noqa: E402
from network_files import Sharded, save_hdf5, save_npz, save_onnx, save_torch  # noqa: E402

SHARD_BYTES_MAX = 1 << 20  # of the .bin shards
os.environ["KERAS_BACKEND"] = "torch"


class Variant(typing.NamedTuple):
    """write(directory, network) saves the files of a version; listed(directory) is the shape and the bytes of each tensor
    that the format's own library finds in them. weft shows none of the tensors of a variant that is not `shown`. The files
    have `copies` numbers of four bytes for each number of the network."""
    form: str
    name: str
    write: typing.Callable
    listed: typing.Callable
    shown: bool = True
    copies: float = 1


def of_arrays(save, name, **options):
    """A writer of one file from a function that takes its path and the arrays."""
    return lambda directory, network: save(directory / name, network.arrays(), **options)


def only(directory):
    path, = directory.iterdir()
    return path


def listed_arrays(arrays):
    return [(tuple(array.shape), array.nbytes) for array in arrays]


def write_safetensors(path, arrays):
    from safetensors.numpy import save_file

    save_file(arrays, path)


def listed_safetensors(directory):
    from safetensors.numpy import load_file

    return listed_arrays(load_file(only(directory)).values())


def write_gguf(path, arrays):
    import gguf

    writer = gguf.GGUFWriter(path, "network")
    for name, array in arrays.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def listed_gguf(directory):
    import gguf

    return listed_arrays(tensor.data for tensor in gguf.GGUFReader(only(directory)).tensors)


def listed_npz(directory):
    with numpy.load(only(directory)) as arrays:
        return listed_arrays(arrays.values())


def write_views(path, arrays):
    """Two names of one storage, and a transposed tensor."""
    import torch

    tensors = network_files.tensors(arrays)
    torch.save(tensors | {"tied": tensors["layers.0.weight"], "turned": tensors["layers.1.weight"].t()}, path)


def write_legacy(path, arrays):
    import torch

    torch.save(network_files.tensors(arrays), path, _use_new_zipfile_serialization=False)


def write_checkpoint(path, arrays):
    """A model and the two averages of Adam for each tensor, after one step."""
    import torch

    parameters = {name: torch.nn.Parameter(tensor) for name, tensor in network_files.tensors(arrays).items()}
    adam = torch.optim.Adam(parameters.values())
    sum((parameter * parameter).sum() for parameter in parameters.values()).backward()
    state = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    adam.step()
    torch.save({"model": state, "optimizer": adam.state_dict(), "epoch": 3}, path)


def write_bin_shards(directory, network):
    """As transformers writes shards: pytorch_model-N-of-M.bin and an index."""
    import json

    from huggingface_hub import split_torch_state_dict_into_shards
    import torch

    tensors = network_files.tensors(network.arrays())
    split = split_torch_state_dict_into_shards(tensors, filename_pattern="pytorch_model{suffix}.bin",
                                               max_shard_size=SHARD_BYTES_MAX)
    for name, inside in split.filename_to_tensors.items():
        torch.save({key: tensors[key].clone() for key in inside}, directory / name)
    index = {"metadata": split.metadata, "weight_map": split.tensor_to_filename}
    (directory / "pytorch_model.bin.index.json").write_text(json.dumps(index))


def tensors_in(value):
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from tensors_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from tensors_in(inner)


def listed_torch(directory):
    import torch

    return [listed for path in directory.iterdir() if path.suffix != ".json"
            for listed in listed_arrays(tensors_in(torch.load(path, weights_only=True)))]


def write_export(path, arrays):
    """A program that adds up its parameters."""
    import torch

    class Sums(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, tensor in network_files.tensors(arrays).items():
                self.register_parameter(name.replace(".", "_"), torch.nn.Parameter(tensor))

        def forward(self, x):
            return x + sum(parameter.sum() for parameter in self.parameters())

    torch.export.save(torch.export.export(Sums(), (torch.ones(1),)), path)


def listed_export(directory):
    import torch

    return listed_arrays(tensor.detach() for tensor in torch.export.load(only(directory)).state_dict.values())


def listed_hdf5(directory):
    import h5py

    found = []
    with h5py.File(only(directory)) as file:
        file.visititems(lambda _, item: found.append(item) if isinstance(item, h5py.Dataset) else None)
        return listed_arrays(item[()] for item in found)


@functools.cache
def keras():
    import keras

    return keras


def keras_model(network):
    keras().backend.clear_session()  # each model has the same names
    layers = keras().layers
    model = keras().Sequential([keras().Input((network.width,)), *(layers.Dense(network.width) for _ in range(network.layers))])
    model.set_weights(list(network.arrays().values()))
    return model


def write_keras(directory, network):
    keras_model(network).save(directory / "model.keras")


def write_keras_weights(directory, network):
    keras_model(network).save_weights(directory / "model.weights.h5")


def write_keras_h5(directory, network):
    keras_model(network).save(directory / "model.h5")


def listed_keras(directory):
    return listed_arrays(keras().ops.convert_to_numpy(one) for one in keras().saving.load_model(only(directory)).weights)


def write_onnx_half(path, arrays):
    """Elements of float16 as numbers of variable length, which helper.make_tensor writes from values."""
    import onnx

    initializers = [onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT16, array.shape, array.astype("f2").flatten())
                    for name, array in arrays.items()]
    onnx.save(network_files.onnx_model(initializers, len(arrays) // 2, len(arrays["layers.0.weight"])), path)


def listed_onnx(directory):
    import onnx

    model = onnx.load(directory / "model.onnx")
    return listed_arrays(onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer)


def sharded(**options):
    return lambda directory, network: network_files.save_sharded([Sharded(directory, network, **options)])


def listed_dcp(directory, reader="FileSystemReader"):
    import torch.distributed.checkpoint as dcp

    metadata = getattr(dcp, reader)(path=str(directory)).read_metadata()
    return [(tuple(one.size), one.size.numel() * one.properties.dtype.itemsize) for one in metadata.state_dict_metadata.values()]


MADE = {}  # by directory: the tensors of files whose library is not there


def made(save):
    """A writer of files whose tensors listed_made() lists."""
    def write(directory, network):
        arrays = network.arrays()
        save(directory, arrays)
        MADE[directory] = listed_arrays(arrays.values())
    return write


def listed_made(directory):
    return MADE[directory]


def write_bundle(directory, arrays):
    """The variables of a SavedModel. bundlelib.write_checkpoint() also takes sums, which is slow for large arrays."""
    entries, offset = {}, 0
    (directory / "variables").mkdir()
    with open(directory / "variables/variables.data-00000-of-00001", "wb") as data:
        for name, array in arrays.items():
            key = f"{name.replace('.', '/')}/.ATTRIBUTES/VARIABLE_VALUE".encode()
            entries[key] = bundlelib.entry(1, array.shape, 0, offset, array.nbytes)
            data.write(array.tobytes())
            offset += array.nbytes
    (directory / "variables/variables.index").write_bytes(bundlelib.index(entries))


def write_tflite(directory, arrays):
    tensors = [(name, 0, array.shape, number + 1, False) for number, (name, array) in enumerate(arrays.items())]
    model = tflitelib.tflite(tensors, [b"", *(array.tobytes() for array in arrays.values())])
    (directory / "model.tflite").write_bytes(model)


def write_flax(directory, arrays):
    """A dict of arrays, as flax.serialization.to_bytes() writes it: each is an extension of msgpack."""
    def text(value):
        return b"\xd9" + bytes([len(value)]) + value.encode()

    with open(directory / "flax_model.msgpack", "wb") as file:
        file.write(b"\xde" + struct.pack(">H", len(arrays)))
        for name, array in arrays.items():
            shape = bytes([0x90 | array.ndim]) + b"".join(b"\xce" + struct.pack(">I", size) for size in array.shape)
            head = b"\x93" + shape + text(str(array.dtype)) + b"\xc6" + struct.pack(">I", array.nbytes)
            file.write(text(name) + b"\xc9" + struct.pack(">IB", len(head) + array.nbytes, 1) + head)
            file.write(array.tobytes())


EXTERNAL = {"save_as_external_data": True, "size_threshold": 0}
SAFETENSORS = Variant("safetensors", "one file", of_arrays(write_safetensors, "model.safetensors"), listed_safetensors)
TORCH = Variant("PyTorch zip", "state dict", of_arrays(save_torch, "pytorch_model.bin"), listed_torch)
NPZ = Variant("npz", "stored", of_arrays(save_npz, "model.npz"), listed_npz)
HDF5 = Variant("HDF5", "contiguous", of_arrays(save_hdf5, "model.h5"), listed_hdf5)
ONNX = Variant("ONNX", "in the file", of_arrays(save_onnx, "model.onnx"), listed_onnx)
KERAS = Variant("Keras", ".keras", write_keras, listed_keras)
GGUF = Variant("GGUF", "F32", of_arrays(write_gguf, "model.gguf"), listed_gguf)
# The formats that hold the network's arrays as they are.
SIX = (SAFETENSORS, TORCH, NPZ, HDF5, ONNX, GGUF)
VARIANTS = (
    SAFETENSORS, GGUF, TORCH,
    Variant("PyTorch zip", "model and Adam", of_arrays(write_checkpoint, "checkpoint.pt"), listed_torch, copies=3),
    Variant("PyTorch zip", "tied and transposed", of_arrays(write_views, "views.pt"), listed_torch),
    Variant("PyTorch zip", ".bin shards", write_bin_shards, listed_torch),
    Variant("PyTorch legacy", "state dict", of_arrays(write_legacy, "legacy.pt"), listed_torch),
    Variant("PyTorch export", "program", of_arrays(write_export, "model.pt2"), listed_export),
    NPZ,
    Variant("npz", "compressed", lambda directory, network: numpy.savez_compressed(directory / "model.npz", **network.arrays()),
            listed_npz, shown=False),
    HDF5,
    Variant("HDF5", "chunked", of_arrays(save_hdf5, "model.h5", chunks=True), listed_hdf5),
    Variant("HDF5", "gzip", of_arrays(save_hdf5, "model.h5", compression="gzip"), listed_hdf5, shown=False),
    KERAS,
    Variant("Keras", ".weights.h5", write_keras_weights, listed_hdf5),
    Variant("Keras", ".h5", write_keras_h5, listed_keras),
    ONNX,
    Variant("ONNX", "external, one file", of_arrays(save_onnx, "model.onnx", location="model.onnx.data", **EXTERNAL),
            listed_onnx),
    Variant("ONNX", "external, many files", of_arrays(save_onnx, "model.onnx", all_tensors_to_one_file=False, **EXTERNAL),
            listed_onnx),
    Variant("ONNX", "float16 in int32_data", of_arrays(write_onnx_half, "model.onnx"), listed_onnx, shown=False,
            copies=0.5),
    Variant("DCP", "dimension 0", sharded(), listed_dcp),
    Variant("DCP", "dimension 1", sharded(dim=1), listed_dcp),
    Variant("DCP", "safetensors shards", sharded(safetensors=True),
            lambda directory: listed_dcp(directory, "HuggingFaceStorageReader")),
    Variant("TensorFlow", "bundle", made(write_bundle), listed_made),
    Variant("TFLite", "F32", made(write_tflite), listed_made),
    Variant("Flax", "msgpack", made(write_flax), listed_made),
)
