"""The log of a recorded disk, and the crash states that follow from it. Nothing here touches a disk.

A write is durable once a flush follows it. Of the writes behind the last flush a disk may have kept any, in any order, and
of each any of its sectors.
"""
import dataclasses
import random
import struct

SECTOR = 512
HEAD = struct.Struct("<cQQ")
KINDS = ("all", "none", "half", "torn")


@dataclasses.dataclass(frozen=True)
class Record:
    """kind: W a write, Z zeros, F a flush, M a mark. `at` is where in the log the bytes of a write or a mark are."""
    kind: str
    offset: int
    length: int
    at: int


def parse(log):
    """The records of a log, which is any buffer of bytes. A last record that is not whole is left out."""
    records, at = [], 0
    while at + HEAD.size <= len(log):
        kind, offset, length = HEAD.unpack_from(log, at)
        at += HEAD.size
        size = length if kind in (b"W", b"M") else 0
        if at + size > len(log):
            break
        records.append(Record(kind.decode(), offset, length, at))
        at += size
    return records


def marks(log, records):
    """(position, text) of each mark."""
    return [(i, bytes(log[r.at:r.at + r.length]).decode()) for i, r in enumerate(records) if r.kind == "M"]


def durable_end(records, position):
    """The position up to which all writes are durable if the machine stops before record `position`."""
    return next((i for i in range(position - 1, -1, -1) if records[i].kind == "F"), 0)


def pieces(record):
    """(offset, length, where in the log) of the sectors of a write; None stands for zeros."""
    at = record.at if record.kind == "W" else None
    return [(record.offset + done, min(SECTOR, record.length - done), None if at is None else at + done)
            for done in range(0, record.length, SECTOR)]


def whole(record):
    return (record.offset, record.length, record.at if record.kind == "W" else None)


def torn(record, rng):
    """Some sectors of a write: none, all, those before one, those behind one, or any."""
    parts = pieces(record)
    cut = rng.randint(0, len(parts))
    ways = (lambda: [], lambda: parts, lambda: parts[:cut], lambda: parts[cut:],
            lambda: [part for part in parts if rng.random() < 0.5])
    return rng.choice(ways)()


def is_write(record):
    return record.kind in ("W", "Z")


def unflushed(records, position, kind, draw):
    """What a disk kept of the writes behind its last flush: a list of (offset, length, where in the log)."""
    rng = random.Random(f"{position} {kind} {draw}")
    pending = [record for record in records[durable_end(records, position):position] if is_write(record)]
    if kind == "all":
        return [whole(record) for record in pending]
    if kind == "half":
        return [whole(record) for record in pending if rng.random() < 0.5]
    if kind == "torn":
        return [part for record in pending for part in torn(record, rng)]
    return []


def draw_positions(records, first, count, rng):
    """`count` positions from `first` on, where states differ most: right behind a mark, at a flush, and anywhere."""
    everywhere = range(first, len(records) + 1)
    behind_marks = [i + 1 for i in everywhere[:-1] if records[i].kind == "M"]
    at_flushes = [i for i in everywhere[:-1] if records[i].kind == "F"]
    pools = [pool for pool in (behind_marks, at_flushes, everywhere, everywhere) if pool]
    return [rng.choice(rng.choice(pools)) for _ in range(count)]


def draw_states(records, first, count, rng):
    """`count` states (position, kind, draw) in the order of their positions."""
    positions = sorted(draw_positions(records, first, count, rng))
    return [(position, rng.choice(KINDS), rng.getrandbits(32)) for position in positions]
