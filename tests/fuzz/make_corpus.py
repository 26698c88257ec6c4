#!/usr/bin/env python3
"""Writes the seed corpora of the format targets, corpus/TARGET/*, and one seed of the peers' messages. Their output is
committed; run it after a change, with a Python that has numpy and h5py 3.16."""

import base64
import hashlib
import io
import json
import pathlib
import struct
import sys
import tarfile
import zipfile

CORPUS = pathlib.Path(__file__).parent / "corpus"
sys.path.insert(0, str(CORPUS.parent.parent))

import bundlelib  # noqa: E402
from tflitelib import tflite  # noqa: E402


def write(target, name, data):
    path = CORPUS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def safetensors(header, data=b""):
    if not isinstance(header, bytes):
        header = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(header)) + header + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(keys=(), tensors=(), data=b"", version=3, alignment=32):
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for name, kind, value in keys:
        out += text(name) + struct.pack("<I", kind) + value
    for name, dimensions, kind, offset in tensors:
        out += text(name) + struct.pack("<I", len(dimensions))
        out += b"".join(struct.pack("<Q", d) for d in dimensions) + struct.pack("<IQ", kind, offset)
    return out + bytes(-len(out) % alignment) + data


def npy(header, data=b"", major=1):
    header = header.encode("latin1")
    return b"\x93NUMPY" + bytes([major, 0]) + struct.pack("<H" if major == 1 else "<I", len(header)) + header + data


def array(kind, count, values):
    return struct.pack("<IQ", kind, count) + values


def write_etcd():
    target = "etcd"
    header = {"cluster_id": "14841639068965178418", "revision": "7", "raft_term": "2"}
    item = {"key": "Zm9v", "create_revision": "2", "mod_revision": "3", "version": "2", "value": "YmFy"}
    answers = {
        "range": {"header": header, "kvs": [item], "more": True, "count": "2"},
        "txn": {"header": header, "succeeded": True,
                "responses": [{"response_put": {}}, {"response_range": {"kvs": [item]}}]},
        "lease": {"header": header, "ID": "7587899066576754188", "TTL": "5"},
        "watch": {"result": {"header": header, "fragment": True,
                             "events": [{"kv": item}, {"type": "DELETE", "kv": {"key": "Zm9v"}}]}},
        "compacted": {"result": {"header": header, "canceled": True, "compact_revision": "3"}},
        "error": {"error": "etcdserver: no leader", "message": "etcdserver: no leader", "code": 14},
        "login": {"header": header, "token": "abc.7"},
    }
    for name, answer in answers.items():
        write(target, name, json.dumps(answer, separators=(",", ":")).encode())
    write(target, "key", b"v/org/bert@000000000000000a")


def write_hub_request():
    form = b"\n\nnode:8080\napplication/x-www-form-urlencoded\npaths=a&paths=b+c%2Fd&expand=false"
    write("hub_request", "form", b"/api/models/org/bert/paths-info/main" + form)
    write("hub_request", "json", b"/api/datasets/c4/paths-info/1\n\n[::1]:80\napplication/json\n" + b'{"paths":["a","b"]}')
    write("hub_request", "tree", b"/api/models/org/bert/tree/refs%2Fpr%2F1/a%20b?\nrecursive=true&cursor=1.2%3Aa%2Fb\nh\n\n")
    write("hub_request", "file", b"/datasets/org/c4/resolve/main/sub/model.safetensors\n\n\n\n")
    write("hub_request", "parent", b"/org/bert/resolve/main/..%2fx\n\n\n\n")
    write("hub_request", "refs", b"/api/models/bert/refs\n")


def write_hub_listing():
    target = "hub_listing"
    sha1, sha256 = "a" * 40, "b" * 64
    git = {"type": "file", "path": "config.json", "size": 7, "oid": sha1}
    lfs = {"type": "file", "path": "sub/model.safetensors", "size": 9, "oid": sha1, "xetHash": sha256,
           "lfs": {"oid": sha256, "size": 9, "pointerSize": 134}}
    directory = {"type": "directory", "path": "sub", "size": 0, "oid": sha1}
    pages = [json.dumps(page, separators=(",", ":")).encode() for page in ([git, directory], [lfs])]
    write(target, "pages", b"\0".join(pages))
    write(target, "twice", b"\0".join([pages[1], pages[1]]))
    write(target, "escape", pages[0].replace(b"config.json", b"../config.json"))
    write(target, "inside", json.dumps([git, dict(git, path="config.json/x")]).encode())
    info = {"id": "org/bert", "private": False, "gated": "auto", "siblings": [{"rfilename": "config.json"}], "sha": sha1}
    write(target, "revision", json.dumps(info).encode())
    write(target, "link", b'</a?cursor=x>; rel="prev", </b?cursor=y>; title="c"; rel="next"')
    write(target, "name", b"hf:datasets/org/c4@refs/pr/1")


def write_safetensors():
    target = "safetensors"
    write(target, "empty", safetensors({}))
    write(target, "two", safetensors({"__metadata__": {"format": "pt"}, "a": entry("F32", [2], 0, 8),
                                      "b.weight": entry("BF16", [1, 2], 8, 12)}, b"0123456789ab"))
    write(target, "small_types", safetensors({"f4": entry("F4", [4], 0, 2), "f6": entry("F6_E2M3", [4], 2, 5),
                                              "f8": entry("F8_E4M3", [], 5, 6), "b": entry("BOOL", [0, 3], 6, 6)}, b"012345"))
    write(target, "overlap", safetensors({"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 3, 7)}, b"0123456"))
    write(target, "unknown_key", safetensors({"a": dict(entry("U8", [1], 0, 1), x=[{"y": None}, 1.5, -1, True])}, b"0"))
    write(target, "overflow", safetensors({"a": entry("F64", [2**63, 2**63], 0, 0)}))
    write(target, "deep", safetensors(b'{"a":{"x":' + b"[" * 200))
    sharding = json.dumps({"a": {"saved_offsets": [0]}, "b": {"saved_offsets": [0, 2**64 - 1]}})
    write(target, "sharded", safetensors({"__metadata__": {"DCP_SHARDING_INFO": sharding}, "a": entry("U8", [4], 0, 4),
                                          "b": entry("U8", [2, 1], 4, 6)}, b"012345"))
    write(target, "lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")


def write_sharded_safetensors():
    """The target takes a shard as a byte with its file, its name, its width and its dimensions, and then a begin and a size
    for each dimension."""
    target = "sharded_safetensors"

    def shard(file, name, *places, wide=0):
        return bytes([file | "abcd".index(name) << 2 | wide << 4 | len(places) << 5, *(one for place in places for one in place)])

    rows = [shard(0, "a", (0, 2), (0, 3)), shard(1, "a", (2, 1), (0, 3))]
    columns = [shard(0, "b", (0, 2), (0, 3), wide=1), shard(1, "b", (0, 2), (3, 2), wide=1)]
    tiles = [shard(2 * y + x, "c", (3 * y, 3 - y), (2 * x, 2)) for y in (0, 1) for x in (0, 1)]
    write(target, "rows", b"".join(rows + columns + tiles + [shard(3, "d", (0, 5))]))
    write(target, "hole", rows[0] + shard(1, "a", (3, 1), (0, 3)) + columns[1])
    write(target, "overlap", rows[0] + shard(1, "a", (1, 2), (0, 3)))
    write(target, "types", rows[0] + shard(1, "a", (2, 1), wide=1) + shard(0, "b") + shard(1, "b"))
    write(target, "far", shard(0, "a", (0, 1)) + shard(1, "a", (255, 2)) + shard(0, "b", (0, 0), (0, 0)) + shard(1, "b", (254, 1), (0, 0)))


def write_index():
    target = "safetensors_index"
    write(target, "two", b'{"metadata":{"total_size":12},"weight_map":{"a":"x-1.safetensors","b":"x-2.safetensors"}}')
    write(target, "escape", b'{"weight_map":{"a":"../x","\\u00fc":"y"}}')
    write(target, "twice", b'{"weight_map":{"a":"x","a":"y"}}')
    write(target, "deep", b'{"metadata":' + b"[" * 200)


def write_gguf():
    target = "gguf"
    keys = [("general.architecture", 8, text("llama")), ("general.alignment", 4, struct.pack("<I", 64)),
            ("u8", 0, b"\xff"), ("i16", 3, b"\xff\xff"), ("bool", 7, b"\1"), ("f32", 6, struct.pack("<f", 1.5)),
            ("f64", 12, struct.pack("<d", -0.25)), ("texts", 9, array(8, 2, text("x") + text(""))),
            ("nested", 9, array(9, 1, array(5, 1, b"abcd")))]
    write(target, "keys", gguf(keys, alignment=64))
    write(target, "tensors", gguf(keys[:2], [("a", [32, 2], 2, 0), ("b", [3], 0, 64)], bytes(76), alignment=64))
    write(target, "v2", gguf((), [("a", [], 24, 0)], b"x", version=2))
    write(target, "big_endian", b"GGUF" + struct.pack(">IQQ", 3, 0, 0))
    write(target, "huge_count", b"GGUF" + struct.pack("<IQQ", 3, 2**64 - 1, 2**63))
    write(target, "huge_text", gguf([("k", 8, struct.pack("<Q", 2**64 - 8))]))


def write_npy():
    target = "npy"

    def header(descr, shape, order="False"):
        return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"

    write(target, "plain", npy(header("'<f4'", "(2, 1)"), b"01234567"))
    write(target, "v3", npy(header("'|b1'", "()"), b"0", major=3))
    write(target, "fortran", npy(header("'>u2'", "(1, 2)", "True"), b"0123", major=2))
    write(target, "time", npy(header("'<M8[25s]'", "(1,)"), b"01234567"))
    write(target, "text", npy(header("'<U1'", "(0, 3)")))
    write(target, "fields", npy(header("[('a', '<f4'), (('t', 'b'), '|u1', (2,))]", "(1L,)"), b"012345"))
    write(target, "object", npy(header("'|O'", "(1,)"), b"\x80\x04N."))


class Pipe:
    """A file that cannot seek. zipfile then writes the sizes behind the bytes of each member."""

    def __init__(self, out):
        self.write, self.flush = out.write, out.flush


def zip_archive(members, method=zipfile.ZIP_STORED, piped=False):
    """members: name -> bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(Pipe(out) if piped else out, "w", method) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=name.endswith(".npy")) as member:
                member.write(data)
    return out.getvalue()


def write_npz():
    target = "npz"
    header = "{'descr': '<f4', 'fortran_order': %s, 'shape': (2, 3), }\n"
    arrays = {"a.npy": npy(header % "False", bytes(24)), "d/b.npy": npy(header % "True", bytes(24))}
    write(target, "stored", zip_archive(arrays))
    write(target, "deflated", zip_archive(arrays, zipfile.ZIP_DEFLATED))
    write(target, "piped", zip_archive(arrays, piped=True))
    write(target, "mixed", zip_archive({**arrays, "objects.npy": npy("{'descr': '|O', 'fortran_order': False, 'shape': (), }"),
                                        "text.txt": b"text"}))
    small = zip_archive({"a.npy": arrays["a.npy"]})
    directory, = struct.unpack_from("<I", small, len(small) - 6)
    entries = small[directory:-22]
    wide = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(entries), directory)
    place = struct.pack("<4sIQI", b"PK\6\7", 0, len(small) - 22, 1)
    write(target, "zip64", small[:-22] + wide + place + small[-22:])
    write(target, "comment", small[:-2] + struct.pack("<H", 30) + b"PK\5\6".ljust(30, b"x"))


def hdf5(fill, **options):
    """The bytes of a file that `fill` fills."""
    import h5py
    out = io.BytesIO()
    with h5py.File(out, "w", **options) as file:
        fill(file)
    return out.getvalue()


def hdf5_tensors(file):
    """A dataset of each form that is one run, and of each type; tests/unit/format/hdf5_test.cc names them."""
    import h5py
    import numpy
    numbers = numpy.arange(6).reshape(2, 3)
    for kind in ("f2", "f4", "f8", "i1", "u2", "i4", "u8", "c8", "c16", "bool", ">f4", ">i2"):
        file[kind.replace(">", "big_")] = numbers.astype(kind)
    file["scalar"] = numpy.float32(3.5)
    file.create_dataset("empty", (0, 7), "f4")
    file["layer/sub/weight:0"] = numpy.arange(4, dtype="f4")
    file["tied"] = file["layer/sub/weight:0"]
    file["bf16"] = numpy.zeros(4, "V2")
    file["bf16"].attrs["dtype"] = "bfloat16"
    file["named"] = numpy.dtype("f4")
    file.create_dataset("of_named", (2,), file["named"], [1, 2])
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_layout(h5py.h5d.COMPACT)
    compact = h5py.h5d.create(file.id, b"compact", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((3,)), creation)
    compact.write(h5py.h5s.ALL, h5py.h5s.ALL, numpy.arange(3, dtype="f4"))


def hdf5_hidden(file):
    """Datasets and links that weft does not show."""
    import h5py
    import numpy
    file["plain"] = numpy.arange(3, dtype="f4")
    file["text"] = numpy.array([b"abc", b"de"])
    file["texts"] = ["abc", "de"]
    file["compound"] = numpy.zeros(2, [("a", "f4"), ("b", "i4")])
    file["opaque"] = numpy.zeros(2, "V2")
    file["nothing"] = h5py.Empty("f4")
    file.create_dataset("unwritten", (5,), "f4")
    file.create_dataset("outside", (4,), "f4", external=[("/etc/passwd", 0, 16)])
    virtual = h5py.VirtualLayout((3,), "f4")
    virtual[:] = h5py.VirtualSource("/etc/passwd", "plain", (3,))
    file.create_virtual_dataset("virtual", virtual)
    file["soft"] = h5py.SoftLink("/plain")
    file["external"] = h5py.ExternalLink("/etc/passwd", "/plain")
    file["group/up"] = file["/"]


def hdf5_chunks(file):
    import numpy
    numbers = numpy.arange(60, dtype="f4").reshape(10, 6)
    file.create_dataset("rows", data=numbers, chunks=(3, 6))
    file.create_dataset("lead", data=numbers.reshape(2, 5, 6), chunks=(1, 2, 6))
    file.create_dataset("tiles", data=numbers, chunks=(4, 4))
    file.create_dataset("gzip", data=numbers, chunks=(5, 6), compression="gzip")
    file.create_dataset("shuffled", data=numbers, chunks=(5, 6), shuffle=True)
    file.create_dataset("one", data=numbers, chunks=(10, 6))
    file.create_dataset("one_gzip", data=numbers, chunks=(10, 6), compression="gzip")
    file.create_dataset("part", (10, 6), "f4", chunks=(5, 6))[:5] = 1
    file.create_dataset("none", (10, 6), "f4", chunks=(5, 6))
    file.create_dataset("growing", data=numbers, chunks=(5, 6), maxshape=(None, 6))
    file.create_dataset("growing_rows", data=numbers, chunks=(5, 6), maxshape=(None, None))
    file.create_dataset("growing_gzip", data=numbers, chunks=(5, 6), maxshape=(None, None), compression="gzip")


def hdf5_pages(file):
    """More chunks than a page of a fixed array has."""
    import numpy
    file.create_dataset("pages", data=numpy.arange(1100, dtype="u1"), chunks=(1,))


def hdf5_many(file):
    import numpy
    for i in range(30):
        file[f"layer_{i}"] = numpy.full(2, i, "u1")


def write_hdf5():
    latest = {"libver": "latest"}
    for name, fill in (("tensors", hdf5_tensors), ("hidden", hdf5_hidden), ("chunks", hdf5_chunks)):
        write("hdf5", name, hdf5(fill))
        write("hdf5", f"{name}_latest", hdf5(fill, **latest))
    write("hdf5", "pages_latest", hdf5(hdf5_pages, **latest))
    write("hdf5", "many", hdf5(hdf5_many))
    write("hdf5", "many_latest", hdf5(hdf5_many, **latest))
    write("hdf5", "many_tracked", hdf5(hdf5_many, track_order=True))
    write("hdf5", "user_block", hdf5(hdf5_many, userblock_size=512))


def keras_weights(file):
    """As Keras 3 names weights. Those of bfloat16 are opaque bytes with an attribute."""
    import numpy
    for layer in "dense", "dense_1":
        for number, shape in enumerate(((2, 3), (3,))):
            file[f"layers/{layer}/vars/{number}"] = numpy.ones(shape, "f4")
    file["layers/half/vars/0"] = numpy.zeros(4, "V2")
    file["layers/half/vars/0"].attrs["dtype"] = "bfloat16"
    file["optimizer/vars/0"] = numpy.int64(7)


def write_keras():
    weights = hdf5(keras_weights)
    write("keras", "weights", weights)
    write("keras", "weights_latest", hdf5(keras_weights, libver="latest"))
    write("keras", "short", weights[:2000])


def pickle_text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def pickle_tensor(key, offset, shape, strides, storage="FloatStorage"):
    """As PyTorch rebuilds it, in opcodes of protocol 2."""
    def numbers(values):
        return b"(" + b"".join(b"K" + bytes([value]) for value in values) + b"t"
    place = b"(" + pickle_text("storage") + f"ctorch\n{storage}\n".encode() + pickle_text(key) + pickle_text("cpu") + b"K\1tQ"
    return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + place + b"K" + bytes([offset]) + numbers(shape) + numbers(strides)
            + b"\x89ccollections\nOrderedDict\n)RtR")


def write_torch():
    target = "torch"
    first, second = pickle_tensor("0", 0, (4, 6), (6, 1)), pickle_tensor("1", 0, (2,), (1,))
    state = b"}(" + pickle_text("a.weight") + first + pickle_text("a.bias") + second + b"u"
    write(target, "state_dict", b"\x80\2" + state + b".")
    write(target, "views", b"\x80\2](" + pickle_tensor("0", 1, (6, 4), (1, 6)) + pickle_tensor("0", 23, (5,), (0,))
          + pickle_tensor("0", 90, (9,), (1,)) + pickle_tensor("2", 0, (1,), (1,)) + b"e.")
    write(target, "module", b"\x80\2cm\nNet\n)\x81}(" + pickle_text("_parameters") + state + pickle_text("_modules") + b"}ub.")
    write(target, "memo", b"\x80\4\x95" + bytes(8) + b"]\x94(h\0h\0K\1e" + pickle_text("os") + pickle_text("system")
          + b"\x93" + pickle_text("true") + b"\x85R\x86.")
    write(target, "protocol_0", b"(dp0\nS'w'\np1\n(I1\nL2L\nF1.5\nVtext\ntp2\ns.")
    dtype = b"cnumpy\ndtype\n(" + pickle_text("f4") + b"tR(K\3" + pickle_text("<") + b"NNNtb"
    write(target, "numpy", b"\x80\3cnumpy._core.multiarray\n_reconstruct\n)R(K\1(K\2K\1t" + dtype + b"\x89C\x0801234567tb.")
    write(target, "long", b"\x80\2\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.N.\0")


def protobuf(*fields):
    """fields: (number, value). A value is a number, or bytes, or a text."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += bundlelib.varint(number << 3) + bundlelib.varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += bundlelib.varint(number << 3 | 2) + bundlelib.varint(len(data)) + data
    return out


def write_onnx():
    target = "onnx"

    def tensor(name, kind, shape, *data):
        return protobuf(*((1, dimension) for dimension in shape), (2, kind), (8, name), *data)

    def model(graph, *more):
        return protobuf((1, 10), (2, "pytorch"), (3, "2.9"), (6, b"\0"), (7, graph), *more)

    def external(**entries):
        return *((13, protobuf((1, key), (2, value))) for key, value in entries.items()), (14, 1)

    raw = tensor("w", 1, (2, 1), (9, b"01234567"))
    constant = protobuf((2, "c_out"), (4, "Constant"), (5, protobuf((1, "value"), (5, tensor("", 7, (), (9, b"01234567"))), (20, 4))))
    body = protobuf((1, constant), (5, tensor("bias", 11, (1,), (10, b"01234567"))))
    branch = protobuf((3, "if"), (4, "If"), (5, protobuf((1, "then_branch"), (6, body), (20, 5))))
    sparse = protobuf((1, tensor("s", 1, (1,), (9, b"0123"))), (2, tensor("", 7, (1,), (9, b"01234567"))), (3, 9))
    write(target, "graph", model(protobuf((1, constant), (1, branch), (2, "main"), (5, raw), (5, raw), (15, sparse))))
    write(target, "numbers", model(protobuf((5, tensor("f", 1, (2,), (4, b"01234567"))), (5, tensor("i", 7, (2,), (7, b"\1\2"))),
                                            (5, tensor("h", 10, (1,), (5, 15360))), (5, tensor("t", 8, (1,), (6, "text"))))))
    write(target, "external", model(protobuf(
        (5, tensor("a", 1, (2,), *external(location="d", offset="56", length="8"))),
        (5, tensor("b", 1, (2,), *external(location="./d"))), (5, tensor("c", 1, (2,), *external(location="../d", length="8"))),
        (5, tensor("e", 1, (2,), *external(location="d", offset="60"))), (5, tensor("g", 1, (2,), *external(location="none"))))))
    function = protobuf((1, "f"), (7, constant), (11, protobuf((1, "alpha"), (5, tensor("", 2, (), (9, b"x"))))))
    write(target, "more", model(protobuf((5, raw)), (14, protobuf((1, "author"), (2, "me"))), (25, function),
                                (20, protobuf((1, protobuf((5, raw))), (2, protobuf((1, constant)))))))
    write(target, "group", model(protobuf((5, raw))) + b"\x4b\x4c")
    deep = protobuf((5, raw))
    for _ in range(40):
        deep = protobuf((1, protobuf((5, protobuf((1, "g"), (6, deep))))))
    write(target, "deep", model(deep))


def write_dcp():
    """The files that the target puts beside the input have shards of one length, each a tensor of 2 x 2 floats."""
    target = "dcp"
    storage = b"(" + pickle_text("storage") + b"ctorch\nFloatStorage\n" + pickle_text("0") + pickle_text("cpu") + b"K\4tQ"
    pickle = (b"\x80\2ctorch._utils\n_rebuild_tensor_v2\n(" + storage
              + b"K\0(K\2K\2t(K\2K\1t\x89ccollections\nOrderedDict\n)RtR.")
    length = 30 + len("m/data.pkl") + len(pickle) + 30 + len("m/data/0") + 16 + 46 + len("m/data.pkl") + 46 + len("m/data/0") + 22

    def instance(name, **attributes):
        pairs = b"".join(pickle_text(key) + value for key, value in attributes.items())
        return f"ctorch.distributed.checkpoint.metadata\n{name}\n".encode() + b")\x81}(" + pairs + b"ub"

    def size(numbers):
        return b"ctorch\nSize\n(" + b"".join(b"K" + bytes([one]) for one in numbers) + b"t\x85R"

    def metadata(shape, shards, more=b""):
        chunks = [instance("ChunkStorageMetadata", offsets=size(begin), sizes=size((2, 2))) for begin, _, _ in shards]
        tensor = instance("TensorStorageMetadata", size=size(shape), chunks=b"](" + b"".join(chunks) + b"e")
        places = [instance("MetadataIndex", fqn=pickle_text("w"), offset=size(begin))
                  + instance("_StorageInfo", relative_path=pickle_text(file), offset=b"M" + struct.pack("<H", at * length),
                             length=b"M" + struct.pack("<H", length)) for begin, file, at in shards]
        return b"\x80\2" + instance("Metadata", state_dict_metadata=b"}(" + pickle_text("w") + tensor + more + b"u",
                                    storage_data=b"}(" + b"".join(places) + b"u") + b"."

    first, second, third = ("a.distcp", 0), ("a.distcp", 1), ("b.distcp", 0)
    write(target, "rows", metadata((4, 2), [((0, 0), *first), ((2, 0), *third)]))
    write(target, "columns", metadata((2, 6), [((0, 4), *first), ((0, 0), *third), ((0, 2), *second)]))
    write(target, "padded", metadata((2, 3), [((0, 0), *first), ((0, 2), *third)]))
    write(target, "hole", metadata((4, 4), [((0, 0), *first), ((0, 2), *third), ((2, 0), *second)]))
    write(target, "elsewhere", metadata((2, 2), [((0, 0), "../x", 0)]))
    write(target, "value", metadata((2, 2), [((0, 0), *first)], pickle_text("step") + instance("BytesStorageMetadata")))


def write_torch_legacy():
    target = "torch_legacy"
    magic, version = b"\x80\2\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", b"\x80\2M\xe9\3."
    facts = b"\x80\2}(" + pickle_text("protocol_version") + b"M\xe9\3" + pickle_text("little_endian") + b"\x88u."

    def stored(*counts):
        keys = b"".join(pickle_text(str(key)) for key in range(len(counts)))
        return b"\x80\2](" + keys + b"e." + b"".join(struct.pack("<q", count) + bytes(4 * count) for count in counts)

    def tensor(key, count, *place):
        return pickle_tensor(key, *place).replace(b"K\1tQ", b"K" + bytes([count]) + b"NtQ", 1)

    state = b"}(" + pickle_text("a") + tensor("0", 6, 0, (2, 3), (1, 2)) + pickle_text("b") + tensor("1", 2, 1, (1,), (1,)) + b"u"
    whole = magic + version + facts + b"\x80\2" + state + b"." + stored(6, 2)
    write(target, "state_dict", whole)
    write(target, "short", whole[:-3])
    write(target, "frames", magic.replace(b"\x80\2", b"\x80\4\x95" + struct.pack("<Q", 13)) + version)
    write(target, "plain", b"\x80\4]\x94(K\1cos\nsystem\ne.N.")


def write_tf_bundle():
    """The target puts files of 64 bytes beside the input: one of one, and both of two."""
    target, entry = "tf_bundle", bundlelib.entry
    plain = {b"net/kernel": entry(1, (2, 3), 0, 16, 24), b"net/bias": entry(14, (3,), 0, 40, 6), b"net/step": entry(9, (), 0, 0, 8),
             b"net/empty": entry(1, (0, 3)), b"_CHECKPOINTABLE_OBJECT_GRAPH": entry(7, (), 0, 8, 9)}
    write(target, "plain", bundlelib.index(plain))
    write(target, "blocks", bundlelib.index(plain, blocks=3))
    write(target, "shards", bundlelib.index({b"a": entry(1, (4,), 1, 48, 16), b"b": entry(3, (2,), 0, 0, 8)}, 2))
    write(target, "missing", bundlelib.index({b"a": entry(1, (4,), 2, 0, 16), b"b": entry(1, (4,), 0, 60, 16)}, 3))
    rows, columns = [((0, 2), None), ((2, 2), None)], [(None, (0, 3)), (None, (3, 1))]
    partitioned = {b"rows": entry(1, (4, 1), slices=rows), b"columns": entry(4, (2, 4), slices=columns)}
    for number, one in enumerate(rows):
        partitioned[bundlelib.slice_key("rows", one)] = entry(1, (2, 1), 0, 8 * number, 8)
    for number, one in enumerate(columns):
        partitioned[bundlelib.slice_key("columns", one)] = entry(4, (2, 3 - 2 * number), 0, 20 * number, 6 - 4 * number)
    write(target, "partitioned", bundlelib.index(partitioned))
    write(target, "compressed", bundlelib.table([[(b"", bundlelib.header(1))]], 1))


def write_torch_export():
    target = "torch_export"

    def weight(path, sizes, strides, dtype=7, offset=0, **more):
        def numbers(values):
            return [{"as_int": value} for value in values]

        meta = {"dtype": dtype, "sizes": numbers(sizes), "strides": numbers(strides), "storage_offset": {"as_int": offset},
                "device": {"type": "cpu", "index": None}, "layout": 7}
        return {"path_name": path, "is_param": True, "use_pickle": False, "tensor_meta": meta} | more

    def config(**weights):
        return json.dumps({"config": weights}).encode()

    write(target, "weights", config(w=weight("weight_0", (4, 6), (6, 1)), b=weight("weight_1", (2,), (1,)),
                                    tied=weight("weight_0", (6, 4), (1, 6)), part=weight("weight_0", (3,), (8,), offset=2)))
    write(target, "hidden", config(
        far=weight("weight_0", (4, 7), (7, 1)), none=weight("weight_9", (2,), (1,)), pickled=weight("weight_1", (1,), (1,), use_pickle=True),
        kind=weight("weight_1", (2,), (1,), 9), expression=weight("weight_1", (-1,), (1,))))


def write_flax():
    target = "flax"

    def text(value):
        return bytes([0xa0 | len(value)]) + value.encode()

    def array(shape, kind, data):
        body = b"\x93" + bytes([0x90 | len(shape), *shape]) + text(kind) + b"\xc4" + bytes([len(data)]) + data
        return b"\xc7" + bytes([len(body), 1]) + body

    def pairs(**values):
        return bytes([0x80 | len(values)]) + b"".join(text(key) + value for key, value in values.items())

    kernel = array((2, 3), "float32", b"0123456789abcdefABCDEFGH")
    write(target, "state", pairs(params=pairs(dense=pairs(kernel=kernel, bias=array((3,), "bfloat16", b"012345"))), step=b"\x05",
                                 list=b"\x92" + array((), "int32", b"0123") + b"\xc0"))
    write(target, "hidden", pairs(kind=array((1,), "int4", b"0"), short=array((4,), "float32", b"0123"), other=b"\xd4\1\x90",
                                  numbers=b"\x93\xcd\1\0\xd1\xff\0\xcb" + bytes(8)))
    write(target, "long", b"\xdf\xff\xff\xff\xff" + text("a") + b"\xc6\xff\xff\xff\xff")


def write_tflite():
    target = "tflite"
    tensors = [("w", 0, (2, 3), 1, False), ("in", 0, (1, -1), 0, False), ("tied", 2, (6,), 1, False)]
    write(target, "tensors", tflite(tensors, [b"", b"0123456789abcdefABCDEFGH"]))
    write(target, "far", tflite(tensors, [b"", b"0123456789abcdefABCDEFGH"], far=True))
    write(target, "hidden", tflite([("int4", 17, (6,), 1, False), ("sparse", 9, (3,), 1, True), ("new", 77, (), 9, False)],
                                   [b"", b"012"]))


def write_bases():
    target = "bases"
    write(target, "card", b"---\nlicense: mit\nbase_model:\n- org/a # the big one\n- \"b\\\"c\"\n- 'd''e'\n---\n# Title\n")
    write(target, "flow", b"---\nbase_model: [org/a,\n  'b']\n...\n")
    write(target, "adapter", b'{"base_model_name_or_path": "org/base", "r": 8, "x": {"base_model_name_or_path": "y"}}')


def write_control():
    target = "control"

    def stream(*messages, step=255):
        texts = [message if isinstance(message, bytes) else json.dumps(message).encode() for message in messages]
        return bytes([step]) + b"".join(struct.pack("<I", len(text)) + text for text in texts)

    write(target, "tag", stream({"id": 1, "request": "tag", "body": {"model": "bert", "tag": "x", "version": 2}}))
    write(target, "talk", stream({"id": 1, "request": "import", "body": {}}, {"id": 1, "event": True, "body": {"a": [1]}},
                                 {"id": 1, "more": True}, {"id": 1, "cancel": True}, {"id": 1, "answer": True}, step=3))
    write(target, "error", stream({"id": 1, "error": "no_space", "message": "full"}))
    write(target, "fds", stream({"id": 1, "request": "open", "fds": 3}))
    write(target, "deep", stream(b'{"id":1,"more":true,"body":' + b"[" * 40))
    write(target, "twice", stream(b'{"id":1,"id":2,"more":true}'))
    write(target, "long", bytes([0]) + struct.pack("<I", 2**31))


def write_join():
    """As src/cluster_setup/token.h lays a token out; the first byte chooses what the target reads."""
    def fields(endpoint, uses=1):
        return bytes(range(32)) + bytes(range(16)) + struct.pack("<QH", 2_000_000_000, uses) + bytes(32) + endpoint

    def text(fields):
        return b"weft1." + base64.urlsafe_b64encode(fields + hashlib.sha256(fields).digest()[:4]).rstrip(b"=")

    whole = text(fields(b"10.0.0.1:4712"))
    write("join", "token", b"\0" + whole)
    write("join", "cut", b"\0" + whole[:-3])
    for name, endpoint in ("host", b"10.0.0.1:4712"), ("ipv6", b"[fe80::1%eth0]:4712"), ("no_port", b"host"), ("empty", b""):
        write("join", f"fields_{name}", b"\1" + fields(endpoint))
    write("join", "fields_unused", b"\1" + fields(b"h:1", uses=0))
    write("join", "request", b"\2" + json.dumps({"protocol": 1, "token": whole.decode(), "name": "n2", "host": "10.0.0.2",
                                                 "peer_port": 4714, "request": "PEM", "time_s": 1}).encode())
    write("join", "record", b"\3weft setup 1\nstate unfinished\njoin h:1\nstore /s\ndirectory /d\nfile /f\ndata /x\n")


def write_peers():
    """The seed `read` is what the program encodes. Its two runs lie 8 bytes aligned; four bytes before them move them."""
    target = "peers"
    read = (CORPUS / target / "read").read_bytes()
    at = 0x28  # the offset of the vector of runs, from here
    offset, = struct.unpack_from("<I", read, at)
    assert struct.unpack_from("<I", read, at + offset) == (2,)
    write(target, "misaligned_runs", read[:at] + struct.pack("<I", offset + 4) + bytes(4) + read[at + 4:])


def write_tar():
    for name, kind in ("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=kind) as tar:
            for path in "a", "d/" + "n" * 90 + "/x", "d/empty":
                info = tarfile.TarInfo(path if name == "ustar" else path * 2)
                info.size = 0 if path.endswith("empty") else 600
                tar.addfile(info, io.BytesIO(b"x" * info.size))
            for path, link, target in (("l", tarfile.SYMTYPE, "d/../a"), ("h", tarfile.LNKTYPE, "a"), ("c", tarfile.CHRTYPE, "")):
                info = tarfile.TarInfo(path)
                info.type, info.linkname = link, target
                tar.addfile(info)
        write("tar", name, b"\x20" + out.getvalue()[:8192])


def lmdb_page(number, kind, nodes):
    """A branch or leaf page of 512 bytes."""
    pointers, data = [], b""
    for node in nodes:
        node += bytes(len(node) % 2)
        data = node + data
        pointers.append(512 - len(data))
    lower = 16 + 2 * len(nodes)
    head = struct.pack("<QHHHH", number, 0, kind, lower, 512 - len(data)) + struct.pack(f"<{len(nodes)}H", *pointers)
    return head + bytes(512 - len(head) - len(data)) + data


def lmdb_file(main, pages):
    """Two meta pages, then these."""
    out = b""
    for number in 0, 1:
        free = struct.pack("<IHHQQQQQ", 512, 0, 0, 0, 0, 0, 0, 2**64 - 1)
        meta = struct.pack("<IIQQ", 0xBEEFC0DE, 1, 0, 1 << 20) + free + main + struct.pack("<QQ", len(pages) + 1, number)
        out += struct.pack("<QHHHH", number, 0, 8, 0, 0) + meta + bytes(512 - 16 - len(meta))
    return out + b"".join(pages)


def write_lmdb():
    def leaf(key, value, flags=0, size=None):
        return struct.pack("<IHH", len(value) if size is None else size, flags, len(key)) + key + value

    def branch(key, page):
        return struct.pack("<IHH", page, 0, len(key)) + key

    def database(root, flags=0):
        return struct.pack("<IHHQQQQQ", 0, flags, 1, 0, 1, 0, 3, root)

    overflow = struct.pack("<QHHI", 4, 0, 4, 2) + b"v" * 900 + bytes(1024 - 916)
    leaves = [lmdb_page(2, 2, [leaf(b"a", b"1"), leaf(b"b", struct.pack("<Q", 4), 1, 900)]), lmdb_page(3, 2, [leaf(b"c", b"")])]
    tree = lmdb_page(6, 1, [branch(b"", 2), branch(b"c", 3)])
    write("lmdb", "tree", b"\xff" + lmdb_file(database(6), leaves + [overflow, tree]))
    named = lmdb_page(2, 2, [leaf(b"images", database(3), 2)])
    write("lmdb", "named", b"\xff" + lmdb_file(database(2), [named, leaves[1]]))
    write("lmdb", "sorted", b"\xff" + lmdb_file(database(2, 4), leaves[:1]))
    write("lmdb", "cycle", b"\xff" + lmdb_file(database(2), [lmdb_page(2, 1, [branch(b"", 2)])]))
    write("lmdb", "empty", b"\xff" + lmdb_file(database(2**64 - 1), []))


def write_record_table():
    """As src/dataset/record_layout.h lays a table out."""

    def table(rows, keys, paths=(), skipped=b"", left_out=0, container=10_000):
        text = ("{'descr': [('offset', '<u8'), ('length', '<u8')], 'fortran_order': False, 'shape': "
                f"({len(rows)},), }}").encode()
        length = -(-(10 + len(text) + 1) // 64) * 64 - 10
        npy_head = b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + text.ljust(length - 1) + b"\n"
        ends, end = [], 0
        for path, _ in paths:
            end += len(path)
            ends.append(end)
        header = struct.pack("<8Q", container, len(rows), len(keys), 1 if paths else 0, len(paths), end, left_out,
                             len(skipped))
        out = (b"WFRTAB01" + header).ljust(128, b"\0")
        for section in (npy_head + b"".join(struct.pack("<QQ", *row) for row in rows), keys,
                        struct.pack(f"<{len(ends)}I", *ends), struct.pack(f"<{len(paths)}I", *[row for _, row in paths]),
                        b"".join(path for path, _ in paths), skipped):
            out += bytes(-len(out) % 64) + section
        return out

    write("record_table", "keys", table([(100, 0), (500, 10)], b"a%0A\nb\n"))
    write("record_table", "empty", table([], b""))
    write("record_table", "files", table([(0, 1), (10, 1), (30, 1)], b"d/x\nd-\nd/e/y\n",
                                         [(b"d-", 1), (b"d/e/y", 2), (b"d/x", 0)], b"c\ta device\n", 1))


def write_file_table():
    """As src/dataset/file_layout.h lays a table out."""

    def table(directories, files):
        """directories: (parent, name), the root first; files: (directory, name, bytes), by directory."""
        rows, lines, prefixes, name_end, line = [], [], [], 0, 0
        for number, (parent, name) in enumerate(directories):
            name_end += len(name)
            prefixes.append(prefixes[parent] + len(name) + 1 if number else 0)
            rows.append((parent, name_end, sum(1 for one in files if one[0] < number)))
            lines.append(line)
            line += sum(prefixes[number] + len(name) + 1 for at, name, _ in files if at == number)
        ends, name_ends, end, text = [], [], 0, 0
        for _, name, size in files:
            end, text = end + size, text + len(name)
            ends.append(end)
            name_ends.append(text)
        out = (b"WFFTAB02" + struct.pack("<4Q", len(files), len(directories), name_end, text)).ljust(64, b"\0")
        for section in (b"".join(struct.pack("<3I", *row) for row in rows), struct.pack(f"<{len(lines)}Q", *lines),
                        struct.pack(f"<{len(ends)}Q", *ends), struct.pack(f"<{len(name_ends)}I", *name_ends),
                        b"".join(name for _, name in directories), b"".join(name for _, name, _ in files)):
            out += bytes(-len(out) % 64) + section
        return out

    write("file_table", "empty", table([(0, b"")], []))
    write("file_table", "root", table([(0, b"")], [(0, b"a", 1), (0, b"b", 0), (0, b"c", 300)]))
    write("file_table", "deep", table([(0, b""), (0, b"t"), (0, b"v"), (1, b"x"), (2, b"x")],
                                      [(0, b"r", 5), (1, b"1", 6), (3, b"1", 0), (3, b"2", 7), (4, b"z", 8)]))


if __name__ == "__main__":
    write_file_table()
    write_record_table()
    write_tar()
    write_lmdb()
    write_peers()
    write_join()
    write_control()
    write_etcd()
    write_hub_listing()
    write_hub_request()
    write_bases()
    write_safetensors()
    write_sharded_safetensors()
    write_index()
    write_gguf()
    write_npy()
    write_npz()
    write_onnx()
    write_hdf5()
    write_keras()
    write_torch()
    write_dcp()
    write_tf_bundle()
    write_tflite()
    write_torch_export()
    write_flax()
    write_torch_legacy()
