"""Checkpoints that TensorFlow itself writes: each variable is a tensor of weft, and TensorFlow loads what is published."""
import numpy
import pytest
from library_values import TENSORFLOW, bundle_tensors, tflite_tensors

from weftlib import Mount, Store, run

pytestmark = [pytest.mark.long,
              pytest.mark.skipif(not TENSORFLOW.exists(), reason="scripts/campaign long installs TensorFlow: 270 MB")]

SAVE = """
import os, sys, tensorflow as tf
directory = sys.argv[1]
os.mkdir(directory + "/saver")
tf.random.set_seed(3)
net = tf.Module()
net.layers = [tf.Variable(tf.random.normal((30, 40)), name=f"w{i}") for i in range(3)]
net.half, net.step = tf.Variable(tf.random.normal((7, 5)), dtype=tf.float32), tf.Variable(12, dtype=tf.int64)
net.brain = tf.Variable(tf.cast(tf.random.normal((6, 4)), tf.bfloat16))
net.call = tf.function(lambda x: tf.linalg.matmul(x, net.layers[0]), input_signature=[tf.TensorSpec((None, 30))])
tf.train.Checkpoint(net=net).write(directory + "/checkpoint/model")
tf.saved_model.save(net, directory + "/saved")
os.mkdir(directory + "/lite")
converter = tf.lite.TFLiteConverter.from_saved_model(directory + "/saved")
with open(directory + "/lite/net.tflite", "wb") as file:
    file.write(converter.convert())
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    tf.compat.v1.disable_resource_variables()
    with tf.compat.v1.variable_scope("scope", partitioner=tf.compat.v1.fixed_size_partitioner(3)):
        tf.compat.v1.get_variable("rows", (20, 6))
    tf.compat.v1.get_variable("plain", (4, 4))
    session.run(tf.compat.v1.global_variables_initializer())
    tf.compat.v1.train.Saver(sharded=True).save(session, directory + "/saver/model.ckpt", write_meta_graph=False)
"""

CALL = """
import sys, numpy, tensorflow
loaded = tensorflow.saved_model.load(sys.argv[1])
numpy.save(sys.argv[2], loaded.call(tensorflow.ones((2, 30))).numpy())
"""

STEMS = {"checkpoint": "model", "saved": "variables/variables", "saver": "model.ckpt"}


@pytest.fixture(scope="module")
def published(area):
    """Models: checkpoint (tf.train.Checkpoint), saved (a SavedModel), saver (of TensorFlow 1, with a variable in 3 parts),
    lite (the SavedModel as TFLite)."""
    source = area / "tensorflow"
    source.mkdir()
    run([TENSORFLOW, "-c", SAVE, source])
    store = Store(area / "tensorflow-store")
    for name in [*STEMS, "lite"]:
        store.publish(source / name, name=name)
    with Mount(store, area / "tensorflow-mnt") as mount:
        yield store, mount, source


@pytest.mark.parametrize("name", STEMS)
def test_load_checkpoint_reads_what_is_published(published, name):
    _, mount, source = published
    plain, shown = (bundle_tensors(directory / STEMS[name]) for directory in (source / name, mount.version(name, 1)))
    assert plain.keys() == shown.keys() and len(plain) >= 2
    for variable, array in plain.items():
        assert shown[variable].dtype == array.dtype and shown[variable].tobytes() == array.tobytes(), variable


@pytest.mark.parametrize("name", STEMS)
def test_each_variable_is_a_tensor(published, name):
    store, mount, source = published
    hidden = {one["name"]: one["why"] for file in store.json("info", name)["files"] for one in file.get("hidden", [])}
    assert all(why.endswith(", STRING") for why in hidden.values()), hidden
    expected = {variable: array for variable, array in bundle_tensors(source / name / STEMS[name]).items() if variable not in hidden}
    views = mount.tensors(name, 1)
    assert {view.stem for view in views.iterdir()} == expected.keys()
    for variable, array in expected.items():
        view = numpy.load(views / f"{variable}.npy")
        assert view.shape == array.shape and view.tobytes() == array.tobytes(), variable


def test_each_constant_of_tflite_is_a_tensor(published):
    store, mount, source = published
    expected, views = tflite_tensors(source / "lite/net.tflite"), mount.tensors("lite", 1)
    assert store.json("info", "lite")["files"][0]["format"] == "tflite"
    assert max(array.nbytes for array in expected.values()) == 30 * 40 * 4
    assert {view.name for view in views.iterdir()} == {f"{name.replace('/', '%2F')}.npy" for name in expected}
    for name, array in expected.items():
        view = numpy.load(views / f"{name.replace('/', '%2F')}.npy")
        assert view.shape == array.shape and view.tobytes() == array.tobytes(), name


def test_a_saved_model_runs_from_the_mount(published, tmp_path):
    _, mount, source = published
    run([TENSORFLOW, "-c", CALL, mount.version("saved", 1), tmp_path / "mounted.npy"])
    run([TENSORFLOW, "-c", CALL, source / "saved", tmp_path / "plain.npy"])
    plain = numpy.load(tmp_path / "plain.npy")
    assert plain.any()
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "mounted.npy"), plain)
