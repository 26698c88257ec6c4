"""Root and a store of another user: links, pipes and other owners' files in it, and what root leaves there."""
import contextlib
import fcntl
import os
import pathlib
import shutil
import socket
import stat
import struct

import pytest

from weftlib import (MOUNT_WEFT, NOBODY, WEFT, Mount, Store, files_below, is_mounted, process_of, programs_for_everybody,
                     random_tensors, run, store_with, wait_until, write_model)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root and another user")

ANOTHER = 65533
F_OFD_GETLK = 36
SECONDS_MAX = 20
FILES = ["packs/*.pack", "packs/*.toc", "manifests/*", "journal/*.log", "journal/*.copy", "journal/weft-store",
         "index/data.mdb", "index/readers", "index/open", "index/queue", "index/writer", "index/gc", "weft-store",
         "daemon.lock"]
DIRECTORIES = ["packs", "manifests", "journal", "index", "tmp", "cache"]


def store_at(path):
    """A Store that is there already."""
    store = Store.__new__(Store)
    store.path = pathlib.Path(path)
    return store


class Theirs:
    """A store of an ordinary user with two versions, and a file and a directory that root alone can read."""

    def __init__(self, area, as_nobody):
        self.area, self.as_nobody = area, as_nobody
        self.weft = programs_for_everybody(area) / "weft"
        self.path = area / "store"
        self.store = store_at(self.path)
        self.user("init")
        for number in (1, 2):
            model = write_model(area / f"model{number}", random_tensors(2, 65536, seed=f"theirs {number}"))
            self.user("import", model, "--name", "m")
        self.model = write_model(area / "mine", random_tensors(2, 65536, seed="root's"))
        self.secret = area / "secret"

    def user(self, *arguments, check=True):
        return run([self.weft, "--store", self.path, *arguments], check=check, **self.as_nobody)

    def root(self, *arguments):
        return run([WEFT, "--store", self.path, *arguments], check=False, timeout=SECONDS_MAX)

    def make_secret(self, length):
        """Of this many bytes, none of which may be shown."""
        self.secret.write_bytes((b"only for root's eyes " * (length // 21 + 1))[:length])
        self.secret.chmod(0o600)

    def replace(self, pattern, kind):
        path = next(self.path.glob(pattern))
        self.make_secret(path.stat().st_size)
        path.unlink()
        if kind == "symlink":
            path.symlink_to(self.secret)
        elif kind == "hard link":
            path.hardlink_to(self.secret)
        else:
            os.mkfifo(path, 0o600)
            os.chown(path, NOBODY, NOBODY)


@pytest.fixture
def theirs(open_dir, as_nobody):
    return Theirs(open_dir, as_nobody)


def facts(path):
    """What nobody may change of a file: owner, mode, bytes and times."""
    st = os.lstat(path)
    return st.st_uid, st.st_gid, st.st_mode, st.st_size, st.st_mtime_ns, path.read_bytes()


def read_mount(store, where):
    """All bytes that a mount of root's shows, or what mount.weft said."""
    where.mkdir(exist_ok=True)
    mounted = run([MOUNT_WEFT, store, where], check=False, timeout=SECONDS_MAX)
    if mounted.returncode != 0:
        return mounted.stderr.encode(), mounted
    try:
        shown = b""
        for directory, _, names in os.walk(where / "models"):  # what cannot be listed is left out
            for name in names:
                with contextlib.suppress(OSError):
                    shown += pathlib.Path(directory, name).read_bytes()
        return shown, mounted
    finally:
        run(["umount", where])
        wait_until(lambda: not is_mounted(where))


def use_as_root(theirs):
    """All that root may do with a store; what it printed and showed."""
    shown, mounted = read_mount(theirs.path, theirs.area / "mnt")
    done = [mounted]
    for words in (["ls"], ["import", theirs.model, "--name", "root", "--quiet"], ["rm", "m@1"], ["gc", "--all"], ["fsck"],
                  ["fsck", "--rebuild"], ["scrub"], ["export", "m@2", theirs.area / "out"]):
        done.append(theirs.root(*words))
    for path in (theirs.area / "out").rglob("*"):
        shown += path.read_bytes() if path.is_file() else b""
    return shown + "".join(one.stdout + one.stderr for one in done).encode(), done


@pytest.mark.parametrize("kind", ["symlink", "hard link", "pipe"])
@pytest.mark.parametrize("pattern", FILES)
def test_a_file_that_is_none_of_the_owner(theirs, pattern, kind):
    """Its bytes are never shown and never changed, nothing waits for it, and a refusal names it."""
    theirs.replace(pattern, kind)
    name = next(theirs.path.glob(pattern)).name
    before = facts(theirs.secret)
    shown, done = use_as_root(theirs)
    assert b"root's eyes" not in shown
    after = facts(theirs.secret)
    assert after == before
    refused = [one.stderr for one in done if "expected no symbolic link" in one.stderr
               or "expected a regular file" in one.stderr or "expected a file of user" in one.stderr]
    assert all(name in text for text in refused)
    assert [one.args for one in done if one.returncode not in (0, 1, 32)] == []


@pytest.mark.parametrize("name", DIRECTORIES)
def test_a_directory_that_leads_elsewhere(theirs, name):
    """Root neither reads nor writes by way of a link in the place of a directory."""
    hidden = theirs.area / "hidden"
    shutil.copytree(theirs.path / name, hidden)
    hidden.chmod(0o700)
    shutil.rmtree(theirs.path / name)
    (theirs.path / name).symlink_to(hidden)
    before = sorted(os.listdir(hidden)), {path: facts(path) for path in hidden.rglob("*") if path.is_file()}
    _, done = use_as_root(theirs)
    assert before == (sorted(os.listdir(hidden)), {path: facts(path) for path in before[1]})
    assert any(f"/{name}: expected no symbolic link" in one.stderr or "Not a directory" in one.stderr
               or "Too many levels" in one.stderr or "symbolic link" in one.stderr for one in done)


def test_what_root_makes_is_the_owners(theirs):
    """The owner goes on after root's import, removal, gc, fsck and rebuild, and owns every file."""
    for words in (["import", theirs.model, "--name", "root"], ["tag", "root@1", "mine"], ["rm", "m@1"], ["gc", "--all"],
                  ["fsck"], ["fsck", "--rebuild"], ["scrub"]):
        done = theirs.root(*words)
        assert done.returncode == 0, done.stderr
    read_mount(theirs.path, theirs.area / "mnt")
    assert [path for path in theirs.path.rglob("*") if path.lstat().st_uid != NOBODY] == []
    theirs.user("tag", "root@1", "theirs")
    theirs.user("rm", "--force", "root@1")
    theirs.user("gc", "--all")
    theirs.user("fsck")
    theirs.user("import", theirs.model, "--name", "again")


@pytest.mark.parametrize("name", ["", *DIRECTORIES])
def test_root_refuses_what_others_write(theirs, name):
    """The message names the directory, its owner, its mode and the option, which helps."""
    directory = theirs.path / name if name else theirs.path
    directory.chmod(0o775)
    for command in (["ls"], ["import", theirs.model, "--name", "root"], ["fsck", "--rebuild"]):
        done = theirs.root(*command)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
        assert f"{directory}: owner {NOBODY}, mode 0775" in done.stderr and "--trust-store" in done.stderr
    shown, mounted = read_mount(theirs.path, theirs.area / "mnt")
    assert mounted.returncode == 32 and b"trust_store" in shown
    theirs.user("ls")
    assert "m" in run([WEFT, "--store", theirs.path, "--trust-store", "ls"]).stdout
    run([WEFT, "--trust-store", "--store", theirs.path, "import", theirs.model, "--name", "root"])
    with Mount(theirs.store, theirs.area / "mnt", "trust_store") as mount:
        assert (mount.version("m", 2) / "config.json").read_bytes()


def test_a_directory_of_another_owner(theirs):
    """Its owner could put anything there, so root refuses it too."""
    os.chown(theirs.path / "packs", ANOTHER, ANOTHER)
    done = theirs.root("ls")
    assert done.returncode == 1 and f"packs: owner {ANOTHER}, mode" in done.stderr


def test_the_owner_sees_what_is_open(theirs):
    """By a lock that excludes the owner's own, as long as a file of the version is open."""
    def is_open(version):
        with open(theirs.path / "index/open", "r+b") as file:
            query = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, version, 1, 0)
            return struct.unpack("hhqqi4x", fcntl.fcntl(file, F_OFD_GETLK, query))[0] != fcntl.F_UNLCK

    with Mount(theirs.store, theirs.area / "mnt") as mount:
        assert not any(is_open(version) for version in range(10))
        with (mount.version("m", 2) / "config.json").open("rb") as file:
            assert file.read() and any(is_open(version) for version in range(10))


def test_trust_store_follows_no_link(theirs):
    """It drops the look at owners, and nothing else."""
    pack = next(theirs.path.glob("packs/*.pack"))
    os.chown(pack, ANOTHER, ANOTHER)
    assert theirs.root("fsck").returncode == 1
    assert run([WEFT, "--store", theirs.path, "--trust-store", "fsck"], check=False).returncode == 0
    theirs.replace("packs/*.pack", "symlink")
    done = run([WEFT, "--store", theirs.path, "--trust-store", "fsck"], check=False)
    assert done.returncode == 1 and "expected no symbolic link" in done.stdout + done.stderr


def test_a_store_of_a_group_is_not_refused(tmp_path):
    """`weft init --group` lets the group read, and write nothing."""
    store = store_with(tmp_path, random_tensors(1, 4096, seed="group"), group="nogroup")
    assert stat.S_IMODE(store.path.stat().st_mode) & 0o022 == 0
    store.assert_sound()


def test_an_ordinary_user_meets_the_same_rule(open_dir, as_nobody):
    """A file of a third user in a store is not read by a user who reads the store."""
    store = store_with(open_dir, random_tensors(1, 4096, seed="third"), group="nogroup")
    weft = programs_for_everybody(open_dir) / "weft"
    manifest = next((store.path / "manifests").iterdir())
    os.chown(manifest, ANOTHER, ANOTHER)
    done = run([weft, "--store", store.path, "export", "m", open_dir / "out"], check=False, **as_nobody)
    assert done.returncode == 1 and f"expected a file of user 0, as its directory is, got one of user {ANOTHER}" in done.stderr


def listening(path, user):
    """A socket there that a process of this user listens at."""
    def listen(companion):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            listener.listen()
            companion.is_ready()
            companion.is_over(wait=True)
    return process_of(user, listen)


def test_the_socket_is_the_owners(theirs):
    """Root connects by no link, to no socket of another owner, and believes no daemon of a third user."""
    elsewhere = theirs.area / "elsewhere.sock"
    place = theirs.path / "weftd.sock"
    command = ["tag", "m@1", "x"]
    with listening(elsewhere, ANOTHER):
        place.symlink_to(elsewhere)
        done = theirs.root(*command)
        assert done.returncode == 1 and "weftd.sock: expected no symbolic link" in done.stderr
        place.unlink()
        os.link(elsewhere, place)
        done = theirs.root(*command)
        assert done.returncode == 1 and f"weftd.sock: expected a file of user {NOBODY}" in done.stderr
        os.chown(place, NOBODY, NOBODY)
        done = theirs.root(*command)
        assert done.returncode == 1 and f"got one of user {ANOTHER}" in done.stderr
        place.unlink()
    place.write_text("")
    done = theirs.root(*command)
    assert done.returncode == 1 and "weftd.sock: expected a socket" in done.stderr


def swapping(theirs, pattern):
    """The owner swaps a file of the store for a link to root's, to and fro, as fast as this can be done."""
    path = next(theirs.path.glob(pattern))
    theirs.make_secret(path.stat().st_size)
    link, aside = path.with_name("link"), path.with_name("aside")

    def swap(companion):
        os.symlink(theirs.secret, link)
        companion.is_ready()
        while not companion.is_over():
            with contextlib.suppress(FileNotFoundError):
                os.rename(path, aside)
                os.rename(link, path)
                os.rename(path, link)
                os.rename(aside, path)
        os.unlink(link)
    return process_of(NOBODY, swap)


@pytest.mark.parametrize("pattern", ["packs/*.pack", "packs/*.toc", "manifests/*", "journal/*.log", "journal/*.copy",
                                     "index/data.mdb"])
def test_swaps_beside_root(theirs, pattern):
    """Whenever the link is there, root sees a refusal or the file, and never root's own file."""
    with swapping(theirs, pattern):
        before = facts(theirs.secret)
        for _ in range(5):
            shown, _ = use_as_root(theirs)
            assert b"root's eyes" not in shown
        assert facts(theirs.secret) == before


def test_files_of_the_model_are_whole(theirs):
    """What root exports of the store of another user is what the user published."""
    done = theirs.root("export", "m@2", theirs.area / "out")
    assert done.returncode == 0, done.stderr
    assert files_below(theirs.area / "out") == files_below(theirs.area / "model2")
