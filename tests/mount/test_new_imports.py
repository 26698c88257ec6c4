"""The import that a mount starts for a user: what it inherits, and what its user can do with it to hold up others."""
import contextlib
import ctypes
import errno
import fcntl
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import threading

import pytest

from checkpoints import dcp_metadata
from users import ONE, OTHER, SLOW, import_of, mount_for_users, outcomes_as, slow_draft, write
from weftlib import PATIENCE, act_as, process_of, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
LIBC = ctypes.CDLL(None, use_errno=True)
PIDFD_GETFD = 438
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207


@pytest.fixture(name="mount")
def a_mount(tmp_path):
    with mount_for_users(tmp_path, f",log={tmp_path}/mount.log") as mount:
        yield mount


class Work:
    """A user's work in new/ while something else goes on there: it makes, lists, renames and removes names."""

    def __init__(self, user, new):
        own, renamed = new / "own", new / "renamed"
        self.calls = [(os.mkdir, own), (write, own / "x", b"x"), (os.listdir, new), (os.rename, own, renamed),
                      (os.unlink, renamed / "x"), (os.rmdir, renamed)]
        self.outcomes = []
        self.thread = threading.Thread(target=lambda: self.outcomes.extend(outcomes_as(user, self.calls)))
        self.thread.start()

    def goes_on(self):
        """It ends while what else goes on does."""
        wait_until(lambda: self.outcomes)
        self.thread.join()
        assert self.outcomes == [0] * len(self.calls)


def descriptors_of(process):
    """(number, what it leads to) of each that the process has open at the moment."""
    found = set()
    with contextlib.suppress(OSError):
        for entry in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                found.add((int(entry.name), os.readlink(entry)))
    return found


def reach(path):
    """Opens the file, or connects to the socket, which nobody can open."""
    if stat.S_ISSOCK(os.stat(path).st_mode):
        socket.socket(socket.AF_UNIX).connect(path)
    else:
        os.open(path, os.O_RDONLY)


RENAME = """
import os, sys
try:
    os.rename(*sys.argv[1:])
except OSError as error:
    sys.exit(error.errno)
"""


@contextlib.contextmanager
def publish_of(user, draft, outcome=0, inside=False):
    """The user's rename of this draft, from the start of its import to its end, which is this errno. A program that works
    inside of the directory holds it until then. It is a program of its own, which has no pipe of a process_of()."""
    names = (draft.name, f"{draft.name}@") if inside else (draft, f"{draft}@")
    rename = subprocess.Popen([os.path.realpath(sys.executable), "-I", "-S", "-c", RENAME, *names], user=user, group=user,
                              extra_groups=[], cwd=draft.parent if inside else "/")
    try:
        wait_until(lambda: import_of(user) or rename.poll() is not None)
        seen = rename.poll() is None or rename.returncode == outcome != 0  # an import that is held up may end unseen
        assert seen, f"the rename ended with {rename.returncode} before its import was seen"
        yield
        assert rename.wait(20 * PATIENCE) == outcome
    finally:
        rename.kill()


def test_an_import_inherits_nothing_of_the_server(mount):
    """It runs as the user, who may take each of its descriptors."""
    server = pathlib.Path(f"/proc/{mount.figure('pid')}")
    of_server, of_import = descriptors_of(server), set()
    assert {"mount.log", "data.mdb"} <= {os.path.basename(path) for _, path in of_server}
    with publish_of(ONE, slow_draft(mount, 1 << 30)):
        process = import_of(ONE)
        while process.exists():
            of_import |= descriptors_of(process)
            of_server |= descriptors_of(server)
    assert {number: os.path.basename(path) for number, path in of_import if number < 3} == {
        0: "memfd:weft (deleted)", 1: "answer", 2: "null"}
    later = {path for number, path in of_import if number > 2}
    own = {str(mount.store.path)}  # the import opens the directory of the store itself, as its user
    assert later & {path for _, path in of_server} <= own
    refused = [path for path in later if os.path.exists(path) and outcomes_as(ONE, [(reach, path)]) != [0]]
    assert refused == []


def take_descriptors(process):
    """All that the import has, if the kernel lets its user take them."""
    with open_pidfd(process) as pidfd:
        numbers = [LIBC.syscall(PIDFD_GETFD, pidfd, number, 0) for number, _ in descriptors_of(process)]
    return [number for number in numbers if number >= 0]


@contextlib.contextmanager
def open_pidfd(process):
    pidfd = os.pidfd_open(int(process.name))
    try:
        yield pidfd
    finally:
        os.close(pidfd)


def test_a_user_who_keeps_the_descriptors_of_his_import_holds_up_nobody(mount):
    """None of them is the lock that says whether the import still runs."""
    draft = slow_draft(mount, 1 << 30)

    def keep(companion):
        companion.is_ready()
        wait_until(lambda: import_of(ONE))
        for number in take_descriptors(import_of(ONE)):
            for lock in (fcntl.flock, fcntl.lockf):
                with contextlib.suppress(OSError):
                    lock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        companion.is_over(wait=True)

    with process_of(ONE, keep):
        with publish_of(ONE, draft):
            Work(OTHER, mount / "new").goes_on()
        assert (mount.version("slow", 1) / "x").stat().st_size == 1 << 30
        Work(OTHER, mount / "new").goes_on()


def stop(process):
    os.kill(int(process.name), signal.SIGSTOP)


def trace(process):
    """As a debugger that hangs: the user's process does not hear of the end of the other one. The kernel may refuse it."""
    for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
        LIBC.ptrace(ctypes.c_long(request), ctypes.c_int(int(process.name)), None, None)


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
@pytest.mark.parametrize("hold", [stop, trace])
def test_an_import_that_its_user_holds_holds_up_nobody(mount, hold, inside):
    """It is killed, and as it may have published before, it runs once more. The rename ends while the user still holds
    them."""
    draft = slow_draft(mount)

    def hold_each(companion):
        companion.is_ready()
        held = set()
        while not companion.is_over():
            process = import_of(ONE)
            if process and process.name not in held:
                with contextlib.suppress(ProcessLookupError):
                    hold(process)
                held.add(process.name)

    with process_of(ONE, hold_each):
        with publish_of(ONE, draft, errno.EIO, inside):
            Work(OTHER, mount / "new").goes_on()
        Work(OTHER, mount / "new").goes_on()
    assert (draft / "x").stat().st_size == SLOW
    assert not (mount / "models/slow").exists()


def test_the_parts_that_a_checkpoint_names_hold_up_nobody(mount):
    """They are looked up among the files, as many as the user has written. One by one, that would take minutes."""
    draft, server = mount / "new/dcp", mount.figure("pid")
    names = [f"p{number:07d}.distcp" for number in range(3000)]

    def make():
        draft.mkdir()
        for name in names:
            (draft / name).write_bytes(b"x")
        (draft / ".metadata").write_bytes(dcp_metadata(names * 100 + ["z.distcp"]))

    act_as(ONE, make)
    outcomes = []
    rename = threading.Thread(target=lambda: outcomes.extend(outcomes_as(ONE, [(os.rename, draft, f"{draft}@")])))
    rename.start()
    wait_until(lambda: not draft.exists() or outcomes)
    Work(OTHER, mount / "new").goes_on()
    rename.join()
    assert outcomes == [errno.EINVAL]
    assert "the part z.distcp, which is not here" in (draft / ".weft.error").read_text()
    assert mount.figure("pid") == server, "it was taken for one that hangs"
