"""A registered buffer of io_uring: the kernel keeps its pages pinned, whatever becomes of the mapping and of the
descriptor that they belong to, until the ring is closed."""
import ctypes
import os
import struct

SETUP, ENTER, REGISTER = 425, 426, 427
REGISTER_BUFFERS, WAIT_FOR_ONE, READ_FIXED = 0, 1, 4
SUBMISSIONS, ENTRIES = 0, 0x10000000  # what an offset of a mapping of the ring means
READ_WRITE, SHARED = 3, 1
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def call(number, *words):
    result = LIBC.syscall(ctypes.c_long(number), *(ctypes.c_long(w) if isinstance(w, int) else w for w in words))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


class RegisteredBuffer:
    """Of `size` bytes of memory at `address`. As a context, which closes the ring. OSError: the kernel takes no such
    memory, or has no io_uring."""

    def __init__(self, address, size):
        self.address, self.size = address, size
        parameters = ctypes.create_string_buffer(120)
        self.ring = call(SETUP, 1, parameters)
        try:
            call(REGISTER, self.ring, REGISTER_BUFFERS, struct.pack("QQ", address, size), 1)
        except OSError:
            os.close(self.ring)
            raise
        self.parameters = parameters.raw

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        os.close(self.ring)

    def map(self, offset, size):
        address = LIBC.mmap(None, size, READ_WRITE, SHARED, self.ring, offset)
        assert address != ctypes.c_void_p(-1).value, os.strerror(ctypes.get_errno())
        return address

    def read(self, source):
        """Reads from a descriptor into the buffer. Call it once."""
        tail, array = struct.unpack_from("I", self.parameters, 44)[0], struct.unpack_from("I", self.parameters, 64)[0]
        submissions, entry = self.map(SUBMISSIONS, array + 4), self.map(ENTRIES, 64)
        ctypes.memmove(entry, struct.pack("BBHiQQIIQHHIQQ", READ_FIXED, 0, 0, source, 0, self.address, self.size, 0, 0, 0,
                                          0, 0, 0, 0), 64)
        ctypes.memmove(submissions + array, struct.pack("I", 0), 4)
        ctypes.memmove(submissions + tail, struct.pack("I", 1), 4)
        call(ENTER, self.ring, 1, 1, WAIT_FOR_ONE, 0, 0)
