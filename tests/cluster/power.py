"""A machine whose power is cut: a file system in an image that forgets what was not synced, and another boot id."""
import fcntl
import os
import struct
import uuid

from weftlib import WEFT, Store, run, wait_until

BOOT_ID = "/proc/sys/kernel/random/boot_id"
GOING_DOWN = 0x8004587D  # FS_IOC_SHUTDOWN, of ext4 and XFS alike
WITHOUT_LOG = struct.pack("I", 2)
MIB = 1 << 20


class Machine:
    """As a context: `where` is its disk. What runs on it is told another boot id than this machine's: start it with
    `inside`, and kill it before cut()."""

    def __init__(self, directory, size=512 * MIB):
        self.image, self.where, self.boot = directory / "disk.img", directory / "disk", directory / "boot_id"
        self.size = size

    def __enter__(self):
        self.where.mkdir()
        with self.image.open("wb") as image:
            image.truncate(self.size)
        run(["mkfs.ext4", "-q", "-F", self.image])
        self.begin_boot()
        self.mount()
        return self

    def __exit__(self, *exception):
        self.unmount()
        self.image.unlink()

    def begin_boot(self):
        self.boot.write_text(f"{uuid.uuid4()}\n")

    def mount(self):
        run(["mount", "-o", "loop", self.image, self.where])

    def unmount(self):
        wait_until(lambda: run(["umount", self.where], check=False).returncode == 0 or not os.path.ismount(self.where))

    @property
    def inside(self):
        """Words before a program that runs on it."""
        script = f'mount --bind "$0" {BOOT_ID} && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, str(self.boot)]

    def cut(self):
        """What the disk was not made to keep is gone, and the next boot begins."""
        directory = os.open(self.where, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(directory, GOING_DOWN, WITHOUT_LOG)
        finally:
            os.close(directory)
        self.unmount()
        self.begin_boot()
        self.mount()


class StoreOn(Store):
    """Its programs run on that machine."""

    def __init__(self, machine, path):
        self.machine = machine
        super().__init__(path)

    def weft(self, *arguments, check=True, **options):
        return run([*self.machine.inside, WEFT, "--store", self.path, *arguments], check=check, **options)


def cut_power(machine, daemon, before_boot=lambda: None):
    """Of the machine with this weftd, which starts again. In between, `before_boot` does to the disk what it may."""
    daemon.kill()
    daemon.close()
    machine.cut()
    before_boot()
    daemon.start()
