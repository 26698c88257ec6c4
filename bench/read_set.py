"""What the parts of scripts/bench read share: a published model, a mount of its store, ways to read, cold and warm."""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from measure import run

MIB = 1 << 20
CACHESTAT = 451  # the system call's number on every architecture


def cached_pages(path, offset=0):
    """Pages of a file from `offset` on that are in the page cache; None if the kernel cannot tell (before Linux 6.5)."""
    rest, answer = (ctypes.c_uint64 * 2)(offset, 0), (ctypes.c_uint64 * 5)()
    fd = os.open(path, os.O_RDONLY)
    try:
        failed = ctypes.CDLL(None).syscall(CACHESTAT, fd, ctypes.byref(rest), ctypes.byref(answer), 0)
    finally:
        os.close(fd)
    return None if failed else answer[0]


def forget(path):
    """Drops a file's pages, and no other file's. What is just being read ahead in it may take a moment."""
    deadline = time.monotonic() + 5
    fd = os.open(path, os.O_RDONLY)
    try:
        while True:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            left = cached_pages(path)
            if not left:
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"{path}: {left} pages stayed in the page cache")
            time.sleep(0.001)
    finally:
        os.close(fd)


def warm(path):
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(8 * MIB)
        while file.readinto(buffer):
            pass


def in_turn(number, one, other):
    """The two, the one first or the other."""
    return (one, other) if number % 2 else (other, one)


def medians_in_turn(number, ours, native, way):
    """(ours, native): each the median of three, in turn, after one that is not timed: who reads first after so many pages
    came in is slower, whichever side it is, and what takes some milliseconds is disturbed by anything."""
    sides = in_turn(number, ours, native)
    rounds = [{path: way(path) for path in sides} for _ in range(4)][1:]
    return [sorted(times[path] for times in rounds)[1] for path in (ours, native)]


def ending(returncode):
    """How a program ended, by its return code."""
    return signal.Signals(-returncode).name if returncode < 0 else f"exit status {returncode}"


class Loader:
    """A Python that has torch loaded, and times what it is told to load. `threads`: of torch; as many as cores if 0."""

    def __init__(self, python, threads=0):
        script = pathlib.Path(__file__).with_name("load_tensors.py")
        self.process = subprocess.Popen([python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=os.environ | ({"OMP_NUM_THREADS": str(threads)} if threads else {}))

    def start(self, how, path, *name):
        self.process.stdin.write(" ".join([how, str(path), *name]) + "\n")
        self.process.stdin.flush()

    def wait(self):
        """Its seconds. A RuntimeError says why it could not load."""
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(ending(self.process.wait()))
        if line.startswith("failed"):
            raise RuntimeError(line.strip())
        return float(line)

    def seconds(self, how, path, *name):
        self.start(how, path, *name)
        return self.wait()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class ReadBench:
    """Everything made here is undone by close()."""

    def __init__(self, build, directory, pairs, size, python):
        self.build, self.dir, self.pairs, self.size, self.python = build, pathlib.Path(directory), pairs, size, python
        self.weft = build / "src/cli/weft"
        self.undo = contextlib.ExitStack()

    def close(self):
        self.undo.close()

    def model(self, name, tensors, size, *change):
        """A safetensors file of that many bytes (bench/make_model.cc says what `change` is)."""
        path = self.dir / f"{name}.safetensors"
        if not path.exists():
            run(self.build / "bench/weft_bench_make_model", path, tensors, size, 1, *change)
        return path

    def store(self, name="store", where=None):
        path = (where or self.dir) / name
        run(self.weft, "--store", path, "init")
        return path

    def publish(self, store, source, name, *options):
        run(self.weft, "--store", store, "--quiet", "import", source, "--name", name, *options)

    def mount(self, store, name="mnt", *options):
        """Mounts until close(); returns the directory."""
        return self.mount_until(self.undo, store, name, *options)

    def mount_until(self, undo, store, name, *options):
        """The same until `undo` (an ExitStack) is left."""
        where = self.dir / name
        where.mkdir()
        run(self.build / "fuse/mount.weft", store, where, *(["-o", ",".join(options)] if options else []))
        undo.callback(unmount, where)
        return where

    def mode(self, name="mnt"):
        """What a mount says of how files are read there."""
        status = json.loads((self.dir / name / ".weft/status").read_text())["mount"]
        reason = f" ({status['mode_reason']})" if "mode_reason" in status else ""
        ahead = f"{status['read_ahead_kb']} KiB" if "read_ahead_kb" in status else "the kernel's own"
        return f"mode {status['mode']}{reason}, readahead {ahead}"

    def memory_fs(self, source, name):
        """A file system on libfuse that shows a copy of `source` from memory; returns its file."""
        where = self.dir / name
        where.mkdir()
        server = subprocess.Popen([self.build / "bench/weft_bench_memory_fs", source, where])
        self.undo.callback(server.wait)
        self.undo.callback(unmount, where)
        deadline = time.monotonic() + 60
        while not (where / "file").exists():
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("memory_fs does not answer")
            time.sleep(0.01)
        return where / "file"

    def loop_disk(self, name, size, make=("mkfs.ext4", "-q", "-F")):
        """A file system of its own, in an image; returns (directory, the number of its block device)."""
        image, where = self.dir / f"{name}.image", self.dir / name
        with open(image, "wb") as file:
            file.truncate(size)
        run(*make, image)
        where.mkdir()
        run("mount", "-o", "loop", image, where)
        run("losetup", "--direct-io=on", run("findmnt", "-no", "SOURCE", where).strip())  # else the image is cached too
        self.undo.callback(image.unlink)
        self.undo.callback(unmount, where)
        device = os.stat(where).st_dev
        return where, f"{os.major(device)}:{os.minor(device)}"

    def same_read_ahead(self, device):
        """Gives a loop device the readahead of the disk below: what it reads too much is to show."""
        disk = os.stat(self.dir).st_dev
        bdi = pathlib.Path("/sys/class/bdi")
        (bdi / device / "read_ahead_kb").write_text((bdi / f"{os.major(disk)}:{os.minor(disk)}/read_ahead_kb").read_text())

    def loader(self):
        loader = Loader(self.python)
        self.undo.callback(loader.close)
        return loader

    def read_seconds(self, how, path, readers=1):
        """Seconds of bench/read_file.cc."""
        return float(run(self.build / "bench/weft_bench_read_file", how, readers, path))

    def sides(self, *options):
        """The model as a native file and through a mount with these options, published as one pack: the two sides of most
        pairs."""
        native = self.model("native", 300, self.size)
        store = self.store()
        self.publish(store, native, "one")
        return native, self.mount(store, "mnt", *options) / "models/one/1/native.safetensors", store


def unmount(where):
    words = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
    if subprocess.run([*words, where], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        run(*words, "-l" if os.geteuid() == 0 else "-z", where)
    with contextlib.suppress(OSError):
        where.rmdir()


def together(loaders, how, path):
    """Seconds until all of them have loaded the same file."""
    begin = time.perf_counter()
    for loader in loaders:
        loader.start(how, path)
    for loader in loaders:
        loader.wait()
    return time.perf_counter() - begin


def free_space_for(directory, size):
    free = shutil.disk_usage(directory).free
    if free < size:
        raise SystemExit(f"bench: {directory}: expected {size / MIB:.0f} MiB free, got {free / MIB:.0f}")
