"""gguf's reader over the mount, and the raw blocks of quantised types as arrays."""
import gguf
import numpy


def readers(gallery):
    return (gguf.GGUFReader(gallery.sources["zoo/gguf", 1] / "zoo.gguf"),
            gguf.GGUFReader(gallery.path("zoo/gguf", 1) / "zoo.gguf"))


def test_reader(gallery):
    source, mounted = readers(gallery)
    assert list(mounted.fields) == list(source.fields)
    assert [(t.name, t.tensor_type, list(t.shape)) for t in mounted.tensors] == \
        [(t.name, t.tensor_type, list(t.shape)) for t in source.tensors]
    for expected, got in zip(source.tensors, mounted.tensors, strict=True):
        assert got.data.dtype == expected.data.dtype and got.data.tobytes() == expected.data.tobytes(), got.name


def test_views_are_raw_blocks(gallery):
    """A quantised tensor's view is an array of blocks, its last dimension counts them."""
    source, _ = readers(gallery)
    kinds = set()
    for tensor in source.tensors:
        view = numpy.load(gallery.tensors("zoo/gguf", 1) / f"{tensor.name}.npy", mmap_mode="r")
        block_elements, block_bytes = gguf.GGML_QUANT_SIZES[tensor.tensor_type]
        shape = [int(extent) for extent in reversed(tensor.shape)]  # GGUF writes the innermost first
        shape[-1] //= block_elements
        assert list(view.shape) == shape, tensor.name
        assert view.itemsize == block_bytes
        assert view.tobytes() == tensor.data.tobytes(), tensor.name
        kinds.add(tensor.tensor_type.name)
    assert kinds == {"F32", "F16", "Q8_0", "Q4_0"}


def test_dequantised_values(gallery):
    """From the blocks of a view come the numbers that the reference takes from the file."""
    source, _ = readers(gallery)
    for tensor in source.tensors:
        if tensor.tensor_type in (gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0):
            view = numpy.load(gallery.tensors("zoo/gguf", 1) / f"{tensor.name}.npy")
            blocks = numpy.frombuffer(view.tobytes(), numpy.uint8).reshape(tensor.data.shape)
            numpy.testing.assert_array_equal(gguf.quants.dequantize(blocks, tensor.tensor_type),
                                             gguf.quants.dequantize(tensor.data, tensor.tensor_type))
