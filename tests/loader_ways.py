"""All that fast loaders do with a file, by name: what each gives of a native file, a file of a mount gives too."""
import errno
import mmap
import os

import loaders

MADVICE = {name: getattr(mmap, f"MADV_{name}") for name in
           ("NORMAL", "RANDOM", "SEQUENTIAL", "WILLNEED", "DONTNEED", "HUGEPAGE", "NOHUGEPAGE", "DONTDUMP", "DODUMP",
            "FREE", "REMOVE")}
MADVICE |= {"COLD": 20, "PAGEOUT": 21, "POPULATE_READ": 22, "POPULATE_WRITE": 23}
FADVICE = ("NORMAL", "RANDOM", "SEQUENTIAL", "NOREUSE", "WILLNEED", "DONTNEED")
PRIVATE_WRITES = {"flags": mmap.MAP_PRIVATE, "protection": mmap.PROT_READ | mmap.PROT_WRITE}


def of_mappings(flags):
    """What is done with a mapping, private or shared."""
    return {
        "MAP_POPULATE": loaders.mapped(loaders.all_bytes, flags | mmap.MAP_POPULATE),
        "mlock": loaders.mapped(loaders.locked, flags),
        "madvise COLLAPSE": loaders.mapped(loaders.collapsed, flags),
        **{f"madvise {name}": loaders.mapped(loaders.advised(number), flags) for name, number in MADVICE.items()},
    }


SAME = {
    "read": loaders.read,
    "O_DIRECT": loaders.read_direct,
    "preadv2": loaders.read_with_flags(0),
    "RWF_HIPRI": loaders.read_with_flags(os.RWF_HIPRI),
    "RWF_NOWAIT": loaders.read_with_flags(os.RWF_NOWAIT),
    "libaio": loaders.read_libaio,
    "libaio O_DIRECT": loaders.read_libaio_direct,
    "io_uring": loaders.read_io_uring,
    "io_uring O_DIRECT": loaders.read_io_uring_direct,
    "sendfile": loaders.read_sendfile,
    "sendfile to a socket": loaders.read_sendfile_to_socket,
    "copy_file_range": loaders.read_copy_file_range,
    "splice": loaders.read_splice,
    "MAP_PRIVATE": loaders.mapped(loaders.all_bytes, mmap.MAP_PRIVATE),
    **{f"MAP_PRIVATE {name}": way for name, way in of_mappings(mmap.MAP_PRIVATE).items()},
    "MAP_SHARED": loaders.mapped(loaders.all_bytes),
    **{f"MAP_SHARED {name}": way for name, way in of_mappings(mmap.MAP_SHARED).items()},
    "private writes": loaders.mapped(loaders.write_privately, **PRIVATE_WRITES),
    "private writes POPULATE_WRITE": loaders.mapped(loaders.advised(MADVICE["POPULATE_WRITE"]), **PRIVATE_WRITES),
    "readahead": loaders.read_ahead,
    "seeks": loaders.seeks,
    "seek behind the end": loaders.seek_behind,
    "statx": loaders.statx,
    "locks": loaders.locks,
    **{f"fadvise {name}": loaders.file_advised(getattr(os, f"POSIX_FADV_{name}")) for name in FADVICE},
}
# Errors that may stand for the native outcome: the caller has to do without.
MAY_FAIL = {
    "RWF_NOWAIT": {errno.EOPNOTSUPP},
    "copy_file_range": {errno.EXDEV},  # as between any two file systems; cp(1) reads instead
}


def failed_with(number):
    return f"errno {number}"


def outcome(way, path):
    try:
        return way(path)
    except OSError as error:
        return failed_with(error.errno)
    except ValueError as error:  # of Python, which maps no empty file
        return str(error)


def is_turned_off(name, outcome_of_native):
    """Does this kernel refuse what the way needs, whatever the file?"""
    return name.startswith("io_uring") and outcome_of_native in (failed_with(errno.EPERM), failed_with(errno.ENOSYS))
