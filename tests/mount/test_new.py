"""new/ of a mount that publishes: what programs write there becomes a version by one rename."""
import contextlib
import errno
import json
import mmap
import os
import pathlib
import shutil
import socket
import stat

import pytest

from checkpoints import dcp_metadata
from daemonlib import Daemon
from weftlib import (NOBODY, Mount, Store, act_as, files_below, random_bytes, random_tensors, refused_by, run,
                     safetensors_bytes, write_model)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def mounted(tmp_path):
    with Mount(Store(tmp_path / "store"), tmp_path / "mnt", "publish") as mount:
        yield mount


def published(mount, name="m", tag=""):
    """Renames new/NAME and returns the directory that `latest` then leads to."""
    os.rename(mount / "new" / name, mount / "new" / f"{name}@{tag}")
    return pathlib.Path(os.path.realpath(mount / "models" / name / "latest"))


def test_a_rename_publishes_a_directory(mounted, tmp_path):
    model = write_model(tmp_path / "model", random_tensors(6, 1 << 20, seed="new"), files=[("a/b/config.json", b"{}")])
    shutil.copytree(model, mounted / "new/m")
    version = published(mounted, tag="prod")
    assert version == mounted.version("m", 1)
    assert files_below(version) == files_below(model)
    assert os.readlink(mounted / "models/m/prod") == "1"
    assert os.listdir(mounted / "new") == []
    assert not list((mounted.store.path / "drafts/publishing").glob("*/held/content"))
    mounted.store.assert_sound()


def test_the_same_two_lines_publish_the_next_version(mounted):
    for number in range(1, 6):
        (mounted / "new/m").mkdir()
        (mounted / "new/m/x").write_bytes(random_bytes(3_000_000, number))
        assert published(mounted).name == str(number)
    (mounted / "new/m").mkdir()
    (mounted / "new/m/x").write_bytes(random_bytes(3_000_000, 5))
    assert published(mounted).name == "5", "equal content makes no version"


def test_a_file_can_be_a_draft(mounted):
    content = safetensors_bytes(random_tensors(2, 1 << 20, seed="file"))
    (mounted / "new/model.safetensors").write_bytes(content)
    os.rename(mounted / "new/model.safetensors", mounted / "new/one@v1")
    assert (mounted / "models/one/v1/model.safetensors").read_bytes() == content


def test_mv_publishes(mounted):
    (mounted / "new/run").mkdir()
    (mounted / "new/run/checkpoint-500").mkdir()
    (mounted / "new/run/checkpoint-500/w.bin").write_bytes(random_bytes(2_000_000, "mv"))
    (mounted / "new/org").mkdir()
    before = (mounted / "new/run").stat().st_mode
    run(["mv", mounted / "new/run/checkpoint-500", mounted / "new/org/m@prod"])
    assert (mounted / "new/run").stat().st_mode == before, "it is a draft as before"
    assert stat.S_IMODE((mounted / "new/org").stat().st_mode) == 0o1777, "and this is a namespace"
    assert (mounted / "models/org/m/prod/w.bin").stat().st_size == 2_000_000
    assert os.listdir(mounted / "new/run") == []


def test_facts_go_with_the_draft(mounted):
    (mounted / "new/m").mkdir()
    (mounted / "new/m/x").write_bytes(b"x")
    facts = {"message": "step 7", "metrics": {"loss": 0.25, "step": 7}, "tags": ["a", "b"]}
    (mounted / "new/m/.weft.json").write_text(json.dumps(facts))
    version = published(mounted)
    assert os.listdir(version) == ["x"]
    log = mounted.store.json("log", "m@1")
    assert "step 7" in json.dumps(log) and "0.25" in json.dumps(log)
    assert {"a", "b"} <= set(os.listdir(mounted / "models/m"))


def test_what_a_file_holds_is_taken_and_not_copied(mounted):
    """A large file of which nothing is known becomes the pack as it lies."""
    (mounted / "new/m").mkdir()
    draft = mounted / "new/m/x.bin"
    draft.write_bytes(random_bytes(8 << 20, "taken"))
    number = (mounted.store.path / "drafts/tree/m/x.bin").stat().st_ino
    published(mounted)
    packs = {path.stat().st_ino: path for path in (mounted.store.path / "packs").glob("*.pack")}
    assert number in packs and packs[number].stat().st_nlink == 1
    assert stat.S_IMODE(packs[number].stat().st_mode) == 0o644


def test_what_is_known_is_not_stored_again(mounted):
    tensors = random_tensors(8, 1 << 20, seed="derived")
    write_model(mounted / "new/m", tensors)
    published(mounted)
    before = mounted.store.pack_bytes()
    changed = dict(tensors)
    name = next(iter(changed))
    changed[name] = next(iter(random_tensors(1, 1 << 20, seed="other").values()))
    model = write_model(mounted / "new/m", changed)
    expected = files_below(model)
    version = published(mounted)
    assert files_below(version) == expected
    assert mounted.store.pack_bytes() - before < (2 << 20)
    mounted.store.assert_sound()


TREES = ("", "models", "layers", "tensors", "safetensors", "lineage", "hub", "datasets", "records", ".weft")


def changes_outside_new(mount, version, mine):
    """Of each tree, of a version with a file x, and of a draft of the user's with a file x."""
    make = os.O_WRONLY | os.O_CREAT
    for tree in TREES:
        inside = mount / tree
        yield os.mkdir, inside / "y"
        yield os.open, inside / "y", make
        yield os.open, inside / "y", os.O_RDONLY | os.O_CREAT
        yield os.open, inside / "y", make | os.O_EXCL
        yield os.symlink, "a", inside / "y"
        yield os.mkfifo, inside / "y"
        yield os.mknod, inside / "y", stat.S_IFSOCK
        yield os.mknod, inside / "y", stat.S_IFREG
        yield os.link, version / "x", inside / "y"
        yield os.link, mine / "x", inside / "y"
        yield os.rename, mine, inside / "y"
        yield os.rename, mine / "x", inside / "y"
        yield os.rename, mine / "x", inside / "y@"
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT, os.O_RDONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
        yield os.open, version / "x", flags
    for file in (version / "x", version, version.parent, mount / "README", mount / ".weft/status", mount / "models", mount.path):
        yield os.chmod, file, 0o700
        yield os.chown, file, os.geteuid(), -1
        yield os.utime, file
        yield os.utime, file, (5, 7)
        yield os.setxattr, file, "user.a", b"1"
        yield os.removexattr, file, "user.a"
    yield os.truncate, version / "x", 0
    yield os.unlink, version / "x"
    yield os.unlink, version.parent / "latest"
    yield os.unlink, mount / "README"
    yield os.rmdir, version
    yield os.rmdir, mount / "models"
    yield os.rmdir, mount / "new"
    yield os.rename, mount / "new", mount / "newer"
    yield os.rename, mount / "models", mount / "new/models"
    yield os.rename, version, version.parent / "7"
    for name in ("z", "m@", "m@prod"):
        yield os.rename, version, mount / "new" / name
        yield os.rename, version / "x", mount / "new" / name
    yield os.rename, version / "x", mine / "x"


@pytest.mark.parametrize("user", [0, NOBODY])
def test_outside_new_everything_is_read_only(user, mounted):
    """As on a file system that is mounted read-only, whoever asks."""
    mounted.let_in()
    for name in ("m", "mine"):
        (mounted / "new" / name).mkdir()
        (mounted / "new" / name / "x").write_bytes(b"x")
    version, mine = published(mounted), mounted / "new/mine"
    for path in (mine / "x", mine):
        os.chown(path, user, user)
    before = files_below(mounted / "models"), files_below(mine)

    def change():
        for act, *arguments in changes_outside_new(mounted, version, mine):
            try:
                act(*arguments)
                failed = "nothing"
            except OSError as error:
                failed = errno.errorcode[error.errno]
            assert failed == "EROFS", (act.__name__, arguments, failed)

    act_as(user, change)
    if user == 0:
        refused_by(errno.EROFS, os.mknod, mounted / "models/y", stat.S_IFCHR, os.makedev(1, 3))
    assert (files_below(mounted / "models"), files_below(mine)) == before


def test_a_draft_that_is_written_to_is_busy(mounted):
    (mounted / "new/m").mkdir()
    draft = mounted / "new/m/x"
    with open(draft, "wb") as file:
        file.write(b"half")
        file.flush()
        refused_by(errno.EBUSY, published, mounted)
    assert "x: somebody has it open for writing" in (mounted / "new/m/.weft.error").read_text()
    assert published(mounted).name == "1"


def test_a_reader_makes_no_draft_busy(mounted):
    (mounted / "new/m").mkdir()
    (mounted / "new/m/x").write_bytes(b"x" * 70_000)
    with open(mounted / "new/m/x", "rb") as reader, open(mounted / "new/m/x", "ab"):
        refused_by(errno.EBUSY, published, mounted)
        assert reader.read(1) == b"x"
    with open(mounted / "new/m/x", "rb") as reader:
        assert published(mounted).name == "1"
        assert reader.read() == b"x" * 70_000


def test_a_draft_that_is_mapped_is_busy(mounted):
    (mounted / "new/m").mkdir()
    with open(mounted / "new/m/x", "w+b") as file:
        file.truncate(1 << 20)
        mapping = mmap.mmap(file.fileno(), 1 << 20)
    mapping[5] = 7
    refused_by(errno.EBUSY, published, mounted)
    mapping.close()
    assert (published(mounted) / "x").read_bytes()[5] == 7


ELSEWHERE = "save to a shared file system and `weft import` it"
# What makes a draft bad, and what the line about it says: which file, what is wrong, and what else to do.
BAD_DRAFTS = {
    "a link that leads out": (lambda draft: os.symlink("/etc/passwd", draft / "link"), ["link: expected a link to a file of the draft"]),
    "a link that climbs out": (lambda draft: os.symlink("../../../store/weft-store", draft / "link"),
                               ["link: expected a link to a file of the draft"]),
    "a link to a directory": (lambda draft: os.symlink(".", draft / "link"), ["link: expected a link to a file"]),
    "a name that is not UTF-8": (lambda draft: (draft / os.fsdecode(b"n\xff")).write_bytes(b"x"), ["n\\xff", "expected UTF-8"]),
    "facts that are no JSON": (lambda draft: (draft / ".weft.json").write_text("{"), [".weft.json: "]),
    "facts of another kind": (lambda draft: (draft / ".weft.json").write_text('{"metrics": 7}'), [".weft.json: ", "metrics"]),
    "facts nobody knows": (lambda draft: (draft / ".weft.json").write_text('{"colour": "red"}'), [".weft.json: ", 'got "colour"']),
    "facts above their bound": (lambda draft: (draft / ".weft.json").write_text(" " * (1 << 20) + "{}"),
                                [".weft.json: expected a file of at most 1048576 bytes, got 1048578"]),
    "facts in a directory": (lambda draft: (draft / ".weft.json").mkdir(), [".weft.json: "]),
    "a distributed checkpoint without its index": (lambda draft: (draft / "__0_0.distcp").write_bytes(b"x"),
                                                   ["__0_0.distcp: ", "without .metadata", ELSEWHERE]),
    "a rank of a distributed checkpoint without its index": (
        lambda draft: [(draft / "__0.metadata").write_bytes(dcp_metadata(["__0_0.distcp"])),
                       *((draft / name).write_bytes(b"x") for name in ("__0_0.distcp", "__1_0.distcp"))],
        ["__1_0.distcp: ", "without __1.metadata", ELSEWHERE]),
    "a distributed checkpoint without a part": (lambda draft: (draft / ".metadata").write_bytes(dcp_metadata(["__1_0.distcp"])),
                                                [".metadata: ", "the part __1_0.distcp, which is not here", ELSEWHERE]),
    "a distributed checkpoint whose index has not its name yet": (
        lambda draft: [(draft / name).write_bytes(dcp_metadata(["__0_0.distcp"])) for name in (".metadata.tmp", "__0_0.distcp")],
        ["__0_0.distcp: ", "without .metadata"]),
    "a distributed checkpoint with a part that is cut off": (
        lambda draft: [(draft / ".metadata").write_bytes(dcp_metadata(["__0_0.distcp"])), (draft / "__0_0.distcp").touch()],
        [".metadata: expected at least 1 bytes of its part __0_0.distcp, got 0"]),
    "a safetensors file that is cut off": (lambda draft: (draft / "m.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{"),
                                           ["m.safetensors: "]),
}


@pytest.mark.parametrize("what", BAD_DRAFTS)
def test_a_bad_draft_stays(what, mounted):
    draft = mounted / "new/m"
    draft.mkdir()
    (draft / "x").write_bytes(b"x")
    spoil, words = BAD_DRAFTS[what]
    spoil(draft)
    assert_refused(mounted, words)


def assert_refused(mounted, words):
    """new/m stays as it is, and says why in one line."""
    draft = mounted / "new/m"
    names = set(os.listdir(os.fsencode(draft)))
    state = mounted.store.state()
    refused_by(errno.EINVAL, published, mounted)
    assert set(os.listdir(os.fsencode(draft))) == names | {b".weft.error"}
    line = (draft / ".weft.error").read_text()
    assert line.endswith("\n") and line.count("\n") == 1 and all(word in line for word in words), line
    assert mounted.store.state() == state


def test_an_index_that_weft_cannot_read_refuses_nothing(mounted):
    """The checkpoint is kept byte for byte, and the version says why it has no tensors. While somebody writes to the index,
    the draft is busy."""
    draft, index = mounted / "new/m", dcp_metadata(["__0_0.distcp", "__1_0.distcp"])[:-1]
    draft.mkdir()
    (draft / "__0_0.distcp").write_bytes(b"x")
    with open(draft / ".metadata", "wb") as file:
        file.write(index)
        file.flush()
        refused_by(errno.EBUSY, published, mounted)
    assert (published(mounted) / ".metadata").read_bytes() == index
    assert "  no tensors in .metadata: pickle: " in mounted.store.weft("info", "m").stdout


SPECIAL_FILES = {"a fifo": (stat.S_IFIFO, 0), "a socket": (stat.S_IFSOCK, 0), "a device": (stat.S_IFCHR, os.makedev(1, 3)),
                 "a disk": (stat.S_IFBLK, os.makedev(7, 0))}


@pytest.mark.parametrize("what", SPECIAL_FILES)
def test_special_files(what, mounted):
    """None can be made in a draft. One that came there behind the mount is refused, and nobody opens it."""
    (mounted / "new/m/deep").mkdir(parents=True)
    mode, device = SPECIAL_FILES[what]
    refused_by(errno.EPERM, os.mknod, mounted / "new/m/deep/special", mode, device)
    with socket.socket(socket.AF_UNIX) as unix, contextlib.chdir(mounted / "new/m"):
        refused_by(errno.EPERM, unix.bind, "special")
    os.mknod(mounted.store.path / "drafts/tree/m/deep/special", mode | 0o666, device)
    assert_refused(mounted, ["deep/special: expected a file, a directory or a link, got a special file"])


def test_a_name_that_no_model_can_have(mounted):
    (mounted / "new/m").mkdir()
    (mounted / "new/m/x").write_bytes(b"x")
    for name in ("a b@", "m@a@b", "latest@", "m@7"):
        refused_by(errno.EINVAL, os.rename, mounted / "new/m", mounted / "new" / name)
    assert published(mounted).name == "1"
    (mounted / "new/x").mkdir()
    (mounted / "new/x/y").write_bytes(b"y")
    (mounted / "new/m").mkdir()
    refused_by(errno.EEXIST, os.rename, mounted / "new/x", mounted / "new/m/inner@")


def test_git_uses_it_as_any_file_system(mounted):
    run(["git", "init", "-q", mounted / "new/repository"])
    run(["rm", "-r", mounted / "new/repository"])
    assert os.listdir(mounted / "new") == []


def test_files_behave(mounted):
    draft = mounted / "new/d"
    draft.mkdir()
    path = draft / "f"
    with open(path, "w+b") as file:
        file.write(b"0123456789")
        file.seek(3)
        file.write(b"xyz")
        file.flush()
        os.fsync(file.fileno())
        assert path.read_bytes() == b"012xyz6789"
        file.truncate(4)
        assert path.stat().st_size == 4
        os.posix_fallocate(file.fileno(), 0, 8192)
        assert path.stat().st_size == 8192
        os.unlink(path)
        assert os.fstat(file.fileno()).st_nlink == 0
        file.seek(0)
        assert file.read(4) == b"012x"
    with open(path, "ab") as file:
        file.write(b"one")
    with open(path, "ab") as file:
        file.write(b"two")
    assert path.read_bytes() == b"onetwo"
    os.chmod(path, 0o640)
    os.utime(path, ns=(5, 7_000_000_001))
    facts = path.stat()
    assert stat.S_IMODE(facts.st_mode) == 0o640 and facts.st_mtime_ns == 7_000_000_001
    os.rename(path, draft / "g")
    os.mkdir(draft / "h")
    refused_by(errno.ENOTEMPTY, lambda: (os.rename(draft / "g", draft / "h/g"), os.rmdir(draft / "h")))
    refused_by(errno.EEXIST, os.mkdir, draft / "h")
    refused_by(errno.ENOENT, os.unlink, draft / "f")
    refused_by(errno.ENOTDIR, os.listdir, draft / "h/g")
    many = {f"file-{i}" for i in range(3000)}
    for name in many:
        (draft / name).touch()
    assert set(os.listdir(draft)) == many | {"h"}
    shutil.rmtree(draft)
    assert os.listdir(mounted / "new") == []


AS_NOBODY = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/", "check": False}


@pytest.mark.parametrize("by", ["the store's files", "a daemon"])
def test_a_user_who_may_not_publish_begins_no_draft(by, mounted):
    mounted.let_in()
    (mounted / "new/org").mkdir()
    (mounted / "new/org/m").mkdir()
    (mounted / "new/org/m/x").write_bytes(b"x")
    published(mounted, "org/m")
    with contextlib.ExitStack() as stack:
        if by == "a daemon":
            stack.enter_context(Daemon(mounted.store))
        for begin in (["mkdir", mounted / "new/theirs"], ["touch", mounted / "new/theirs"],
                      ["ln", "-s", "x", mounted / "new/theirs"], ["mkdir", mounted / "new/org/theirs"]):
            assert "Permission denied" in run(begin, **AS_NOBODY).stderr
    assert "theirs" not in os.listdir(mounted / "new") + os.listdir(mounted / "new/org")


def test_a_user_publishes_by_his_own_right(mounted):
    """A daemon is told who may publish. A draft of a user who may no longer stays."""
    mounted.let_in()
    draft = mounted / "new/theirs"
    with Daemon(mounted.store, "--control-publish", NOBODY):
        run(["sh", "-c", f"mkdir {draft} && head -c 3000000 /dev/urandom > {draft}/x"], **AS_NOBODY)
    content = (draft / "x").read_bytes()
    assert "Permission denied" in run(["mv", "-T", draft, f"{draft}@"], **AS_NOBODY).stderr
    assert (draft / "x").read_bytes() == content and (draft / "x").stat().st_uid == NOBODY
    with Daemon(mounted.store, "--control-publish", NOBODY):
        done = run(["mv", "-T", draft, f"{draft}@"], **AS_NOBODY)
        assert done.returncode == 0, done.stderr
    assert (mounted / "models/theirs/1/x").read_bytes() == content
    assert {path.stat().st_uid for path in (mounted.store.path / "packs").iterdir()} == {0}


def test_a_namespace_is_shared(mounted):
    (mounted / "new/org").mkdir()
    (mounted / "new/org/m").mkdir()
    (mounted / "new/org/m/x").write_bytes(b"x")
    published(mounted, "org/m")
    assert stat.S_IMODE((mounted / "new/org").stat().st_mode) == 0o1777
    os.rmdir(mounted / "new/org")
    (mounted / "new/org/n").mkdir()  # it is there as soon as somebody asks for it
    (mounted / "new/org/n/x").write_bytes(b"y")
    assert published(mounted, "org/n").name == "1"


def test_a_mount_without_the_option_has_none(tmp_path):
    with Mount(Store(tmp_path / "store"), tmp_path / "mnt") as mount:
        assert "new" not in os.listdir(mount.path)
        refused_by(errno.ENOENT, os.stat, mount / "new")
        refused_by(errno.EROFS, os.mkdir, mount / "new")
