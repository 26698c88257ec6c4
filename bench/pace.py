"""A disk that reads at a constant speed, so that its moods do not decide: the kernel's throttling of block devices."""

import contextlib
import os
import pathlib
import time

GROUPS = pathlib.Path("/sys/fs/cgroup")


def disk_of(path):
    """"major:minor" of the whole disk below a directory: what can be throttled."""
    device = os.stat(path).st_dev
    block = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    disk = block.parent if (block / "partition").exists() else block
    return (disk / "dev").read_text().strip()


@contextlib.contextmanager
def read_pace(path, megabytes_per_s):
    """This process, and what it starts from now on, reads the disk below `path` at so many MB/s together. As root."""
    name, device, rate = f"weft-bench.{os.getpid()}", disk_of(path), megabytes_per_s * 10**6
    if (GROUPS / "blkio").is_dir():
        above, file, line = GROUPS / "blkio", "blkio.throttle.read_bps_device", f"{device} {rate}"
    else:
        above, file, line = GROUPS, "io.max", f"{device} rbps={rate}"
        (above / "cgroup.subtree_control").write_text("+io")
    group = above / name
    group.mkdir()
    try:
        (group / file).write_text(line)
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        for process in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (above / "cgroup.procs").write_text(process)
        _remove(group)


def _remove(group):
    """Who left a group is in it for a moment more."""
    deadline = time.monotonic() + 5
    while True:
        try:
            return group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
