"""Contents of published files, drawn from a seed. A file is a list of pieces, such as its header and its tensors: weft
stores each piece as one run of bytes, so that a piece can be searched for in a damaged store."""
import dataclasses
import hashlib
import json
import struct

KIB = 1 << 10
# (tensors, smallest and largest size of one in KiB). The second makes files that weft assembles: 1 MiB and more.
SHAPES = [(4, 30, 70), (6, 190, 250), (3, 1, 8)]
TIED_ODDS = 0.3  # how often a tensor has the bytes of the one before


@dataclasses.dataclass(frozen=True)
class File:
    pieces: tuple

    @property
    def data(self):
        return b"".join(self.pieces)


def random_bytes(rng, length):
    return hashlib.shake_128(rng.randbytes(16)).digest(length)


def safetensors(tensors):
    """A File of the tensors, name -> bytes, all of float32. Its header is one piece, and so is each tensor."""
    header, offset = {}, 0
    for name, data in tensors.items():
        header[name] = {"dtype": "F32", "shape": [len(data) // 4], "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return File((struct.pack("<Q", len(text)) + text, *tensors.values()))


class Model:
    """Tensors and other files, and the files that a version of them publishes: path -> File."""

    def __init__(self, tensors, others):
        self.tensors, self.others = tensors, others

    @staticmethod
    def draw(rng):
        count, low, high = rng.choice(SHAPES)
        tensors, before = {}, None
        for number in range(count):
            tied = before is not None and rng.random() < TIED_ODDS
            before = before if tied else random_bytes(rng, rng.randint(low * KIB, high * KIB) // 4 * 4)
            tensors[f"layer.{number}.weight"] = before
        others = {"config.json": File((json.dumps({"model_type": "plain", "id": rng.getrandbits(64)}).encode(),))}
        if rng.random() < 0.5:
            others["notes/data.bin"] = File((random_bytes(rng, rng.randint(1, 90 * KIB)),))
        return Model(tensors, others)

    def derive(self, rng):
        """A Model in which one or two tensors have other bytes, and its changed tensors: name -> bytes."""
        names = rng.sample(list(self.tensors), k=min(len(self.tensors), rng.randint(1, 2)))
        changed = {name: random_bytes(rng, len(self.tensors[name])) for name in names}
        return Model(self.tensors | changed, self.others), changed

    @property
    def files(self):
        return {"model.safetensors": safetensors(self.tensors), **self.others}
