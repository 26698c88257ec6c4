"""TFLite models of tensors alone, for tests and benches: real ones need a converter of 270 MB."""
import struct


class Flat:
    """A FlatBuffer, front to back: pointers lead forward to what is appended later."""

    def __init__(self):
        self.data = bytearray(struct.pack("<I4s", 0, b"TFL3"))

    def table(self, *widths):
        offsets, at = [], 4
        for width in widths:
            offsets.append(at if width else 0)
            at += width
        begin = len(self.data)
        self.data += struct.pack(f"<{2 + len(widths)}H", 4 + 2 * len(widths), at, *offsets)
        place = len(self.data)
        self.data += struct.pack("<I", place - begin) + bytes(at - 4)
        return place, [place + offset for offset in offsets]

    def point(self, at, to):
        struct.pack_into("<I", self.data, at, to - at)

    def list(self, at, count, items):
        self.point(at, len(self.data))
        self.data += struct.pack("<I", count) + items
        return len(self.data) - len(items)


def tflite(tensors, buffers, far=False):
    """tensors: (name, type, shape, buffer, sparse). far: the bytes of buffers lie after the FlatBuffer."""
    flat = Flat()
    model, fields = flat.table(4, 0, 4, 0, 4)
    flat.point(0, model)
    graphs = flat.list(fields[2], 1, bytes(4))
    graph, graph_fields = flat.table(4)
    flat.point(graphs, graph)
    pointers = flat.list(graph_fields[0], len(tensors), bytes(4 * len(tensors)))
    for number, (name, kind, shape, buffer, sparse) in enumerate(tensors):
        tensor, inside = flat.table(4, 1, 4, 4, 0, 0, 4 if sparse else 0)
        flat.point(pointers + 4 * number, tensor)
        flat.data[inside[1]] = kind
        struct.pack_into("<I", flat.data, inside[2], buffer)
        flat.list(inside[0], len(shape), struct.pack(f"<{len(shape)}i", *shape))
        flat.list(inside[3], len(name), name.encode())
    pointers, places = flat.list(fields[4], len(buffers), bytes(4 * len(buffers))), []
    for number, data in enumerate(buffers):
        buffer, inside = flat.table(*((0, 8, 8) if far else (4,)))
        flat.point(pointers + 4 * number, buffer)
        places.append(inside)
        if not far:
            flat.list(inside[0], len(data), data)
    for data, inside in zip(buffers, places) if far else ():
        struct.pack_into("<Q", flat.data, inside[1], len(flat.data))
        struct.pack_into("<Q", flat.data, inside[2], len(data))
        flat.data += data
    return bytes(flat.data)
