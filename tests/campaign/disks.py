"""File systems for a run: a tmpfs that holds everything, images on it, and a disk that is recorded. All of it is in the mount
namespace of the run, so that nothing is left behind even if the run is killed."""
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

MIB = 1 << 20
SIZES = {"ext4": 128 * MIB, "xfs": 320 * MIB}  # mkfs.xfs refuses less than 300 MiB
MKFS = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}
REPAIR = {"ext4": ["e2fsck", "-fy"], "xfs": ["xfs_repair", "-L"]}
TMPFS_SIZE = "8g"
PUNCH_HOLE = 0x02 | 0x01  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
PR_SET_PDEATHSIG = 1
START_SECONDS_MAX = 10

libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def run(*words, check=True):
    return subprocess.run([str(word) for word in words], check=check, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def end_with_parent():
    """The calling process is killed when its parent ends, however that ends."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def scratch():
    """An empty directory on a tmpfs of its own."""
    where = pathlib.Path(tempfile.mkdtemp(prefix="weft-campaign."))
    try:
        run("mount", "-t", "tmpfs", "-o", f"size={TMPFS_SIZE},mode=700", "weft-campaign", where)
        yield where
    finally:
        run("umount", "-R", "-l", where, check=False)
        where.rmdir()


def unmount(where):
    """Unmounts, and waits while a program that was just killed still has it."""
    for _ in range(100):
        if run("umount", where, check=False).returncode == 0:
            return
        time.sleep(0.05)
    raise RuntimeError(f"{where} is still in use")


def new_image(path, size):
    path.unlink(missing_ok=True)
    with open(path, "wb") as file:
        file.truncate(size)
    return path


@contextlib.contextmanager
def mounted(image, where, options=()):
    """The file system in an image or in a recorded disk, by a loop device that goes when it is unmounted."""
    where.mkdir(exist_ok=True)
    run("mount", "-o", ",".join(["loop", *options]), image, where)
    try:
        yield where
    finally:
        unmount(where)


@contextlib.contextmanager
def file_system(area, kind):
    """A new file system of this kind; its root."""
    image = new_image(area / f"{kind}.img", SIZES[kind])
    run(*MKFS[kind], image)
    with mounted(image, area / kind) as where:
        yield where
    image.unlink()


class RecordedDisk:
    """A disk whose writes and flushes go into `log`. As a context: the disk is there inside."""

    def __init__(self, recorder, area, kind):
        self.recorder, self.kind, self.where = recorder, kind, area / "recorded"
        self.backing, self.log = area / "backing.img", area / "disk.log"
        self.disk = self.where / "disk"

    def __enter__(self):
        self.where.mkdir(exist_ok=True)
        new_image(self.backing, SIZES[self.kind])
        self.server = subprocess.Popen([self.recorder, self.backing, self.log, self.where], stdin=subprocess.DEVNULL,
                                       preexec_fn=end_with_parent, start_new_session=True)
        end = time.monotonic() + START_SECONDS_MAX
        while not os.path.ismount(self.where):
            if self.server.poll() is not None or time.monotonic() > end:
                self.__exit__()
                raise RuntimeError("the recorder did not start")
            time.sleep(0.01)
        return self

    def __exit__(self, *exception):
        run("umount", self.where, check=False)
        try:
            self.server.wait(START_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        self.backing.unlink(missing_ok=True)

    def mark(self, text):
        with open(self.where / "mark", "wb", buffering=0) as file:
            file.write(text.encode())


class Replay:
    """Makes images of a recorded disk as a crash left it. Positions are asked for in ascending order."""

    def __init__(self, area, kind, log, records):
        self.log, self.records, self.done = log, records, 0
        self.durable = new_image(area / "durable.img", SIZES[kind])
        self.image = area / "crashed.img"

    def make(self, durable_end, extra):
        """All writes up to durable_end, and then the parts `extra`, each (offset, length, where in the log)."""
        with open(self.durable, "r+b", buffering=0) as file:
            for record in self.records[self.done:durable_end]:
                if record.kind in ("W", "Z"):
                    self.write(file.fileno(), record.offset, record.length, record.at if record.kind == "W" else None)
        self.done = max(self.done, durable_end)
        run("cp", "--sparse=auto", self.durable, self.image)
        with open(self.image, "r+b", buffering=0) as file:
            for part in extra:
                self.write(file.fileno(), *part)
        return self.image

    def write(self, descriptor, offset, length, at):
        if at is not None:
            os.pwrite(descriptor, self.log[at:at + length], offset)
        elif libc.fallocate(descriptor, PUNCH_HOLE, offset, length) != 0:
            raise OSError(ctypes.get_errno(), "fallocate")


def copy_tree(source, target):
    """Replaces `target` by a copy of `source` with its times; no copy if there is no source."""
    shutil.rmtree(target, ignore_errors=True)
    if source.exists():
        run("cp", "-a", "--reflink=auto", source, target)
