"""`weft mount /dev/fd/N`: another process mounts, and weft serves the mount by the descriptor that it gets."""
import ctypes
import errno
import fcntl
import json
import os
import pathlib
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from slowfile import IN_HEADER, OUT_HEADER
from weftlib import (HAS_LINUX_6_9, MOUNT_FAILED, MOUNT_WEFT, NOBODY, PATIENCE, WEFT, Mount, assert_refused, environment,
                     files_below, in_mount_namespace, is_mounted, programs_for_everybody, random_tensors, refused_by, run,
                     store_with, wait_until)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting by mount(2) needs root")

READ_ONLY, NO_SUID, NO_DEV, FORCE, DETACH = 1, 2, 4, 1, 2  # of mount(2) and umount2(2)
INIT, STATFS = 26, 17
# An ordinary user without a capability in a user namespace that knows no user, and who can get no other rights.
POWERLESS = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", "--inh-caps=-all",
             "--bounding-set=-all", "unshare", "--user"]
LIBC = ctypes.CDLL(None, use_errno=True)


class PassedMount(Mount):
    """A mount of the test's process, whose descriptor `device` a server has to get."""

    def __init__(self, store, where):
        super().__init__(store, where)
        self.device, self.server = -1, None

    def __enter__(self):
        self.path.mkdir(exist_ok=True)
        opened = os.open("/dev/fuse", os.O_RDWR)
        self.device = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, 10)  # no number that a program opens a file with
        os.close(opened)
        options = f"fd={self.device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
        if LIBC.mount(os.fsencode(self.store.path), os.fsencode(self.path), b"fuse.weft", READ_ONLY | NO_SUID | NO_DEV,
                      options.encode()) != 0:
            self.close()
            raise OSError(ctypes.get_errno(), "mount")
        return self

    def __exit__(self, *exception):
        self.close()  # a mount without a server answers by an error from here on
        if is_mounted(self.path):
            LIBC.umount2(os.fsencode(self.path), DETACH)
        if self.server:
            self.server.kill()
            self.server.wait()
        self.kill()

    @property
    def name(self):
        return f"/dev/fd/{self.device}"

    def close(self):
        if self.device >= 0:
            os.close(self.device)
        self.device = -1

    def unmount(self, flags=0):
        assert LIBC.umount2(os.fsencode(self.path), flags) == 0, os.strerror(ctypes.get_errno())
        assert not is_mounted(self.path)

    def serve(self, *command, **options):
        """Passes the descriptor to a command that goes to the background."""
        done = run(command, pass_fds=[self.device], **options)
        self.close()
        return done

    def start(self, log, *command, **options):
        """The same for one that stays in the foreground. Returns when the log says that the mount answers."""
        self.server = subprocess.Popen([str(word) for word in command], pass_fds=[self.device], stdin=subprocess.DEVNULL,
                                       **({"env": environment()} | options))
        self.close()
        wait_until(lambda: self.server.poll() is not None or (log.exists() and "serving " in log.read_text()),
                   seconds_max=60 * PATIENCE)
        assert self.server.poll() is None
        return self.server

    def ended(self):
        """Waits for the end of the server of start(). Returns its exit code. No process of the mount is left then."""
        code = self.server.wait(30 * PATIENCE)
        wait_until(lambda: not self.server_pids())
        return code

    def server_pids(self):
        """Processes of mount.weft whose command line names this store."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"mount.weft") and os.fsencode(self.store.path) in words:
                found.append(int(entry.name))
        return found


@pytest.fixture(name="store")
def fixture_store(open_dir):
    """It has m@1. Users of a group may read it."""
    return store_with(open_dir, random_tensors(3, 1 << 18, seed="passed"), group="nogroup")


@pytest.fixture(name="mount")
def fixture_mount(store, open_dir):
    with PassedMount(store, open_dir / "mnt") as mount:
        yield mount


def published(mount):
    """Whether the mount has the files of m@1, byte for byte."""
    return files_below(mount.version("m", 1)) == files_below(mount.store.path.parent / "model")


def status_of(mount):
    return json.loads((mount / ".weft/status").read_text())["mount"]


def mounts_here():
    return pathlib.Path("/proc/self/mountinfo").read_text()


def capabilities(pid):
    """The bits of the permitted and the effective set."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return [int(bits, 16) for bits in re.findall(r"^Cap(?:Prm|Eff):\s*(\w+)", status, flags=re.M)]


@pytest.mark.parametrize("rights", [[], POWERLESS], ids=["root", "powerless"])
def test_it_is_served_until_it_is_unmounted(mount, open_dir, rights):
    if run([*rights, "true"], check=False).returncode != 0:
        pytest.skip("no user name space can be made here (as in a chroot)")
    programs, log, before = programs_for_everybody(open_dir), open_dir / "log", mounts_here()
    mount.start(log, *rights, programs / "weft", "--store", mount.store.path, "mount", mount.name, "--foreground", "-o",
                f"log={log},cold=fetch")
    assert published(mount)
    assert mounts_here() == before  # nothing was mounted besides
    pids = mount.server_pids()
    assert len(pids) == 2
    if rights:
        assert [capabilities(pid) for pid in pids] == [[0, 0]] * 2
    mount.unmount()
    assert mount.ended() == 0


@pytest.mark.skipif(not HAS_LINUX_6_9, reason="a server follows another one since Linux 6.9")
def test_servers_follow_each_other(mount):
    """In the background, through an upgrade and a kill."""
    done = mount.serve(WEFT, "--store", mount.store.path, "mount", mount.name)
    assert done.stdout == ""  # no path to suggest
    assert published(mount)
    mount.store.weft("mount", "--upgrade", mount.path)
    assert published(mount)
    server = mount.figure("pid")
    os.kill(server, signal.SIGKILL)
    assert published(mount)
    wait_until(lambda: mount.figure("pid") != server)
    mount.unmount()
    wait_until(lambda: not mount.server_pids())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_and_not_the_mount(mount, open_dir, number):
    log = open_dir / "log"
    server = mount.start(log, MOUNT_WEFT, mount.store.path, mount.name, "-f", "-o", f"log={log}")
    server.send_signal(number)
    assert mount.ended() == 0
    refused_by(errno.ENOTCONN, os.statvfs, mount.path)
    assert is_mounted(mount.path)


def test_a_passed_mount_is_as_any_other(mount, open_dir):
    """Root's is read in the same way, and `weft` finds it. It has a directory where the kernel says which mount it is."""
    says = "fuse_connection:" in pathlib.Path(f"/proc/self/fdinfo/{mount.device}").read_text()
    name = mount.name
    mount.serve(MOUNT_WEFT, mount.store.path, name)
    with Mount(mount.store, open_dir / "plain") as plain:
        own, other = status_of(mount), status_of(plain)
    assert own["mode"] == other["mode"]
    assert own.get("read_ahead_kb") == (other.get("read_ahead_kb") if says else None)
    assert own["directory"] == (str(mount.path) if says else name)
    assert f"mounts    {mount.path}\n" in mount.store.weft("status").stdout
    mount.store.weft("umount", mount.path)
    assert not is_mounted(mount.path)
    assert not mount.server_pids()


def test_passthrough_can_be_left_out(mount):
    mount.serve(MOUNT_WEFT, mount.store.path, mount.name, "-o", "passthrough=off")
    status = status_of(mount)
    assert status["mode"] == "cached" and "passthrough=off" in status["mode_reason"], status
    assert published(mount)
    mount.unmount()
    wait_until(lambda: not mount.server_pids())


HIDE = f"""
import ctypes, os, sys
assert ctypes.CDLL(None).umount2(os.fsencode(sys.argv[1]), {DETACH}) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_a_server_that_does_not_see_the_mount(mount):
    """In another mount namespace, as that of a container."""
    name = mount.name
    mount.serve("unshare", "--mount", "--propagation", "unchanged", sys.executable, "-c", HIDE, mount.path, MOUNT_WEFT,
                mount.store.path, name)
    assert published(mount)
    assert mount.figure("directory") == name
    mount.unmount()
    wait_until(lambda: not mount.server_pids())


def test_as_the_manual_does_it(store, open_dir):
    """By mount(8), in a shell."""
    where = open_dir / "mnt"
    where.mkdir()
    script = f"""
        exec 7<>/dev/fuse
        mount -i -t fuse -o subtype=weft,ro,fd=7,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions \
          {store.path} {where}
        {WEFT} --store {store.path} mount /dev/fd/7
        exec 7>&-
        cmp {where}/models/m/1/model.safetensors {open_dir}/model/model.safetensors
        {WEFT} --store {store.path} umount {where}"""
    assert in_mount_namespace(script).stdout == ""


def assert_not_served(store, name, *words, descriptors=()):
    for command in ([MOUNT_WEFT, store.path, name], [WEFT, "--store", store.path, "mount", name]):
        done = run(command, check=False, pass_fds=descriptors)
        assert_refused(done, "mount point ", *words, code=MOUNT_FAILED)


@pytest.mark.parametrize("name", ["/dev/fd/", "/dev/fd/x", "/dev/fd/-1", "/dev/fd/99999999999", "/dev/fd/7/x"])
def test_no_number(store, name):
    assert_not_served(store, name, name, "expected /dev/fd/N")


def test_closed_descriptor(store):
    for number in (3, 5, 999):
        assert_not_served(store, f"/dev/fd/{number}", f"/dev/fd/{number}: descriptor {number} is not open")


@pytest.mark.parametrize("path, flags, why", [("/dev/null", os.O_RDWR, "is not of /dev/fuse"),
                                              ("/proc/self/exe", os.O_RDONLY, "is not of /dev/fuse"),
                                              ("/", os.O_RDONLY, "is not of /dev/fuse"),
                                              ("/dev/fuse", os.O_RDONLY, "is not open for reading and writing"),
                                              ("/dev/fuse", os.O_RDWR, "nothing is mounted with this descriptor")])
def test_descriptor_without_a_mount(store, path, flags, why):
    descriptor = os.open(path, flags)
    try:
        assert_not_served(store, f"/dev/fd/{descriptor}", f"/dev/fd/{descriptor}: ", why, descriptors=[descriptor])
    finally:
        os.close(descriptor)


def test_mount_that_is_gone(mount):
    mount.unmount()
    assert_not_served(mount.store, mount.name, f"{mount.name}: its mount is gone", descriptors=[mount.device])


def test_mount_that_weft_serves(mount):
    """The server goes on."""
    run([MOUNT_WEFT, mount.store.path, mount.name], pass_fds=[mount.device])
    server = mount.figure("pid")
    assert_not_served(mount.store, mount.name, "its mount has a server already", descriptors=[mount.device])
    assert published(mount)
    assert mount.figure("pid") == server


def statfs_outcome(path):
    try:
        os.statvfs(path)
    except OSError as failed:
        return failed.errno
    return 0


@pytest.mark.parametrize("write_bytes_max", [4096, 1 << 17])
def test_mount_that_another_program_serves(mount, write_bytes_max):
    """Its requests are not lost: they wait for that program, or fail if it takes only small writes."""
    _, opcode, number, *_ = IN_HEADER.unpack_from(os.read(mount.device, 8192))
    assert opcode == INIT
    assert_not_served(mount.store, mount.name, "its mount has a server already", descriptors=[mount.device])
    answer = struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 0, 0, write_bytes_max, 1, 0, 0, *[0] * 8)
    os.write(mount.device, OUT_HEADER.pack(OUT_HEADER.size + len(answer), 0, number) + answer)
    outcomes = []
    asking = threading.Thread(target=lambda: outcomes.append(statfs_outcome(mount.path)), daemon=True)
    asking.start()
    wait_until(lambda: select.select([mount.device], [], [], 0)[0])
    done = run([MOUNT_WEFT, mount.store.path, mount.name], check=False, pass_fds=[mount.device])
    assert_refused(done, "its mount has a server already", code=MOUNT_FAILED)
    if write_bytes_max > 8192:
        _, opcode, number, *_ = IN_HEADER.unpack_from(os.read(mount.device, 2 * write_bytes_max))
        assert opcode == STATFS
        os.write(mount.device, OUT_HEADER.pack(OUT_HEADER.size, -errno.ENOSYS, number))
    asking.join(30 * PATIENCE)
    assert outcomes == [errno.ENOSYS if write_bytes_max > 8192 else errno.EIO]


@pytest.mark.parametrize("options, words", [("publish", "publish needs a mount that mount.weft makes"),
                                            ("announce", "announce needs a mount that mount.weft makes"),
                                            ("noexec", "noexec: an option for the program that mounts"),
                                            ("context=a", "context=a: an option for the program that mounts")])
def test_options_of_the_mount(mount, options, words):
    """The mount can be served afterwards."""
    done = run([MOUNT_WEFT, mount.store.path, mount.name, "-o", options], check=False, pass_fds=[mount.device])
    assert_refused(done, f"{mount.name}: {words}", code=1)
    mount.serve(MOUNT_WEFT, mount.store.path, mount.name)
    assert published(mount)


def test_a_store_that_cannot_be_served_leaves_the_mount_to_the_next(mount, open_dir):
    done = run([MOUNT_WEFT, open_dir / "none", mount.name], check=False, pass_fds=[mount.device])
    assert_refused(done, open_dir / "none", code=MOUNT_FAILED)
    mount.serve(MOUNT_WEFT, mount.store.path, mount.name)
    assert published(mount)


def refuses_a_store_below(area, words, code):
    """The words of a program that gets the store, and then its mount point."""
    (area / "below").mkdir(parents=True)
    (area / "link").symlink_to("below/store")
    store = store_with(area / "below", random_tensors(1, 4096, seed="below"))
    with PassedMount(store, area / "below") as mount:
        done = run([*words(area / "link"), mount.name], check=False, pass_fds=[mount.device])
        assert_refused(done, "mount point ", f"the store {area}/link does not answer within 10 s", code=code)
        assert is_mounted(mount.path)


def test_a_store_below_the_mount(open_dir):
    """Nobody answers there yet, so a server would wait for itself for ever. A link leads there too. Both programs wait at
    the same time."""
    with ThreadPoolExecutor() as pool:
        waits = [pool.submit(refuses_a_store_below, open_dir / "1", lambda link: [WEFT, "--store", link, "mount"], 1),
                 pool.submit(refuses_a_store_below, open_dir / "2", lambda link: [MOUNT_WEFT, link], MOUNT_FAILED)]
        for wait in waits:
            wait.result()


def test_hub_through_the_environment(store, open_dir):
    """In a container whose only knowledge is HF_HUB_CACHE: the links of hub lead to files of the same bind mount."""
    inside = open_dir / "inside"
    inside.mkdir()
    with Mount(store, open_dir / "mnt") as mount:
        server = mount.figure("pid")
        done = in_mount_namespace(f"""
            mount --bind {mount.path} {inside}
            umount {mount.path}
            export HF_HUB_CACHE={inside}/hub
            cmp "$HF_HUB_CACHE/models--m/snapshots/$(cat "$HF_HUB_CACHE/models--m/refs/main")/model.safetensors" \\
              {open_dir}/model/model.safetensors
            cat {inside}/.weft/status""")
    assert json.loads(done.stdout)["mount"]["pid"] == server


def root_file_system(directory):
    """The root directory of a container: our programs, the libraries that they need, and empty directories."""
    for name in ("bin", "dev", "etc", "proc", "run", "sys", "tmp"):
        (directory / name).mkdir(parents=True)
    programs_for_everybody(directory / "bin")
    for program in (WEFT, MOUNT_WEFT):
        for library in re.findall(r"(/\S+) \(0x", run(["ldd", program]).stdout):
            place = directory / library.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, place)
    return directory


# crun refuses a tree of cgroups of both versions, so podman sees that of version 2 alone.
WITH_CGROUP2 = """[ "$(stat --file-system --format %T /sys/fs/cgroup)" = cgroup2fs ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec "$@" """


@pytest.fixture(name="podman")
def fixture_podman(open_dir):
    """Words that run a program in a container of an ordinary user, and the options of the process. It has no network
    and no image, and keeps what it writes in `open_dir`."""
    if shutil.which("podman") is None:
        pytest.skip("needs podman")
    env = environment(HOME=str(open_dir / "home"), XDG_RUNTIME_DIR=str(open_dir / "runtime"), TMPDIR=str(open_dir / "home"))
    for name in ("home", "runtime"):
        (open_dir / name).mkdir(mode=0o700)
        os.chown(open_dir / name, NOBODY, NOBODY)
    as_user = ["unshare", "--mount", "--propagation", "unchanged", "sh", "-ec", WITH_CGROUP2, "sh",
               "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
               "podman", "--root", open_dir / "home/storage", "--runroot", open_dir / "runtime/storage", "--storage-driver",
               "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "none"]
    options = {"env": env, "cwd": "/"}
    yield [*as_user, "run", "--rm", "--network", "none", "--cgroups", "disabled", "--log-driver", "none"], options
    run([*as_user, "rm", "--all", "--force", "--time", "0"], check=False, **options)
    run([*as_user, "system", "migrate"], check=False, **options)  # ends the process that keeps the user namespace


def owned_by_nobody(directory):
    run(["chown", "-R", "--no-dereference", f"{NOBODY}:{NOBODY}", directory])


def test_in_a_rootless_container(store, open_dir, podman):
    """`podman run` of an ordinary user without --privileged, from a directory in place of an image."""
    run_words, options = podman
    root, log = root_file_system(open_dir / "root"), open_dir / "root/tmp/log"
    shutil.copytree(store.path, root / "store", symlinks=True)
    owned_by_nobody(root)
    tried = run([*run_words, "--rootfs", root, "/bin/weft", "--version"], check=False, **options)
    if tried.returncode != 0:
        pytest.skip(f"podman runs no container here: {tried.stderr.strip()}")
    with PassedMount(store, open_dir / "mnt") as mount:
        # The container gets the descriptor as number 3, as the first of those that are kept.
        mount.start(log, "bash", "-c", f'exec "$@" 3<&{mount.device}-', "bash", *run_words, "--preserve-fds=1", "--rootfs",
                    root, "/bin/weft", "--store", "/store", "mount", "/dev/fd/3", "--foreground", "-o", "log=/tmp/log",
                    **options)
        assert published(mount)
        assert mount.figure("directory") == "/dev/fd/3"
        mount.unmount(FORCE | DETACH)  # podman's own mount namespace may have a copy of the mount
        assert mount.ended() == 0
