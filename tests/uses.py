"""Ways in which a program has bytes of a file: each is made of a path, and says whether it reads as what is expected."""
import contextlib
import ctypes
import fcntl
import mmap
import os
import pathlib
import socket

from weftlib import page_cache


def drop_caches():
    os.sync()
    with page_cache(fcntl.LOCK_EX):
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


def in_child(work):
    """What `work` returns, false when it dies: a page of a mapping that cannot be had is SIGBUS."""
    child = os.fork()
    if child == 0:
        os._exit(0 if work() else 1)
    return os.waitpid(child, 0)[1] == 0


class Opened:
    """An open descriptor."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY)

    def drop(self):
        os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def reads(self, expected):
        got = b""
        while piece := os.pread(self.fd, len(expected) + 1 - len(got), len(got)):
            got += piece
        return got == expected

    def close(self):
        os.close(self.fd)


class OpenedMapped(Opened):
    """A mapping whose descriptor stays open."""

    def __init__(self, path):
        super().__init__(path)
        self.view = mmap.mmap(self.fd, 0, prot=mmap.PROT_READ)

    def drop(self):
        self.view.madvise(mmap.MADV_DONTNEED)
        super().drop()

    def reads(self, expected):
        return in_child(lambda: self.view[:] == expected)

    def close(self):
        self.view.close()
        super().close()


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Mapped:
    """A mapping whose descriptor is closed, as loaders leave it. Python's own mapping keeps a copy of the descriptor."""

    def __init__(self, path):
        fd = os.open(path, os.O_RDONLY)
        self.size = os.fstat(fd).st_size
        self.at = LIBC.mmap(None, self.size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
        os.close(fd)
        assert self.at not in (None, ctypes.c_void_p(-1).value), os.strerror(ctypes.get_errno())

    def drop(self):
        LIBC.madvise(self.at, self.size, mmap.MADV_DONTNEED)

    def reads(self, expected):
        return in_child(lambda: ctypes.string_at(self.at, self.size) == expected)

    def close(self):
        LIBC.munmap(self.at, self.size)


class Piped:
    """Pages that splice moved into a pipe, as many as it holds; the file is closed."""

    def __init__(self, path):
        self.out, self.into = (os.fdopen(fd, mode, buffering=0) for fd, mode in zip(os.pipe(), ("rb", "wb")))
        with open(path, "rb", buffering=0) as file:
            size = min(path.stat().st_size, 16 * mmap.PAGESIZE)
            self.moved = os.splice(file.fileno(), self.into.fileno(), size, offset_src=0)

    def drop(self):
        pass

    def reads(self, _):
        return True  # once, at the end

    def read_once(self):
        self.into.close()
        return self.out.read(self.moved + 1)

    def close(self):
        self.into.close()
        self.out.close()


class Sent:
    """What sendfile put into a socket; the file is closed."""

    def __init__(self, path):
        self.ends = socket.socketpair()
        self.ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.ends[0].setblocking(False)
        self.moved = 0
        with open(path, "rb", buffering=0) as file, contextlib.suppress(BlockingIOError):
            while count := os.sendfile(self.ends[0].fileno(), file.fileno(), self.moved, 16 * mmap.PAGESIZE):
                self.moved += count
                if self.moved >= 8 * mmap.PAGESIZE:
                    break

    def drop(self):
        pass

    def reads(self, _):
        return True  # once, at the end

    def read_once(self):
        self.ends[0].close()
        with self.ends[1].makefile("rb") as file:
            return file.read()

    def close(self):
        for end in self.ends:
            end.close()
