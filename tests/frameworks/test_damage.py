"""Files of real writers, damaged 5,500 times by the unit tests of formats: see tests/unit/format/damage_test.cc."""
import os
import pickle
import subprocess

import numpy
import torch
import weftlib
from safetensors.torch import save_file

ROUNDS, DAMAGES = 4, 5500


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
    save_file({"w": state["layer.weight"]}, directory / "model.safetensors")


def test_damaged_files(tmp_path):
    write_files(tmp_path)
    program = weftlib.BUILD / "tests/unit/format/weft_test_unit_format"
    environment = {**os.environ, "WEFT_TEST_FILES": str(tmp_path), "WEFT_TEST_STEPS": str(-(-DAMAGES // ROUNDS))}
    done = subprocess.run([program, "-tc=damaged files*,files that are cut*"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "2 passed" in done.stdout
