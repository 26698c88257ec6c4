"""Files of real writers, damaged 5,500 times by the unit tests of formats: see tests/unit/format/damage_test.cc."""
import os
import pickle
import shutil
import subprocess
import zipfile

import bundlelib
import h5py
import numpy
import onnx
import torch
import torch.distributed.checkpoint as dcp
import weftlib
import zoo
from safetensors.torch import save_file

ROUNDS, DAMAGES = 4, 5500
FORMATS = {"safetensors", "gguf", "npy", "npz", "torch zip", "torch legacy", "torch export", "pickle", "onnx", "dcp", "hdf5", "keras",
           "tf bundle", "tflite", "flax"}


def write_files(directory):
    torch.manual_seed(3)
    base = torch.randn(16, 12)
    state = {"base": base, "tied": base, "row": base[3], "transposed": base.t(), "layer.weight": torch.randn(30, 10)}
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(5, 4)).sum().backward()
    optimizer.step()
    nested = {"state_dict": model.state_dict(), "optimizer": optimizer.state_dict(), "sparse": torch.eye(4).to_sparse(),
              "numpy": numpy.arange(6)}
    for name, value in (("state", state), ("nested", nested)):
        torch.save(value, directory / f"{name}.pt")
        for protocol in (2, 4):
            torch.save(value, directory / f"{name}-{protocol}.bin", _use_new_zipfile_serialization=False,
                       pickle_protocol=protocol)
    torch.jit.save(torch.jit.trace(model.eval(), torch.randn(2, 4)), directory / "script.pt")
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    numpy.savez(directory / "arrays.npz", **arrays)
    numpy.savez_compressed(directory / "compressed.npz", **arrays)
    (directory / "arrays.pkl").write_bytes(pickle.dumps(arrays, protocol=5))
    with h5py.File(directory / "old.h5", "w") as old, h5py.File(directory / "new.hdf5", "w", libver="latest") as new:
        for file in old, new:
            for name, array in arrays.items():
                file[f"group/{name}"] = array
            file.create_dataset("tiles", data=arrays["layer.weight"], chunks=(7, 4))
            file.create_dataset("gzip", data=arrays["layer.weight"], compression="gzip")
    with zipfile.ZipFile(directory / "model.keras", "w") as archive:
        archive.write(directory / "old.h5", "model.weights.h5")
    initializers = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    net = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], initializers))
    onnx.save_model(net, directory / "inline.onnx")
    onnx.save_model(net, directory / "net.onnx", save_as_external_data=True, location="net.onnx_data", size_threshold=0)
    bundle = {f"net/{name}": (1, array, ()) for name, array in arrays.items()}
    parts = {"parts": (1, arrays["layer.weight"], [((0, 10), (0, 10)), ((10, 20), (0, 10))])}
    bundlelib.write_checkpoint(directory / "variables", {**bundle, **parts})
    dcp.save({"state": state}, checkpoint_id=str(directory), no_dist=True)
    torch.export.save(torch.export.export(model.eval(), (torch.ones(2, 4),)), directory / "program.pt2")
    zoo.write_gguf_zoo(directory / "gguf")
    shutil.move(next((directory / "gguf").iterdir()), directory)
    (directory / "gguf").rmdir()
    numpy.save(directory / "array.npy", arrays["layer.weight"])
    seeds = weftlib.TOP / "tests/fuzz/corpus"
    shutil.copy(seeds / "tflite/tensors", directory / "model.tflite")
    shutil.copy(seeds / "flax/state", directory / "flax_model.msgpack")
    save_file({"w": state["layer.weight"]}, directory / "model.safetensors")


def test_damaged_files(store, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    write_files(files)
    store.publish(files, name="whole")
    assert {file["format"] for file in store.json("info", "whole")["files"] if file["tensors"] > 0} == FORMATS
    program = weftlib.BUILD / "tests/unit/format/weft_test_unit_format"
    environment = {**os.environ, "WEFT_TEST_FILES": str(files), "WEFT_TEST_STEPS": str(-(-DAMAGES // ROUNDS))}
    done = subprocess.run([program, "-tc=damaged files*,files that are cut*"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "2 passed" in done.stdout
