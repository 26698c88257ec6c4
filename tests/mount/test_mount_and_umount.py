"""mount(8) and umount(8): the types of file system, fstab, and mounts that are in use."""
import contextlib
import json
import os
import signal
import subprocess

import pytest

from weftlib import (NOBODY, Mount, in_mount_namespace, is_mounted, needs_mtab, programs_for_everybody,
                     random_tensors, run, store_with)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def installed(tmp_path):
    """What a shell script in a mount namespace does to have mount.weft in /sbin for itself, as it is installed."""
    (tmp_path / "sbin").mkdir()
    programs_for_everybody(tmp_path / "sbin")
    (tmp_path / "sbin/mount.fuse.weft").symlink_to("mount.weft")
    return f"mount -t overlay -o ro,lowerdir={tmp_path}/sbin:/usr/sbin overlay /usr/sbin"


@pytest.fixture
def mount_point(tmp_path):
    (tmp_path / "mnt").mkdir()
    return tmp_path / "mnt"


@needs_root
@pytest.mark.parametrize("kind", ["weft", "fuse.weft"])
def test_types(store, small_model, tmp_path, installed, mount_point, kind):
    """Both names of the type mount, on the command line and in fstab; umount takes the mount away."""
    store.publish(small_model, name="m")
    (tmp_path / "fstab").write_text(f"{store.path} {mount_point} {kind} ro 0 0\n")
    lines = in_mount_namespace(f"""
        {installed}
        mount -t {kind} {store.path} {mount_point}
        ls {mount_point}/models/m/1
        umount {mount_point}
        mount --fstab {tmp_path}/fstab {mount_point}
        ls {mount_point}/models/m/1
        findmnt -n -o FSTYPE {mount_point}
        umount {mount_point}
        ls {mount_point}""").stdout.split()
    files = sorted(os.listdir(small_model))
    assert lines == [*files, *files, "fuse.weft"]


@needs_root
@pytest.mark.parametrize("kind", ["weft", "fuse.weft"])
def test_mount_all_twice(store, tmp_path, installed, mount_point, kind):
    """The second time it says nothing and mounts nothing, also when fstab names links to the store and the mount point."""
    (tmp_path / "link").symlink_to(store.path)
    (tmp_path / "other").mkdir()
    (tmp_path / "to-other").symlink_to(tmp_path / "other")
    (tmp_path / "fstab").write_text(f"{store.path}/ {mount_point}/ {kind} defaults 0 0\n"
                                    f"{tmp_path}/link {tmp_path}/to-other {kind} defaults 0 0\n")
    done = in_mount_namespace(f"""
        {installed}
        mount --all --fstab {tmp_path}/fstab
        mount --all --fstab {tmp_path}/fstab 2>&1
        grep " fuse.weft " /proc/self/mounts | grep -c " {tmp_path}/"
        umount {mount_point}
        umount {tmp_path}/other""")
    assert (done.stdout, done.stderr) == ("2\n", "")


@needs_root
def test_mount_twice(store, tmp_path, installed, mount_point):
    (tmp_path / "fstab").write_text(f"{store.path} {mount_point} weft defaults 0 0\n")
    said = in_mount_namespace(f"""
        {installed}
        mount --fstab {tmp_path}/fstab {mount_point}
        mount --fstab {tmp_path}/fstab {mount_point} 2>&1 || echo $?
        umount {mount_point}""").stdout.splitlines()
    assert said == [f"mount.weft: mount point {mount_point}: the store {store.path} is mounted here already; "
                    f"unmount it first: weft umount {mount_point}", "32"]


@needs_root
def test_fstab_with_an_unknown_option(store, tmp_path, installed, mount_point):
    (tmp_path / "fstab").write_text(f"{store.path} {mount_point} weft ro,views=hidden 0 0\n")
    said = in_mount_namespace(f"""
        {installed}
        mount --fstab {tmp_path}/fstab {mount_point} 2>&1 || echo $?""").stdout.splitlines()
    assert said == ["mount.weft: unknown option views=hidden; remove it, also from /etc/fstab "
                    "(mount.weft --help lists the options)", "1"]


def with_a_file(path, **options):
    with open(path, "rb") as file:
        return subprocess.Popen(["sleep", "1000"], stdin=file, **options)


def with_a_directory(path, **options):
    return subprocess.Popen(["sleep", "1000"], cwd=path.parent, **options)


def with_a_mapping(path, **options):
    program = ("import mmap, os, sys, time; fd = os.open(sys.argv[1], os.O_RDONLY); "
               "kept = mmap.mmap(fd, 0, prot=mmap.PROT_READ); os.close(fd); print(flush=True); time.sleep(1000)")
    process = subprocess.Popen(["python3", "-c", program, path], stdout=subprocess.PIPE, **options)
    process.stdout.readline()
    return process


USES = {"file": (with_a_file, "sleep"), "directory": (with_a_directory, "sleep"), "mapping": (with_a_mapping, "python3")}


@contextlib.contextmanager
def user_of(path, use="file", **options):
    """A process that uses this file of a mount; as a message names it."""
    begin, command = USES[use]
    process = begin(path, **options)
    try:
        yield f"{command} (pid {process.pid})"
    finally:
        process.kill()
        process.communicate()


def busy_line(mount_point, *users):
    return f"weft: {mount_point}: in use by {', '.join(users)}; end them, or unmount with --lazy\n"


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])  # which is read by passthrough if root mounts
def test_busy(store, small_model, mount_point, use, file):
    store.publish(small_model, name="m")
    with Mount(store, mount_point) as mount:
        path = mount.version("m", 1) / file
        with user_of(path, use) as one, user_of(path) as two:
            done = store.weft("umount", mount_point, check=False)
        assert (done.returncode, done.stderr) == (1, busy_line(mount_point, one, two))
        assert (mount / "README").exists()
        store.weft("umount", mount_point)


def test_busy_with_many(store, small_model, mount_point):
    """The first five are named."""
    store.publish(small_model, name="m")
    with Mount(store, mount_point) as mount, contextlib.ExitStack() as processes:
        users = [processes.enter_context(user_of(mount / "README")) for _ in range(7)]
        done = store.weft("umount", mount_point, check=False)
        assert f"in use by {', '.join(users[:5])} and 2 more; end them" in done.stderr


def test_busy_and_no_answer(store, small_model, mount_point):
    """The processes are found without a question to the server."""
    store.publish(small_model, name="m")
    with Mount(store, mount_point) as mount, user_of(mount / "README", "directory") as user:
        server = json.loads((mount / ".weft/status").read_text())["mount"]["pid"]
        os.kill(server, signal.SIGSTOP)
        try:
            done = store.weft("umount", mount_point, check=False)
        finally:
            os.kill(server, signal.SIGCONT)
        assert (done.returncode, done.stderr) == (1, busy_line(mount_point, user))


@needs_root
def test_busy_mount_of_an_ordinary_user(open_dir, as_nobody):
    """Their mount keeps root out, who is told nonetheless who uses it."""
    needs_mtab()
    store = store_with(open_dir, random_tensors(1, 64, seed="busy"), group="nogroup")
    weft, mount_weft = (programs_for_everybody(open_dir) / name for name in ("weft", "mount.weft"))
    where = open_dir / "mnt"
    where.mkdir()
    os.chown(where, NOBODY, NOBODY)
    run([mount_weft, store.path, where], **as_nobody)
    try:
        with user_of(where / "README", "mapping", **as_nobody) as user:
            for caller in (as_nobody, {}):
                done = run([weft, "umount", where], check=False, **caller)
                assert (done.returncode, done.stderr) == (1, busy_line(where, user))
        run([weft, "umount", where], **as_nobody)
        assert not is_mounted(where)
    finally:
        run(["umount", "--lazy", where], check=False)


@needs_root
def test_ordinary_user_unmounts_the_mount_of_root(open_dir, as_nobody):
    needs_mtab()
    store = store_with(open_dir, random_tensors(1, 64, seed="root's"), group="nogroup")
    weft = programs_for_everybody(open_dir) / "weft"
    with Mount(store, open_dir / "mnt") as mount:
        done = run([weft, "umount", mount.path], check=False, **as_nobody)
        assert (done.returncode, done.stderr) == (
            1, f"weft: {mount.path}: another user mounted it; that user or root can unmount it\n")
        assert is_mounted(mount.path)
