"""Checkpoints of Flax: each array is a tensor, and Flax loads what is published."""
import numpy
import pytest
from library_values import TENSORFLOW, npz_tensors

from weftlib import Mount, run

pytestmark = [pytest.mark.long, pytest.mark.skipif(not TENSORFLOW.exists(), reason="scripts/campaign long installs Flax")]

SAVE = """
import sys, jax, numpy, optax
from flax import serialization
keys = jax.random.split(jax.random.key(3), 4)
params = {f"layer_{i}": {"kernel": jax.random.normal(keys[i], (30, 40)), "bias": jax.numpy.zeros(40)} for i in range(3)}
tree = {"params": params, "opt_state": optax.adam(0.1).init(params), "half": jax.random.normal(keys[3], (5, 7)).astype("bfloat16"),
        "step": 12, "rate": numpy.float32(0.5), "turned": numpy.arange(12.0).reshape(3, 4).T, "none": numpy.zeros((0, 3)),
        "flags": numpy.array([True, False])}
open(sys.argv[1], "wb").write(serialization.to_bytes(tree))
"""

# npz has no bfloat16: its bytes, with two for each element.
LOAD = """
import sys, numpy
from flax import serialization
arrays = {}
def walk(value, name):
    if isinstance(value, dict):
        for key, inner in value.items():
            walk(inner, f"{name}.{key}" if name else key)
    elif not isinstance(value, int):
        arrays[name] = numpy.asarray(value).view("u2") if str(value.dtype) == "bfloat16" else numpy.asarray(value)
walk(serialization.msgpack_restore(open(sys.argv[1], "rb").read()), "")
numpy.savez(sys.argv[2], **arrays)
"""


def arrays_of(path, tmp_path):
    run([TENSORFLOW, "-c", LOAD, path, tmp_path / "arrays.npz"])
    return npz_tensors(tmp_path / "arrays.npz")


def test_each_array_of_a_checkpoint_is_a_tensor(store, tmp_path):
    source = tmp_path / "flax_model.msgpack"
    run([TENSORFLOW, "-c", SAVE, source])
    store.publish(source, name="net")
    expected = arrays_of(source, tmp_path)
    assert len(expected) >= 6 + 12 + 5
    file, = store.json("info", "net")["files"]
    assert file["format"] == "flax" and file["coverage"] == 1
    with Mount(store, tmp_path / "mnt") as mount:
        views = mount.tensors("net", 1)
        assert {view.stem for view in views.iterdir()} == expected.keys()
        for name, array in expected.items():
            view = numpy.load(views / f"{name}.npy")
            assert view.shape == array.shape and view.tobytes() == array.tobytes(), name
        loaded = arrays_of(mount.version("net", 1) / source.name, tmp_path)
    assert loaded.keys() == expected.keys() and all(numpy.array_equal(loaded[name], array) for name, array in expected.items())
    store.assert_sound()
