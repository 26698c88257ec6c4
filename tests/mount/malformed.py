"""Files that no reader may accept: (id, file name, bytes)."""
import json
import struct

from weftlib import raw_safetensors, safetensors_bytes

U64_MAX = (1 << 64) - 1


def header(tensors, data_bytes):
    """A safetensors file whose header is this object."""
    return raw_safetensors(json.dumps(tensors).encode(), bytes(data_bytes))


def entry(begin, end, shape=None, dtype="U8"):
    return {"dtype": dtype, "shape": [end - begin] if shape is None else shape, "data_offsets": [begin, end]}


SAFETENSORS = {
    "header longer than the file": raw_safetensors(b"{}", length=1 << 20),
    "header longer than 100,000,000 bytes": raw_safetensors(b"{}", length=100_000_001),
    "header length near 2^64": raw_safetensors(b"{}", length=U64_MAX),
    "shorter than its length field": b"\x08\0\0",
    "overlapping ranges": header({"a": entry(0, 8), "b": entry(4, 12)}, 12),
    "equal ranges": header({"a": entry(0, 8), "b": entry(0, 8)}, 8),
    "gap before the first": header({"a": entry(4, 8)}, 8),
    "gap between": header({"a": entry(0, 4), "b": entry(8, 12)}, 12),
    "bytes after the last": header({"a": entry(0, 4)}, 9),
    "range past the end": header({"a": entry(0, 16)}, 8),
    "range backwards": header({"a": entry(8, 0, shape=[8])}, 8),
    "shape times type overflows": header({"a": entry(0, 8, shape=[1 << 33, 1 << 33], dtype="F64")}, 8),
    "shape times type is too small": header({"a": entry(0, 8, shape=[1], dtype="F32")}, 8),
    "shape times type is too large": header({"a": entry(0, 8, shape=[3], dtype="F32")}, 8),
    "negative extent": header({"a": entry(0, 8, shape=[-8])}, 8),
    "fractional extent": header({"a": entry(0, 8, shape=[8.5])}, 8),
    "negative offset": header({"a": {"dtype": "U8", "shape": [8], "data_offsets": [-8, 0]}}, 8),
    "offset above 2^64": raw_safetensors(
        b'{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,18446744073709551624]}}', bytes(8)),
    "unknown type": header({"a": entry(0, 8, dtype="F31")}, 8),
    "duplicate name": raw_safetensors(
        b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}',
        bytes(8)),
    "header is a list": raw_safetensors(b"[]"),
    "header is no JSON": raw_safetensors(b'{"a":'),
    "entry is a number": header({"a": 3}, 0),
    "entry without a shape": header({"a": {"dtype": "U8", "data_offsets": [0, 4]}}, 4),
    "JSON a million deep": raw_safetensors(b'{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"),
    "JSON objects a million deep": raw_safetensors(b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000),
    "header is not UTF-8": raw_safetensors(b'{"\xff":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', bytes(4)),
}


def gguf_string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_pair(key, kind, value):
    return gguf_string(key) + struct.pack("<I", kind) + value


def gguf_tensor(name, dimensions, kind=0, offset=0, count=None):
    return (gguf_string(name) + struct.pack("<I", len(dimensions) if count is None else count)
            + b"".join(struct.pack("<Q", extent) for extent in dimensions) + struct.pack("<IQ", kind, offset))


def gguf(pairs=(), tensors=(), data=b"", version=3, pair_count=None, tensor_count=None, magic=b"GGUF"):
    """A GGUF file from parts, well-formed or not."""
    head = magic + struct.pack("<IQQ", version, len(tensors) if tensor_count is None else tensor_count,
                               len(pairs) if pair_count is None else pair_count)
    head += b"".join(pairs) + b"".join(tensors)
    return head + b"\0" * (-len(head) % 32) + data


def swapped_gguf():
    """A big-endian file of one tensor."""
    head = (b"GGUF" + struct.pack(">IQQ", 3, 1, 0) + struct.pack(">Q", 1) + b"a" + struct.pack(">I", 1)
            + struct.pack(">QIQ", 8, 0, 0))
    return head + b"\0" * (-len(head) % 32) + bytes(32)


ALIGNMENT = "general.alignment"
F32 = gguf_tensor("a", [8])
GGUF = {
    "tensor count near 2^64": gguf(tensors=[F32], data=bytes(32), tensor_count=U64_MAX),
    "pair count near 2^64": gguf(pair_count=U64_MAX),
    "key length near 2^64": gguf(pairs=[struct.pack("<Q", U64_MAX - 3) + b"abc"], pair_count=1),
    "text length near 2^64": gguf(pairs=[gguf_pair("k", 8, struct.pack("<Q", U64_MAX - 7))]),
    "array length near 2^64": gguf(pairs=[gguf_pair("k", 9, struct.pack("<IQ", 4, U64_MAX // 4 + 2))]),
    "arrays in arrays, deep": gguf(pairs=[gguf_pair("k", 9, struct.pack("<IQ", 9, 1) * 100_000)]),
    "name length near 2^64": gguf(tensors=[struct.pack("<Q", U64_MAX)]),
    "dimensions near 2^32": gguf(tensors=[gguf_tensor("a", [8], count=(1 << 32) - 1)], data=bytes(32)),
    "shape overflows": gguf(tensors=[gguf_tensor("a", [1 << 40, 1 << 40])], data=bytes(32)),
    "shape longer than the file": gguf(tensors=[gguf_tensor("a", [1 << 20])], data=bytes(32)),
    "no whole blocks": gguf(tensors=[gguf_tensor("a", [8], kind=8)], data=bytes(34)),
    "offset past the end": gguf(tensors=[gguf_tensor("a", [8], offset=1 << 40)], data=bytes(32)),
    "offset near 2^64": gguf(tensors=[gguf_tensor("a", [8], offset=U64_MAX - 31)], data=bytes(32)),
    "alignment 0": gguf(pairs=[gguf_pair(ALIGNMENT, 4, struct.pack("<I", 0))], tensors=[F32], data=bytes(32)),
    "alignment 24": gguf(pairs=[gguf_pair(ALIGNMENT, 4, struct.pack("<I", 24))], tensors=[F32], data=bytes(32)),
    "alignment is a text": gguf(pairs=[gguf_pair(ALIGNMENT, 8, gguf_string("32"))], tensors=[F32], data=bytes(32)),
    "unknown tensor type": gguf(tensors=[gguf_tensor("a", [8], kind=999)], data=bytes(32)),
    "unknown value type": gguf(pairs=[gguf_pair("k", 99, bytes(8))]),
    "version 1": gguf(version=1),
    "version 4": gguf(version=4),
    "duplicate tensor": gguf(tensors=[F32, gguf_tensor("a", [8], offset=32)], data=bytes(64)),
    "name is not UTF-8": gguf(tensors=[gguf_tensor(b"\xff", [8])], data=bytes(32)),
}


def npy(text, data=b"", version=(1, 0), length=None):
    raw = text.encode("latin-1")
    form = "<H" if version[0] == 1 else "<I"
    return b"\x93NUMPY" + bytes(version) + struct.pack(form, len(raw) if length is None else length) + raw + data


def npy_text(descr="'<f4'", order="False", shape="(2,)"):
    return "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n" % (descr, order, shape)


NPY = {
    "header longer than the file": npy(npy_text(), length=65535),
    "header length near 2^32": npy(npy_text(), version=(2, 0), length=(1 << 32) - 1),
    "too few bytes": npy(npy_text(), bytes(7)),
    "shape overflows": npy(npy_text(shape="(%d, %d)" % (1 << 40, 1 << 40)), bytes(8)),
    "extent above 2^64": npy(npy_text(shape="(%d,)" % (1 << 70)), bytes(8)),
    "negative extent": npy(npy_text(shape="(-2,)"), bytes(8)),
    "no dictionary": npy("import os\n", bytes(8)),
    "key is missing": npy("{'descr': '<f4', 'shape': (2,), }\n", bytes(8)),
    "version 9": npy(npy_text(), bytes(8), version=(9, 0)),
    "parentheses a hundred thousand deep": npy(npy_text(shape="(" * 100_000), version=(2, 0)),
}


# Files that their own library reads and weft does not, with a part of the reason.
READABLE = {
    "big-endian": ("a.gguf", swapped_gguf(), "a big-endian one"),
    "bytes behind the last tensor": ("a.gguf", gguf(tensors=[F32], data=bytes(32 + 64)), "64 trailing bytes"),
    "five dimensions": ("a.gguf", gguf(tensors=[gguf_tensor("a", [8, 1, 1, 1, 1])], data=bytes(32)), "dimensions"),
    "offset that is not aligned": ("a.gguf", gguf(tensors=[gguf_tensor("a", [8], offset=4)], data=bytes(64)), "offset"),
    "overlapping tensors": (
        "a.gguf", gguf(tensors=[gguf_tensor("a", [16]), gguf_tensor("b", [8], offset=32)], data=bytes(64)), "overlaps"),
    "a gap between tensors": (
        "a.gguf", gguf(tensors=[gguf_tensor("a", [8]), gguf_tensor("b", [8], offset=64)], data=bytes(96)), "a gap"),
    "several arrays": ("a.npy", npy(npy_text(), bytes(8)) * 2, "bytes of data"),
    "a byte behind the array": ("a.npy", npy(npy_text(), bytes(9)), "bytes of data"),
    "key twice": ("a.npy", npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", bytes(8)),
                  "a second 'descr'"),
    "a type of several fields": ("a.npy", npy(npy_text("[('x', '<f4'), ('y', '<i4')]", shape="(1,)"), bytes(8)),
                                 "structured type"),
    "fields as one text": ("a.npy", npy(npy_text("'<f4,<f4'", shape="(1,)"), bytes(8)), "a type of numpy"),
    "an escape in a text": ("a.npy", npy(npy_text(r"[('a\n', '<f4')]"), bytes(8)), "without escapes"),
    "a tensor with 40 dimensions": ("a.safetensors", header({"a": entry(0, 1, shape=[1] * 40)}, 1), "dimensions"),
    "a tensor with a long name": ("a.safetensors", header({"n" * 5000: entry(0, 1)}, 1), "a name"),
    "a name longer than NAME_MAX with its suffix": (
        "a.safetensors", header({"x" * 252: entry(0, 4)}, 4), "at most 255 bytes, got 256"),
    "a name of 4,096 bytes": ("a.safetensors", header({"x" * 4096: entry(0, 4)}, 4), "at most 255 bytes"),
    "a name that escapes make long": ("a.safetensors", header({"/" * 84: entry(0, 4)}, 4), "at most 255 bytes, got 256"),
    "a name of GGUF that is long": (
        "a.gguf", gguf(tensors=[gguf_tensor("x" * 252, [8])], data=bytes(32)), "at most 255 bytes, got 256"),
    "a file name that escapes make long": ("%" * 90 + ".npy", npy(npy_text(), bytes(8)), "at most 255 bytes"),
    "a layer whose container has a long name": (
        "a.safetensors", header({"l" * 248 + ".x": entry(0, 4)}, 4), "its container's name would have 260 bytes"),
}

# Files that claim a format by their first bytes alone, with a part of the reason why weft cannot read them.
UNDER_OTHER_NAMES = {
    "big-endian": ("sha256-0123", swapped_gguf(), "a big-endian one"),
    "bytes behind the last tensor": (
        "model.bin", gguf(tensors=[F32], data=bytes(32 + 64)), "64 trailing bytes"),
    "cut short": ("model.bin", gguf(tensors=[F32], data=bytes(16)), "bytes of data"),
    "a byte behind the array": ("array", npy(npy_text(), bytes(9)), "bytes of data"),
}


def cases():
    """Every malformed file as (id, file name, bytes)."""
    for suffix, files in (("safetensors", SAFETENSORS), ("gguf", GGUF), ("npy", NPY)):
        for label, data in files.items():
            yield f"{suffix}: {label}", f"bad.{suffix}", data


def whole_files():
    """Small well-formed files, to be cut short at every byte."""
    return {
        "cut.safetensors": header({"__metadata__": {"k": "v"}, "a": entry(0, 4), "b": entry(4, 8)}, 8),
        "cut.gguf": gguf(pairs=[gguf_pair("k", 8, gguf_string("v")), gguf_pair(ALIGNMENT, 4, struct.pack("<I", 32))],
                         tensors=[gguf_tensor("a", [2]), gguf_tensor("b", [2], offset=32)], data=bytes(40)),
        "cut.npy": npy(npy_text(), bytes(8)),
    }
