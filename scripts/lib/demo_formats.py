"""The Python part of `scripts/demo formats`: writes one network in five formats, and reads it through a mount.

    demo_formats.py write DIR      writes DIR/VERSION/FORMAT, for two versions
    demo_formats.py layer MOUNT    reads one weight from each format of version 2
    demo_formats.py view MOUNT     loads version 2 of each format through safetensors/
    demo_formats.py compare MOUNT  compares every tensor of each version and format
"""
import pathlib
import sys

import numpy
import safetensors.numpy

import network_files
from network_files import Network, Sharded

CHANGED = 3
VERSIONS = {1: Network(10, 512), 2: Network(10, 512, CHANGED)}
FORMATS = ("torch", "hdf5", "onnx", "npz", "dcp")
LAYER = f"layers.{CHANGED}.weight"


def write(directory):
    for number, network in VERSIONS.items():
        places = {name: directory / str(number) / name for name in FORMATS}
        for place in places.values():
            place.mkdir(parents=True)
        arrays = network.arrays()
        network_files.save_torch(places["torch"] / "pytorch_model.bin", arrays)
        network_files.save_hdf5(places["hdf5"] / "model.h5", arrays)
        network_files.save_onnx(places["onnx"] / "model.onnx", arrays)
        network_files.save_npz(places["npz"] / "model.npz", arrays)
    network_files.save_sharded([Sharded(directory / str(number) / "dcp", network) for number, network in VERSIONS.items()])


def tensor_of(mount, form, version, name):
    return numpy.load(mount / "tensors/net" / form / str(version) / f"{name}.npy", mmap_mode="r")


def assert_equal(got, expected, what):
    if got.dtype != expected.dtype or not numpy.array_equal(got, expected):
        sys.exit(f"{what} differs from the array that was saved")


def layer(mount):
    expected = VERSIONS[2].arrays()[LAYER]
    for form in FORMATS:
        got = tensor_of(mount, form, 2, LAYER)
        assert_equal(got, expected, f"{LAYER} of {form}")
        print(f"{form:<6} {LAYER}  {got.dtype} {got.shape}  sum {got.sum():.4f}, equal")


def view(mount):
    """With the library of safetensors. It reads no pickle."""
    expected = VERSIONS[2].arrays()
    for form in FORMATS:
        got = safetensors.numpy.load_file(mount / "safetensors/net" / form / "2/model.safetensors")
        if sorted(got) != sorted(expected):
            sys.exit(f"safetensors/ of {form} has other tensors than were saved")
        for name, tensor in expected.items():
            assert_equal(got[name], tensor, f"{name} of {form} in safetensors/")
        print(f"{form:<6} {len(got)} tensors, equal")


def compare(mount):
    count = size = 0
    for version, network in VERSIONS.items():
        for name, expected in network.arrays().items():
            for form in FORMATS:
                assert_equal(tensor_of(mount, form, version, name), expected, f"{name} of {form}, version {version}")
                count, size = count + 1, size + expected.nbytes
    print(f"{count} tensors, {size / 1e6:.1f} MB: equal to the arrays that were saved")


if __name__ == "__main__":
    {"write": write, "layer": layer, "view": view, "compare": compare}[sys.argv[1]](pathlib.Path(sys.argv[2]))
