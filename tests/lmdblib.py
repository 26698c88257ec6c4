"""LMDB by its own library: files for tests, and reads as programs do them that open a data set read-only.

    python lmdblib.py DIRECTORY SEED COUNT SIZE     reads COUNT records in a random order and compares them"""
import ctypes
import json
import os
import random
import resource
import sys

RDONLY, NOTLS, NORDAHEAD, NOSYNC = 0x20000, 0x200000, 0x800000, 0x10000
APPEND = 0x20000

lib = ctypes.CDLL("liblmdb.so.0")
lib.mdb_strerror.restype = ctypes.c_char_p


class Value(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_void_p)]

    @classmethod
    def of(cls, text):
        buffer = ctypes.create_string_buffer(text, len(text))
        made = cls(len(text), ctypes.cast(buffer, ctypes.c_void_p))
        made.buffer = buffer
        return made


def check(code):
    if code:
        raise OSError(lib.mdb_strerror(code).decode())


class Environment:
    """A directory with a data.mdb."""

    def __init__(self, directory, flags, map_bytes=1 << 34):
        self.env, self.txn, self.dbi = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
        check(lib.mdb_env_create(ctypes.byref(self.env)))
        check(lib.mdb_env_set_mapsize(self.env, ctypes.c_size_t(map_bytes)))
        check(lib.mdb_env_open(self.env, os.fsencode(directory), ctypes.c_uint(flags), 0o644))
        check(lib.mdb_txn_begin(self.env, None, ctypes.c_uint(flags & RDONLY), ctypes.byref(self.txn)))
        check(lib.mdb_dbi_open(self.txn, None, 0, ctypes.byref(self.dbi)))

    def get(self, key):
        value = Value()
        check(lib.mdb_get(self.txn, self.dbi, ctypes.byref(Value.of(key)), ctypes.byref(value)))
        return ctypes.string_at(value.data, value.size)

    def put(self, key, value):
        check(lib.mdb_put(self.txn, self.dbi, ctypes.byref(Value.of(key)), ctypes.byref(Value.of(value)), APPEND))

    def commit(self):
        check(lib.mdb_txn_commit(self.txn))
        lib.mdb_env_close(self.env)

    def close(self):
        lib.mdb_txn_abort(self.txn)
        lib.mdb_env_close(self.env)


def key_of(number):
    return b"%08d" % number


def value_of(number, size):
    """Its length differs a little from one record to the next."""
    return random.Random(number).randbytes(size + number % 1000)


def write(directory, count, size):
    os.makedirs(directory)
    env = Environment(directory, NOSYNC)
    for number in range(count):
        env.put(key_of(number), value_of(number, size))
    env.commit()
    os.unlink(os.path.join(directory, "lock.mdb"))


def read(directory, seed, numbers, size):
    """Reads the records in a random order. Returns the major faults that this took."""
    env = Environment(directory, RDONLY | NOTLS | NORDAHEAD)
    numbers = list(numbers)
    random.Random(seed).shuffle(numbers)
    env.get(key_of(0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    values = [env.get(key_of(number)) for number in numbers]
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before
    env.close()
    assert values == [value_of(number, size) for number in numbers]
    return faults


if __name__ == "__main__":
    directory, seed, count, size = sys.argv[1], *map(int, sys.argv[2:])
    print(json.dumps({"faults": read(directory, seed, range(count), size)}))
