"""Ways in which loaders read a file, beyond read(2). Each takes a path and returns what it saw, or raises OSError."""
import ctypes
import errno
import fcntl
import mmap
import os
import socket
import struct
import tempfile

import numpy

LIBC = ctypes.CDLL(None, use_errno=True)
CHUNK = 1 << 18
CALLS = {"io_setup": 206, "io_destroy": 207, "io_getevents": 208, "io_submit": 209,  # of x86-64
         "io_uring_setup": 425, "io_uring_enter": 426, "cachestat": 451}


def call(name, *arguments):
    """A system call by number; OSError when it fails."""
    done = LIBC.syscall(CALLS[name], *arguments)
    if done < 0:
        raise OSError(ctypes.get_errno(), name)
    return done


def checked(done, name):
    """The result of a call of the C library; OSError when it failed."""
    if done < 0:
        raise OSError(ctypes.get_errno(), name)
    return done


class Opened:
    """A descriptor for as long as the context lasts."""

    def __init__(self, path, flags=os.O_RDONLY):
        self.fd = os.open(path, flags)
        self.size = os.fstat(self.fd).st_size

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        os.close(self.fd)


def aligned(size):
    """A buffer that O_DIRECT takes."""
    return mmap.mmap(-1, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)


def address_of(buffer):
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def in_chunks(read_at):
    """Joins what read_at(offset) gives until it gives nothing."""
    out = bytearray()
    while part := read_at(len(out)):
        out += part
    return bytes(out)


def read(path):
    with Opened(path) as file:
        return in_chunks(lambda offset: os.read(file.fd, CHUNK))


def read_direct(path):
    with Opened(path, os.O_RDONLY | os.O_DIRECT) as file:
        buffer = aligned(CHUNK)
        # The last part is short; nothing may be asked for behind it, at an offset that is not aligned.
        return in_chunks(lambda offset: b"" if offset >= file.size else
                         buffer[:os.preadv(file.fd, [buffer], offset)])


def read_with_flags(flags):
    def way(path):
        with Opened(path) as file:
            os.pread(file.fd, file.size, 0)  # what RWF_NOWAIT wants is in the page cache
            buffer = bytearray(CHUNK)
            return in_chunks(lambda offset: bytes(buffer[:os.preadv(file.fd, [buffer], offset, flags)]))

    return way


def read_libaio(path):
    with Opened(path) as file:
        context, buffer = ctypes.c_ulong(0), aligned(file.size + 1)
        call("io_setup", 4, ctypes.byref(context))
        try:
            request = ctypes.create_string_buffer(
                struct.pack("=QIIHhIQQqQII", 0, 0, 0, 0, 0, file.fd, address_of(buffer), len(buffer), 0, 0, 0, 0))
            pointer = ctypes.c_void_p(ctypes.addressof(request))
            assert call("io_submit", context, 1, ctypes.byref(pointer)) == 1
            event = ctypes.create_string_buffer(32)
            assert call("io_getevents", context, 1, 1, event, None) == 1
            got = struct.unpack("=QQqq", event.raw)[2]
            if got < 0:
                raise OSError(-got, "libaio")
            return buffer[:got]
        finally:
            call("io_destroy", context)


DEPTH = 8


def joined(buffer, results, file):
    """What requests of CHUNK each brought into the buffer, one behind the other."""
    out = bytearray()
    for i, got in enumerate(results):
        if got < 0:
            raise OSError(-got, "a request")
        assert got == min(CHUNK, file.size - i * CHUNK), "a short read before the end"
        out += buffer[i * CHUNK:i * CHUNK + got]
    return bytes(out)


def in_batches(read_batch):
    """A file opened with O_DIRECT: read_batch(file, buffer, offsets) has DEPTH requests under way at a time and gives
    what each brought, in order."""
    def way(path):
        with Opened(path, os.O_RDONLY | os.O_DIRECT) as file:
            offsets = range(0, file.size, CHUNK)
            buffer, results = aligned(len(offsets) * CHUNK), []
            for first in range(0, len(offsets), DEPTH):
                results += read_batch(file, buffer, offsets[first:first + DEPTH])
            return joined(buffer, results, file)

    return way


def libaio_batch(file, buffer, offsets):
    context = ctypes.c_ulong(0)
    call("io_setup", DEPTH, ctypes.byref(context))
    try:
        requests = [ctypes.create_string_buffer(
            struct.pack("=QIIHhIQQqQII", offset, 0, 0, 0, 0, file.fd, address_of(buffer) + offset, CHUNK, offset, 0, 0, 0))
            for offset in offsets]
        pointers = (ctypes.c_void_p * len(requests))(*(ctypes.addressof(request) for request in requests))
        submitted = call("io_submit", context, len(requests), pointers)
        assert submitted == len(requests)
        events = ctypes.create_string_buffer(32 * submitted)
        assert call("io_getevents", context, submitted, submitted, events, None) == submitted
        results = {data: got for data, _, got, _ in struct.iter_unpack("=QQqq", events.raw)}
        return [results[offset] for offset in offsets]
    finally:
        call("io_destroy", context)


def io_uring_batch(file, buffer, offsets):
    opcode_read, ring = 22, Ring(DEPTH)
    try:
        return ring.run_all((opcode_read, file.fd, offset, address_of(buffer) + offset, CHUNK) for offset in offsets)
    finally:
        ring.close()


read_libaio_direct = in_batches(libaio_batch)
read_io_uring_direct = in_batches(io_uring_batch)


class Ring:
    """An io_uring of a few entries."""

    SQ_RING, CQ_RING, ENTRIES = 0, 0x8000000, 0x10000000

    def __init__(self, entries=1):
        params = ctypes.create_string_buffer(120)
        self.fd = call("io_uring_setup", entries, params)
        words = struct.unpack("=30I", params.raw)
        self.sq, self.cq = words[10:18], words[20:28]  # head, tail, mask, entries, (dropped|overflow), (array|cqes)
        size = max(self.sq[6] + 4 * words[0], self.cq[5] + 16 * words[1])
        self.rings = mmap.mmap(self.fd, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, offset=self.SQ_RING)
        self.entries = mmap.mmap(self.fd, 64 * words[0], flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, offset=self.ENTRIES)

    def word(self, at):
        return struct.unpack_from("=I", self.rings, at)[0]

    def run(self, opcode, fd, offset, address, length):
        """One request; its result."""
        result, = self.run_all([(opcode, fd, offset, address, length)])
        if result < 0:
            raise OSError(-result, "io_uring")
        return result

    def run_all(self, requests):
        """All of them at once; their results, in order."""
        tail, count = self.word(self.sq[1]), 0
        for count, (opcode, fd, offset, address, length) in enumerate(requests, 1):
            slot = (tail + count - 1) & self.word(self.sq[2])
            struct.pack_into("=BBHiQQIIQQQQ", self.entries, 64 * slot, opcode, 0, 0, fd, offset, address, length, 0,
                             count - 1, 0, 0, 0)
            struct.pack_into("=I", self.rings, self.sq[6] + 4 * slot, slot)
        struct.pack_into("=I", self.rings, self.sq[1], tail + count)
        call("io_uring_enter", self.fd, count, count, 1, None, 0)
        head, results = self.word(self.cq[0]), {}
        for i in range(count):
            which, result, _ = struct.unpack_from("=QiI", self.rings,
                                                  self.cq[5] + 16 * ((head + i) & self.word(self.cq[2])))
            results[which] = result
        struct.pack_into("=I", self.rings, self.cq[0], head + count)
        return [results[i] for i in range(count)]

    def close(self):
        self.rings.close()
        self.entries.close()
        os.close(self.fd)


def read_io_uring(path):
    opcode_read = 22
    with Opened(path) as file:
        ring, buffer = Ring(), aligned(CHUNK)
        try:
            return in_chunks(lambda offset: buffer[:ring.run(opcode_read, file.fd, offset, address_of(buffer), CHUNK)])
        finally:
            ring.close()


def into_a_file(move):
    """What move(from, to, offset, count) moves into an ordinary file, chunk by chunk."""
    def way(path):
        with Opened(path) as file, tempfile.TemporaryFile() as out:
            done = 0
            while got := move(file.fd, out.fileno(), done, CHUNK):
                done += got
            out.seek(0)
            return out.read()

    return way


read_sendfile = into_a_file(lambda fd, out, offset, count: os.sendfile(out, fd, offset, count))
read_copy_file_range = into_a_file(lambda fd, out, offset, count: os.copy_file_range(fd, out, count, offset))


def read_splice(path):
    with Opened(path) as file:
        source, sink = os.pipe()
        try:
            return in_chunks(lambda offset: os.read(source, got) if (got := os.splice(file.fd, sink, 1 << 15, offset))
                             else b"")
        finally:
            os.close(source)
            os.close(sink)


def read_sendfile_to_socket(path):
    with Opened(path) as file:
        source, sink = socket.socketpair()
        with source, sink:
            return in_chunks(lambda offset: source.recv(got, socket.MSG_WAITALL)
                             if (got := os.sendfile(sink.fileno(), file.fd, offset, 1 << 15)) else b"")


def mapped(use, flags=mmap.MAP_SHARED, protection=mmap.PROT_READ):
    """What use(map) returns of a mapping."""
    def way(path):
        with Opened(path) as file, mmap.mmap(file.fd, 0, flags=flags, prot=protection) as memory:
            return use(memory)

    return way


def all_bytes(memory):
    return memory[:]


def write_privately(memory):
    """A private mapping takes writes, which nobody else sees."""
    before = memory[:]
    memory[0] = before[0] ^ 0xFF
    memory[len(memory) - 1] ^= 0xFF
    return before, memory[0], memory[len(memory) - 1]


def advised(advice):
    def use(memory):
        memory.madvise(advice)
        return memory[:]

    return use


def collapsed(memory):
    """The kernel makes large pages of it, or not, as it finds them: what is read there is all that counts."""
    collapse, not_now = 25, {errno.EINVAL, errno.EAGAIN, errno.EBUSY, errno.ENOMEM}
    try:
        memory.madvise(collapse)
    except OSError as error:
        if error.errno not in not_now:
            raise
    return memory[:]


def locked(memory):
    address = ctypes.c_void_p(numpy.frombuffer(memory, dtype=numpy.uint8).ctypes.data)
    checked(LIBC.mlock(address, ctypes.c_size_t(len(memory))), "mlock")
    content = memory[:]
    checked(LIBC.munlock(address, ctypes.c_size_t(len(memory))), "munlock")
    return content


def read_after(prepare):
    """read(2) after prepare(descriptor, size)."""
    def way(path):
        with Opened(path) as file:
            prepare(file.fd, file.size)
            return in_chunks(lambda offset: os.pread(file.fd, CHUNK, offset))

    return way


def file_advised(advice):
    return read_after(lambda fd, size: os.posix_fadvise(fd, 0, size, advice))


read_ahead = read_after(
    lambda fd, size: checked(LIBC.readahead(fd, ctypes.c_longlong(0), ctypes.c_size_t(size)), "readahead"))


def seeks(path):
    """Where data and holes are: no file has holes but the one at its end."""
    with Opened(path) as file:
        return [os.lseek(file.fd, 0, os.SEEK_DATA), os.lseek(file.fd, file.size - 1, os.SEEK_DATA),
                os.lseek(file.fd, 0, os.SEEK_HOLE) - file.size, os.lseek(file.fd, 0, os.SEEK_END) - file.size]


def seek_behind(path):
    with Opened(path) as file:
        return os.lseek(file.fd, file.size, os.SEEK_DATA)


def statx(path):
    """Type, permissions and size."""
    at_current_directory, basic_stats, answer = -100, 0x7FF, ctypes.create_string_buffer(256)
    checked(LIBC.statx(at_current_directory, os.fsencode(path), 0, basic_stats, answer), "statx")
    mask, mode, size = (struct.unpack_from(form, answer.raw, at)[0] for form, at in (("=I", 0), ("=H", 28), ("=Q", 40)))
    return mask & basic_stats == basic_stats, mode, size


def locks(path):
    """flock(2), shared and exclusive, and a read lock of fcntl(2)."""
    with Opened(path) as file, Opened(path) as other:
        fcntl.flock(file.fd, fcntl.LOCK_SH)
        fcntl.flock(other.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(other.fd, fcntl.LOCK_UN)
        fcntl.flock(file.fd, fcntl.LOCK_EX)
        try:
            fcntl.flock(other.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.lockf(file.fd, fcntl.LOCK_SH)
            return "held"
    return "not held"


def file_handle(path):
    handle, mount_id = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0), 136), ctypes.c_int()
    checked(LIBC.name_to_handle_at(-100, os.fsencode(path), handle, ctypes.byref(mount_id), 0), "name_to_handle_at")
    return "a handle"


def block_map(request, argument):
    """ioctl(2) that tells where on a disk a file lies."""
    def way(path):
        with Opened(path) as file:
            return fcntl.ioctl(file.fd, request, argument)

    return way


def cached_pages(path):
    """How many pages of a file are in the page cache; None where the kernel cannot tell."""
    whole, answer = (ctypes.c_uint64 * 2)(0, 0), (ctypes.c_uint64 * 5)()
    with Opened(path) as file:
        try:
            call("cachestat", file.fd, whole, answer, 0)
        except OSError:
            return None
    return answer[0]


def forget(path):
    """Drops a file's pages; true when none is left."""
    with Opened(path) as file:
        os.fsync(file.fd)
        os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    return cached_pages(path) == 0
