"""The Python part of `scripts/demo formats`: one network in five formats, which share what the demo says they share."""
import sys

import pytest
from weftlib import TOP, Mount, Store, run

PROGRAM = TOP / "scripts/lib/demo_formats.py"
WHOLE = ("torch", "hdf5", "onnx", "npz")  # these have each tensor as one run of bytes
LAYER = 512 * 512 * 4                     # bytes


def demo(*words, check=True):
    return run([sys.executable, "-B", PROGRAM, *words], check=check, timeout=600)


@pytest.fixture(name="published", scope="module")
def published_network(area):
    """The store, and a mount of both versions of each format."""
    source = area / "formats-demo"
    demo("write", source)
    store = Store(area / "formats-demo-store")
    for version in "1", "2":
        for form in *WHOLE, "dcp":
            store.publish(source / version / form, name=f"net/{form}")
    with Mount(store, area / "formats-demo-mnt") as mount:
        yield store, mount


def test_every_tensor_is_equal(published):
    _, mount = published
    assert demo("layer", mount.path).stdout.count(", equal\n") == len(WHOLE) + 1
    assert demo("view", mount.path).stdout.count(" 20 tensors, equal\n") == len(WHOLE) + 1
    assert demo("compare", mount.path).stdout.startswith("200 tensors, ")


def test_a_wrong_tensor_is_noticed(published, tmp_path):
    """If version 2 stands for version 1, the changed layer differs."""
    _, mount = published
    for form in (*WHOLE, "dcp"):
        place = tmp_path / "tensors/net" / form
        place.mkdir(parents=True)
        (place / "1").symlink_to(mount.tensors(f"net/{form}", 2))
    done = demo("compare", tmp_path, check=False)
    assert done.returncode == 1 and done.stderr == "layers.3.weight of torch, version 1 differs from the array that was saved\n"


def test_formats_share_whole_tensors(published):
    store, mount = published
    inodes = {form: [(mount.tensors(f"net/{form}", version) / "layers.3.weight.npy").stat().st_ino for version in (1, 2)]
              for form in WHOLE}
    assert all(found == inodes["torch"] for found in inodes.values()) and len(set(inodes["torch"])) == 2
    owned = {model["model"]: model["owned_bytes"] for model in store.json("du")["models"]}
    assert all(owned[f"net/{form}"] < LAYER // 20 for form in WHOLE[1:]), owned
    assert owned["net/dcp"] > 10 * LAYER
