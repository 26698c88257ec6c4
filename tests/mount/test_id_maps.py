"""Bind mounts with an id mapping (Linux 6.12), as a container runtime makes them for pods in a user namespace."""
import contextlib
import ctypes
import errno
import os
import signal
import struct

import pytest

from weftlib import NOBODY, Mount, linux_version, random_tensors, refused_by, run, store_with

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
              pytest.mark.skipif(linux_version() < (6, 12), reason="needs Linux 6.12")]

SHIFT, IDS = 100_000, 65_536
UNSHARE, OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 272, 428, 429, 442
AT_FDCWD, AT_EMPTY_PATH, OPEN_TREE_CLONE, MOUNT_ATTR_IDMAP, CLONE_NEWUSER = -100, 0x1000, 1, 0x100000, 0x10000000


def system_call(number, *words):
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(w) if isinstance(w, int) else w for w in words))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


@contextlib.contextmanager
def user_namespace():
    """A descriptor of a user namespace whose users 0, 1, … are SHIFT, SHIFT + 1, … here."""
    hears, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            system_call(UNSHARE, CLONE_NEWUSER)
            os.write(said, b"1")
            signal.pause()
        except PermissionError:
            os.write(said, b"0")
        finally:
            os._exit(1)
    try:
        os.close(said)
        answer = os.read(hears, 1)
        if answer == b"0":
            pytest.skip("the kernel makes no user namespace here: it refuses that below chroot(2)")
        assert answer == b"1"
        for kind in ("uid_map", "gid_map"):
            with open(f"/proc/{pid}/{kind}", "w", encoding="ascii") as file:
                file.write(f"0 {SHIFT} {IDS}")
        namespace = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
        try:
            yield namespace
        finally:
            os.close(namespace)
    finally:
        os.close(hears)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@contextlib.contextmanager
def mapped(source, target):
    """A bind mount of `source` on `target` with the id mapping of such a namespace."""
    target.mkdir()
    with user_namespace() as namespace:
        tree = system_call(OPEN_TREE, AT_FDCWD, os.fsencode(source), OPEN_TREE_CLONE)
        try:
            attributes = ctypes.create_string_buffer(struct.pack("QQQQ", MOUNT_ATTR_IDMAP, 0, 0, namespace))
            system_call(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, attributes, 32)
            system_call(MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(target), 4)
        finally:
            os.close(tree)
    try:
        yield target
    finally:
        run(["umount", "-l", target])


def read_as(user, path):
    """What this user reads, and the errno of a write."""
    hears, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        answer = b""
        try:
            answer = path.read_bytes()
            os.open(path, os.O_WRONLY)
        except OSError as failed:
            os.write(said, struct.pack("i", failed.errno) + answer)
        os._exit(0)
    os.close(said)
    with os.fdopen(hears, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return struct.unpack("i", answer[:4])[0], answer[4:]


@pytest.fixture(name="store")
def fixture_store(tmp_path):
    store = store_with(tmp_path, random_tensors(3, 1 << 16, seed="ids"))
    (tmp_path / "more.txt").write_text("more")
    store.publish(tmp_path / "more.txt", name="text")
    return store


@pytest.mark.parametrize("options", [None, "umask=022", "umask=027", "umask=077,uid=7,gid=7"])
def test_a_mount_can_be_id_mapped(store, tmp_path, options):
    """It shows owners as the mapping says, and a user of the namespace has the rights of the user of the same number."""
    with Mount(store, tmp_path / "mnt", options) as mount, mapped(mount.path, tmp_path / "pod") as pod:
        mount.let_in()
        owner = (mount / "README").stat().st_uid
        file = pod / "models/text/1/more.txt"
        assert file.stat().st_uid == SHIFT + owner and file.stat().st_gid == SHIFT + (mount / "README").stat().st_gid
        assert read_as(SHIFT + owner, file) == (errno.EROFS, b"more")
        everybody = options in (None, "umask=022")
        assert read_as(SHIFT + 4321, file) == ((errno.EROFS, b"more") if everybody else (errno.EACCES, b""))
        run(["diff", "-r", pod / "models/m/1", tmp_path / "model"])


def test_a_server_that_follows_keeps_the_mapping(store, tmp_path):
    with Mount(store, tmp_path / "mnt") as mount, mapped(mount.path, tmp_path / "pod") as pod:
        os.kill(mount.figure("pid"), signal.SIGKILL)
        assert (pod / "models/text/1/more.txt").read_text() == "more"
        assert (pod / "models").stat().st_uid == SHIFT


@pytest.mark.parametrize("options", ["announce", "publish", "publish,umask=077"])
def test_a_mount_that_announces_is_not_mapped(store, tmp_path, options):
    """Users publish in new/ under their own names, which the kernel would not say any more."""
    with Mount(store, tmp_path / "mnt", options) as mount:
        with pytest.raises(OSError) as failed:
            with mapped(mount.path, tmp_path / "pod"):
                pass
        assert failed.value.errno == errno.EINVAL


def test_everybody_gets_erofs_where_the_kernel_checks_modes(store, tmp_path):
    """Each change of a mount that is only read, for root as for others."""
    with Mount(store, tmp_path / "mnt") as mount:
        mount.let_in()
        file = mount / "models/text/1/more.txt"
        assert read_as(NOBODY, file) == (errno.EROFS, b"more")
        for act in ((os.chmod, file, 0o600), (os.truncate, file, 0), (os.unlink, file), (os.mkdir, mount / "models/x"),
                    (os.rename, file, mount / "y"), (os.link, file, mount / "z"), (os.utime, file), (os.chown, file, 1, 1),
                    (os.open, mount / "new.txt", os.O_WRONLY | os.O_CREAT)):
            refused_by(errno.EROFS, *act)
        refused_by(errno.EACCES, os.execv, file, ["more.txt"])
        assert not os.access(file, os.W_OK) and not os.access(file, os.X_OK) and os.access(file, os.R_OK)
