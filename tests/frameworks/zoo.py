"""Small files that hold every element type and every odd shape that a format has."""
import gguf
import numpy

import weftlib

SHAPES = {"matrix": (3, 5), "vector": (7,), "scalar": (), "none": (0,), "hollow": (4, 0, 2), "deep": (1, 2, 1, 3, 1, 2)}


def write_safetensors_zoo(directory):
    """zoo.safetensors: each type that safetensors and weft share, in each shape."""
    tensors = {}
    for dtype, bits in weftlib.SAFETENSORS_BITS.items():
        for label, shape in SHAPES.items():
            count = weftlib.elements(shape)
            data = weftlib.random_bytes(count * bits // 8, seed=f"{dtype} {label}")
            if dtype == "BOOL":
                data = bytes(byte & 1 for byte in data)
            tensors[f"{dtype.lower()}.{label}"] = (dtype, shape, data)
    directory.mkdir()
    (directory / "zoo.safetensors").write_bytes(weftlib.safetensors_bytes(tensors, metadata={"kind": "zoo"}))
    return directory


def write_gguf_zoo(directory):
    """zoo.gguf, by the reference writer: plain types, and quantised ones as raw blocks."""
    directory.mkdir()
    writer = gguf.GGUFWriter(directory / "zoo.gguf", "llama")
    writer.add_block_count(1)
    writer.add_array("tokenizer.ggml.tokens", ["<s>", "a", "ü"])
    numbers = numpy.random.default_rng(3).normal(size=(6, 64)).astype(numpy.float32)
    writer.add_tensor("token_embd.weight", numbers)
    writer.add_tensor("blk.0.attn_norm.weight", numbers[0])
    writer.add_tensor("blk.0.attn_q.weight", numbers.astype(numpy.float16))
    for kind in (gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0):
        blocks = gguf.quants.quantize(numbers + kind.value, kind)
        writer.add_tensor(f"blk.0.ffn_{kind.name.lower()}.weight", blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return directory


def npy_arrays():
    """Name -> array: the kinds that numpy writes, both orders, both endians."""
    numbers = numpy.random.default_rng(4)
    return {
        "f64": numbers.normal(size=(4, 6)),
        "fortran": numpy.asfortranarray(numbers.normal(size=(4, 6)).astype(numpy.float32)),
        "big_endian": numbers.normal(size=(9,)).astype(">f4"),
        "complex128": numbers.normal(size=(2, 3)) + 1j * numbers.normal(size=(2, 3)),
        "bool": numbers.integers(0, 2, size=(11,)).astype(bool),
        "scalar": numpy.array(3.5),
        "hollow": numpy.zeros((0, 3), dtype=numpy.int16),
        "text": numpy.array(["one", "three"]),
    }


def write_npy_zoo(directory):
    (directory / "arrays").mkdir(parents=True)
    for name, array in npy_arrays().items():
        numpy.save(directory / "arrays" / f"{name}.npy", array)
    return directory
