"""Writes checkpoints of TensorFlow (tensor bundles) without TensorFlow, for tests and fuzz seeds."""
import struct


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def message(*fields):
    """fields: (number, value). A value is a number, or bytes. As protocol buffers do, it leaves out numbers that are 0."""
    out = b""
    for number, value in fields:
        if isinstance(value, bytes):
            out += varint(number << 3 | 2) + varint(len(value)) + value
        elif value:
            out += varint(number << 3) + varint(value % 2**64)
    return out


def crc32c(data):
    crc = 2**32 - 1
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 2**32 - 1


def sealed(block, compression=0):
    """A block of a table with its compression and its masked checksum behind it."""
    block += bytes([compression])
    crc = crc32c(block)
    return block + struct.pack("<I", (crc >> 15 | crc << 17) + 0xA282EAD8 & 2**32 - 1)


def block(entries, interval=16):
    """entries: (key, value), sorted. Each key shares its begin with the key before, but for one in `interval`."""
    out, restarts, before = b"", [], b""
    for number, (key, value) in enumerate(entries):
        shared = 0
        if number % interval == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(key), len(before)) and key[shared] == before[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        before = key
    restarts = restarts or [0]
    return out + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def table(blocks, compression=0):
    """blocks: lists of entries. They are marked as compressed, but stay as they are."""
    out, places = b"", []
    for entries in blocks:
        data = block(entries)
        places.append((entries[-1][0] if entries else b"", varint(len(out)) + varint(len(data))))
        out += sealed(data, compression)
    unused, index = block([]), block(places, 1)
    handles = varint(len(out)) + varint(len(unused)) + varint(len(out) + len(unused) + 5) + varint(len(index))
    return out + sealed(unused) + sealed(index) + handles.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def header(shards):
    return message((1, shards), (3, message((1, 1))))


def entry(kind, shape, shard=0, offset=0, length=0, slices=()):
    """kind: a number of DataType. slices: for each, pairs (start, length), or None for a whole dimension."""
    dimensions = message(*((2, message((1, size))) for size in shape))
    extents = [message(*((1, b"" if one is None else message((1, one[0]), (2, one[1]))) for one in slice_)) for slice_ in slices]
    return message((1, kind), (2, dimensions), (3, shard), (4, offset), (5, length), *((7, one) for one in extents))


def signed(number):
    """As OrderedCode writes it, for numbers from -64 to 8191."""
    return bytes([0x80 ^ number & 255]) if -64 <= number < 64 else struct.pack(">H", 0xC000 ^ number)


def slice_key(name, slice_):
    """The key of a slice of a tensor. The name has no bytes 0 and 255."""
    count = bytes([1, len(slice_)]) if slice_ else b"\0"
    return b"\0" + name.encode() + b"\0\1" + count + b"".join(
        signed(number) for one in slice_ for number in ((0, -1) if one is None else one))


def index(entries, shards=1, blocks=1):
    """entries: a dict of keys and values. They are spread over this many blocks."""
    rows = [(b"", header(shards)), *sorted(entries.items())]
    step = -(-len(rows) // blocks)
    return table([rows[at:at + step] for at in range(0, len(rows), step)])


def write_checkpoint(stem, tensors, shards=1, others=(), blocks=1):
    """tensors: by name, a number of DataType, a numpy array, and its slices or (), each with a start and a length for every
    dimension. They go to the shards in turn. others: (name, number of DataType, bytes) without a shape."""
    data, entries = [b"" for _ in range(shards)], {}

    def add(key, kind, shape, content):
        shard = len(entries) % shards
        crc = crc32c(content)
        entries[key] = entry(kind, shape, shard, len(data[shard]), len(content)) + b"\x35" + struct.pack(
            "<I", (crc >> 15 | crc << 17) + 0xA282EAD8 & 2**32 - 1)
        data[shard] += content

    for name, (kind, array, slices) in tensors.items():
        if not slices:
            add(name.encode(), kind, array.shape, array.tobytes())
            continue
        entries[name.encode()] = entry(kind, array.shape, slices=slices)
        for one in slices:
            part = array[tuple(slice(start, start + length) for start, length in one)]
            add(slice_key(name, one), kind, part.shape, part.tobytes())
    for name, kind, content in others:
        add(name.encode(), kind, (), content)
    stem.parent.mkdir(parents=True, exist_ok=True)
    for shard, content in enumerate(data):
        stem.with_name(f"{stem.name}.data-{shard:05}-of-{shards:05}").write_bytes(content)
    stem.with_name(f"{stem.name}.index").write_bytes(index(entries, shards, blocks))
