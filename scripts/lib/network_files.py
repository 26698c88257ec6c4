"""One network in the files of several libraries: what `scripts/demo formats` publishes and `scripts/bench local formats`
measures. Each writer imports its library itself, so that a caller needs only those that it uses."""
import pathlib
import tempfile
import typing

import numpy

RANKS = 4


class Network(typing.NamedTuple):
    """A chain of linear layers, with equal values each time. The layer `changed` differs from that of an unchanged one."""
    layers: int
    width: int
    changed: int | None = None

    def arrays(self):
        """The weights and biases by their names, in float32."""
        found = {}
        for layer in range(self.layers):
            numbers = numpy.random.default_rng([layer, layer == self.changed])
            found[f"layers.{layer}.weight"] = numbers.standard_normal((self.width, self.width), numpy.float32)
            found[f"layers.{layer}.bias"] = numbers.standard_normal(self.width, numpy.float32)
        return found


def tensors(arrays):
    import torch

    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def save_torch(path, arrays):
    import torch

    torch.save(tensors(arrays), path)


def save_npz(path, arrays):
    numpy.savez(path, **arrays)


def save_hdf5(path, arrays, **options):
    """A group for each layer. `options` are those of create_dataset."""
    import h5py

    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name.replace(".", "/"), data=array, **options)


def onnx_model(initializers, layers, width):
    """The chain as nodes. Gemm multiplies with the transposed weight, so its bytes are those of PyTorch."""
    from onnx import TensorProto, helper

    def values(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, width])

    nodes = [helper.make_node("Gemm", [f"h{layer}", f"layers.{layer}.weight", f"layers.{layer}.bias"], [f"h{layer + 1}"],
                              name=f"layers.{layer}", transB=1) for layer in range(layers)]
    graph = helper.make_graph(nodes, "network", [values("h0")], [values(f"h{layers}")], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def save_onnx(path, arrays, **options):
    """`options` are those of onnx.save, such as where external data lies."""
    import onnx

    initializers = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    weight = arrays["layers.0.weight"]
    onnx.save(onnx_model(initializers, len(arrays) // 2, len(weight)), path, **options)


class Sharded(typing.NamedTuple):
    """A checkpoint of RANKS processes. Each process writes a part of each weight, and one of them the biases."""
    directory: pathlib.Path
    network: Network
    dim: int = 0               # the dimension in which the weights are divided
    safetensors: bool = False  # shards in safetensors files


def save_sharded_rank(rank, meeting, checkpoints):
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=RANKS)
    mesh = init_device_mesh("cpu", (RANKS,))
    for checkpoint in checkpoints:
        state = {name: distribute_tensor(tensor, mesh, [Shard(checkpoint.dim) if tensor.dim() == 2 else Replicate()])
                 for name, tensor in tensors(checkpoint.network.arrays()).items()}
        path = str(checkpoint.directory)
        writer = dcp.HuggingFaceStorageWriter(path=path, save_distributed=True) if checkpoint.safetensors else None
        dcp.save(state, checkpoint_id=path, storage_writer=writer)
    dist.destroy_process_group()


def save_sharded(checkpoints):
    """All of them by the same processes: to start these takes longer than to save."""
    import torch.multiprocessing

    with tempfile.TemporaryDirectory(prefix="weft-ranks.") as directory:
        torch.multiprocessing.spawn(save_sharded_rank, (f"{directory}/meeting", checkpoints), RANKS)
