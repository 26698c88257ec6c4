"""numpy opens every tensor view, and finds the source's bits in it."""
import ml_dtypes
import numpy
import pytest
import torch
from safetensors import safe_open

import weftlib
import zoo

# How numpy names what a view holds. numpy lacks the last three: their raw bytes are viewed by ml_dtypes.
NUMPY_TYPES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
               "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "F32": "float32", "F64": "float64",
               "C64": "complex64", "BF16": "V2", "F8_E4M3": "V1", "F8_E5M2": "V1"}
ML_TYPES = {"BF16": (ml_dtypes.bfloat16, torch.bfloat16), "F8_E4M3": (ml_dtypes.float8_e4m3fn, torch.float8_e4m3fn),
            "F8_E5M2": (ml_dtypes.float8_e5m2, torch.float8_e5m2)}


def open_view(tensors, name):
    """numpy's memory map of a tensor view; arrays without bytes cannot be mapped by numpy."""
    path = tensors / f"{name}.npy"
    array = numpy.load(path)
    return numpy.load(path, mmap_mode="r") if array.size else array


def layered_path(layers, name):
    *directories, leaf = name.split(".")
    return layers.joinpath(*directories, f"{leaf}.npy")


@pytest.mark.parametrize("dtype", NUMPY_TYPES)
def test_each_type(gallery, dtype):
    for label, shape in zoo.SHAPES.items():
        name = f"{dtype.lower()}.{label}"
        view = open_view(gallery.tensors("zoo/safetensors", 1), name)
        expected = weftlib.random_bytes(weftlib.elements(shape) * weftlib.SAFETENSORS_BITS[dtype] // 8,
                                        seed=f"{dtype} {label}")
        if dtype == "BOOL":
            expected = bytes(byte & 1 for byte in expected)
        assert view.dtype == numpy.dtype(NUMPY_TYPES[dtype]), name
        assert view.shape == shape, name
        assert view.tobytes() == expected, name


@pytest.mark.parametrize("dtype", ML_TYPES)
def test_ml_dtypes_views(gallery, dtype):
    """The values, not only the bytes, of the types that numpy lacks."""
    ml_type, torch_type = ML_TYPES[dtype]
    name = f"{dtype.lower()}.matrix"
    view = open_view(gallery.tensors("zoo/safetensors", 1), name).view(ml_type)
    with safe_open(gallery.sources["zoo/safetensors", 1] / "zoo.safetensors", "pt") as source:
        tensor = source.get_tensor(name)
    assert tensor.dtype == torch_type
    numpy.testing.assert_array_equal(view.astype(numpy.float32), tensor.to(torch.float32).numpy())


@pytest.mark.parametrize("number", [1, 2])
def test_every_tensor_of_a_real_model(gallery, number):
    layers, tensors = gallery.layers("org/minilm", number), gallery.tensors("org/minilm", number)
    with safe_open(gallery.sources["org/minilm", number] / "model.safetensors", "numpy") as source:
        names = list(source.keys())
        assert len(names) >= 103
        assert sorted(path.name for path in tensors.iterdir()) == sorted(f"{n}.npy" for n in names)
        for name in names:
            expected = source.get_tensor(name)
            flat = numpy.load(tensors / f"{name}.npy", mmap_mode="r")
            layered = numpy.load(layered_path(layers, name), mmap_mode="r")
            for view in (flat, layered):
                assert view.dtype == expected.dtype and view.shape == expected.shape
                assert view.tobytes() == expected.tobytes(), name


def test_published_npy_files(gallery):
    """npy files are themselves, and their array is a tensor as others are."""
    version = gallery.path("zoo/npy", 1)
    for name, array in zoo.npy_arrays().items():
        got = numpy.load(version / "arrays" / f"{name}.npy")
        assert got.dtype == array.dtype and got.tobytes() == array.tobytes(), name


def test_views_of_npy_files(gallery):
    """The view of an npy's array keeps what its header said: order, endianness, type."""
    views = {path.stem: path for path in gallery.tensors("zoo/npy", 1).rglob("*.npy")}
    for name, array in zoo.npy_arrays().items():
        matching = [path for stem, path in views.items() if stem == name or stem.endswith("." + name)]
        assert len(matching) == 1, (name, sorted(views))
        got = numpy.load(matching[0])
        assert got.dtype == array.dtype and got.shape == array.shape, name
        numpy.testing.assert_array_equal(got, array)
