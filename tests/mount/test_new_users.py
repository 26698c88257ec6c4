"""Who may do what in new/: drafts are private, and namespaces are shared."""
import contextlib
import errno
import json
import os
import pathlib
import shutil
import signal
import stat
import threading
import time

import pytest

from daemonlib import Daemon
from users import ONE, OTHER, SLOW, import_of, mount_for_users, outcomes_as, slow_draft, stop_import_of, write
from weftlib import Mount, Store, files_below, process_of, refused_by, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
NOT_THEIRS = (errno.EACCES, errno.EPERM)


@pytest.fixture(name="mount")
def a_mount(tmp_path):
    with mount_for_users(tmp_path) as mount:
        yield mount


@pytest.mark.parametrize("place", ["new", "new/org"])
def test_two_users_do_not_meet(place, mount):
    """Each call of the other user on a draft is refused, and the draft stays as it is."""
    place = mount / place
    draft, single, own = place / "draft", place / "single", place / "own"
    made = [(os.mkdir, draft, 0o777), (write, draft / "x", b"secret"), (os.mkdir, draft / "empty"),
            (write, single, b"alone")]
    assert outcomes_as(ONE, made) == [0] * len(made)
    for path in (draft, single):
        assert path.stat().st_uid == ONE
        assert not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    before = files_below(draft), single.read_bytes(), draft.stat().st_mtime_ns
    refused = {
        "list": (os.listdir, draft), "stat": (os.stat, draft / "x"), "read": (os.open, draft / "x", os.O_RDONLY),
        "write": (os.open, draft / "x", os.O_WRONLY), "create": (write, draft / "y", b"y"),
        "mkdir": (os.mkdir, draft / "y"), "symlink": (os.symlink, "x", draft / "y"),
        "unlink": (os.unlink, draft / "x"), "truncate": (os.truncate, draft / "x", 0),
        "rename inside": (os.rename, draft / "x", draft / "z"), "rename out": (os.rename, draft / "x", own / "x"),
        "rename into": (os.rename, own, draft / "own"), "publish into": (os.rename, own, draft / "own@"), "rename": (os.rename, draft, place / "stolen"),
        "publish": (os.rename, draft, place / "stolen@"), "publish in place": (os.rename, draft, place / "draft@"),
        "publish an inner one": (os.rename, draft / "empty", place / "stolen@"),
        "rmdir": (os.rmdir, draft), "rmdir inside": (os.rmdir, draft / "empty"), "chmod": (os.chmod, draft, 0o777),
        "chown": (os.chown, draft, OTHER, OTHER), "utime": (os.utime, draft),
        "read a file": (os.open, single, os.O_RDONLY), "write a file": (os.open, single, os.O_WRONLY),
        "unlink a file": (os.unlink, single), "publish a file": (os.rename, single, place / "stolen@"),
        "replace a file": (os.rename, own / "mine", single), "link": (os.link, single, own / "link"),
    }
    outcomes = outcomes_as(OTHER, [(os.mkdir, own), (write, own / "mine", b"mine"), *refused.values()])
    assert outcomes[:2] == [0, 0]
    wrong = {name: outcome for name, outcome in zip(refused, outcomes[2:]) if outcome not in NOT_THEIRS}
    assert wrong == {}
    assert (files_below(draft), single.read_bytes(), draft.stat().st_mtime_ns) == before
    assert sorted(os.listdir(draft)) == ["empty", "x"]
    name = "draft" if place.name == "new" else "org/draft"
    assert outcomes_as(ONE, [(os.rmdir, draft / "empty"), (os.rename, draft, place / "draft@")]) == [0, 0]
    assert (mount.version(name, 1) / "x").read_bytes() == b"secret"
    assert files_below(own) == {"mine": b"mine"}


def test_a_directory_becomes_a_namespace_by_its_users_alone(mount):
    """Its name would be in that of the model, and all users would share it."""
    space, own = mount / "new/space", mount / "new/own"
    assert outcomes_as(ONE, [(os.mkdir, space), (write, space / "x", b"x"), (os.chmod, space, 0o755)]) == [0] * 3
    calls = [(os.mkdir, own), (write, own / "y", b"y"), (os.rename, own, space / "m@")]
    assert outcomes_as(OTHER, calls) == [0, 0, errno.EACCES]
    assert stat.S_IMODE(space.stat().st_mode) == 0o755 and space.stat().st_uid == ONE
    assert files_below(own) == {"y": b"y"}
    calls = [(os.mkdir, space / "m"), (write, space / "m/z", b"z"), (os.rename, space / "m", space / "m@")]
    assert outcomes_as(ONE, calls) == [0] * 3
    assert stat.S_IMODE(space.stat().st_mode) == 0o1777
    assert outcomes_as(OTHER, [(os.rename, own, space / "n@"), (os.open, space / "x", os.O_RDONLY)]) == [0, errno.EACCES]


def test_the_order_of_a_publish_is_beyond_its_user(mount):
    """The import runs as the user, so he reaches the folder of his draft by it, and no further."""
    draft = slow_draft(mount)

    def publish(companion):
        companion.is_ready()
        with contextlib.suppress(OSError):
            os.rename(draft, mount / "new/slow@")

    with process_of(ONE, publish):
        wait_until(lambda: import_of(ONE))
        draft_now = import_of(ONE) / "cwd"
        folder = draft_now / "../.."
        refused = [(os.listdir, folder), (write, folder / "mine", b""), (os.rename, folder / "order", folder / "mine"),
                   *((os.stat, folder / name) for name in ("order", "answer", "lock", "..", "../../tree")),
                   (os.rename, draft_now / "x", folder / "order")]
        assert (folder / "order").stat().st_uid == 0
        assert outcomes_as(ONE, [(os.listdir, draft_now), *refused]) == [0] + [errno.EACCES] * len(refused)
        os.kill(int(draft_now.parent.name), signal.SIGINT)
    assert not list((mount.store.path / "drafts/publishing").glob("*/held/content"))
    assert (draft / "x").stat().st_size == SLOW


def test_a_publish_that_its_user_stops_holds_up_nobody(mount):
    """It ends, as its user can end it."""
    draft = slow_draft(mount)

    def publish(companion):
        companion.is_ready()
        refused_by(errno.EIO, os.rename, draft, mount / "new/slow@")

    with process_of(ONE, publish):
        wait_until(lambda: import_of(ONE))
        process = import_of(ONE)
        assert outcomes_as(OTHER, [(os.open, process / "environ", os.O_RDONLY)]) == [errno.EACCES]
        assert (process / "environ").read_bytes() == b"", "its user can read it"
        os.kill(int(process.name), signal.SIGSTOP)
        wait_until(lambda: not process.exists())
        wait_until(lambda: import_of(ONE))  # the first one may have published before it was killed: it runs once more
        os.kill(int(import_of(ONE).name), signal.SIGSTOP)
        assert outcomes_as(OTHER, [(os.mkdir, mount / "new/own")]) == [0]
    assert (draft / "x").stat().st_size == SLOW


def is_in_work(mount):
    """Whether weftd has a file of a draft open that is being published."""
    return any("/drafts/publishing/" in link for link in links_in(f"/proc/{mount.weftd.pid}/fd"))


def links_in(directory):
    for name in os.listdir(directory):
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink(os.path.join(directory, name))


@contextlib.contextmanager
def file_in_work(mount):
    """A file of a user that weftd is publishing: the import of it. Afterwards the rename has succeeded, with one version."""
    new, draft = mount / "new", mount / "new/slow"
    assert outcomes_as(ONE, [(write, draft, b"x"), (os.truncate, draft, SLOW)]) == [0, 0]

    def publish(companion):
        companion.is_ready()
        os.rename(draft, new / "slow@")
        (new / "succeeded").mkdir()

    with process_of(ONE, publish):
        wait_until(lambda: is_in_work(mount), pause=0.01)
        yield import_of(ONE)
    assert (new / "succeeded").exists() and not draft.exists()
    assert sorted(name for name in os.listdir(mount / "models/slow") if name.isdigit()) == ["1"]
    assert (mount.version("slow", 1) / "slow").stat().st_size == SLOW


def test_a_file_is_published_although_its_import_is_killed(mount):
    with file_in_work(mount) as first:
        os.kill(int(first.name), signal.SIGKILL)
        wait_until(lambda: not first.exists())


def test_a_file_is_published_although_weftd_is_killed(mount):
    """Its user may not write to the store, so the import waits for the next weftd."""
    with file_in_work(mount) as first:
        mount.weftd.kill()
        wait_until(lambda: import_of(ONE) not in (None, first))
        mount.weftd.start()


def test_a_publish_holds_nothing_of_new(mount):
    """Other users make, list, look up, rename and remove names in the directory of the rename while the import runs."""
    new, draft, own = mount / "new", slow_draft(mount), mount / "new/own"

    def publish(companion):
        companion.is_ready()
        os.rename(draft, new / "slow@")

    beside = [(os.mkdir, own), (write, own / "x", b"x"), (write, new / "single", b"y"), (os.listdir, new),
              (os.rename, new / "single", new / "renamed"), (os.rename, new / "renamed", own / "y"),
              (os.unlink, own / "x")]
    with process_of(ONE, publish):
        wait_until(lambda: import_of(ONE))
        outcomes = outcomes_as(OTHER, [*beside, (os.stat, new / "absent"), (os.stat, draft)])
        assert import_of(ONE) and not (mount / "models/slow").exists(), "it was over before"
        assert outcomes == [0] * len(beside) + [errno.ENOENT, errno.ENOENT]
    assert (mount.version("slow", 1) / "x").stat().st_size == SLOW
    assert files_below(own) == {"y": b"y"}
    assert not draft.exists()


def test_a_failed_publish_finds_its_name_taken(mount):
    """The draft comes back beside the other one."""
    new, draft = mount / "new", slow_draft(mount)

    def publish(companion):
        companion.is_ready()
        with contextlib.suppress(OSError):
            os.rename(draft, new / "slow@")

    with process_of(ONE, publish):
        wait_until(lambda: import_of(ONE))
        assert outcomes_as(OTHER, [(os.mkdir, draft)]) == [0]
        stop_import_of(ONE)
    assert not (mount / "models/slow").exists(), "it was over before"
    back = [path for path in new.iterdir() if path.name.startswith("slow.")]
    assert [path.stat().st_uid for path in (draft, *back)] == [OTHER, ONE]
    assert (back[0] / "x").stat().st_size == SLOW


def test_a_rename_inside_new_has_its_time(mount):
    """Neither of its paths leads through the mount, so the kernel holds new/ until the answer."""
    if shutil.disk_usage(mount.store.path).total < 64 << 30:
        pytest.skip("a draft of 48 GiB needs a larger file system")
    new, draft = mount / "new", slow_draft(mount, 48 << 30)
    own = new / "own"

    def rename_in_time(old, to):  # a loaded machine may take longer
        while True:
            try:
                return os.rename(old, to)
            except OSError as error:
                if error.errno not in (errno.ETIMEDOUT, errno.EAGAIN):
                    raise
            time.sleep(1)

    made = [(os.mkdir, "m"), (write, pathlib.Path("m/x"), b"x")]
    calls = [(os.chdir, new), *made, (rename_in_time, "m", "m@"), (os.mkdir, own), (os.chdir, own), *made, (os.rename, "m", "m@")]
    assert outcomes_as(OTHER, calls) == [0] * len(calls)
    for name in ("m", "own/m"):
        assert (mount.version(name, 1) / "x").read_bytes() == b"x"

    def publish(companion):
        os.chdir(new)
        companion.is_ready()
        refused_by(errno.ETIMEDOUT, os.rename, "slow", "slow@")
        (new / "refused").mkdir()

    with process_of(ONE, publish):
        wait_until(lambda: import_of(ONE))
        assert outcomes_as(OTHER, [(os.mkdir, new / "late")]) == [0]
    assert (new / "refused").exists()
    assert (draft / "x").stat().st_size == 48 << 30 and not (mount / "models/slow").exists()
    assert f"{new}/slow" in (draft / ".weft.error").read_text()


def test_who_may_write_to_a_directory_makes_no_namespace_of_it(mount):
    """It would become all users', so it takes its owner."""
    assert outcomes_as(ONE, [(os.mkdir, mount / "new/one"), (os.chmod, mount / "new/one", 0o777)]) == [0, 0]
    draft = mount / "new/draft"
    calls = [(os.mkdir, draft), (write, draft / "x", b"x"), (os.rename, draft, mount / "new/one/m@")]
    assert outcomes_as(OTHER, calls) == [0, 0, errno.EACCES]
    assert stat.S_IMODE((mount / "new/one").stat().st_mode) == 0o777 and (mount / "new/one").stat().st_uid == ONE
    assert (draft / "x").read_bytes() == b"x"


def test_what_is_wrong_with_a_file_is_its_users_alone(mount):
    """NAME.weft.error lies beside the draft, where all users list."""
    bad = mount / "new/bad.safetensors"
    error = mount / "new/bad.safetensors.weft.error"
    calls = [(write, bad, b"\x10\0\0\0\0\0\0\0{"), (os.rename, bad, mount / "new/m@")]
    assert outcomes_as(ONE, calls) == [0, errno.EINVAL]
    assert error.stat().st_uid == ONE
    assert outcomes_as(OTHER, [(os.open, error, os.O_RDONLY), (os.unlink, error)]) == [errno.EACCES, errno.EPERM]


def test_namespaces_are_listed(mount, tmp_path):
    """Also those that `weft import` makes beside the mount, and those below others."""
    model = tmp_path / "model"
    for name in ("plain", "deep/er/m", "org/below/m"):
        (model / "config.json").write_text(json.dumps({"name": name}))
        mount.store.publish(model, name=name)
    new = mount / "new"
    assert sorted(os.listdir(new)) == ["deep", "org"]
    assert os.listdir(new / "org") == ["below"]
    assert os.listdir(new / "deep") == ["er"]
    for path in ("deep", "deep/er", "org", "org/below"):
        assert stat.S_IMODE((new / path).stat().st_mode) == 0o1777
    mount.store.weft("rm", "deep/er/m@1")
    assert os.listdir(new / "deep") == ["er"], "a draft may lie in it"
    begun = [(os.listdir, new), (os.listdir, new / "org"), (os.mkdir, new / "org/below/mine"),
             (write, new / "org/below/mine/x", b"x"), (os.rename, new / "org/below/mine", new / "org/below/mine@")]
    assert outcomes_as(ONE, begun) == [0] * len(begun)
    assert (mount.version("org/below/mine", 1) / "x").read_bytes() == b"x"
    refused_by(errno.EROFS, os.mkdir, mount / "models/org/mine")


def test_a_user_lists_a_namespace_first(mount):
    """Nobody has asked for it before, and the user needs no right to make it."""
    seen = mount / "new/own"
    calls = [(os.mkdir, seen), (lambda: (seen / "saw").write_text("\n".join(os.listdir(mount / "new"))),)]
    assert outcomes_as(ONE, calls) == [0, 0]
    assert sorted((seen / "saw").read_text().split()) == ["org", "own"]


def test_a_publish_that_fails_leaves_the_files_of_others_alone(mount):
    """A directory may be open to all: who makes a file in it owns it, whatever becomes of the directory."""
    draft = mount / "new/open"
    assert outcomes_as(ONE, [(os.mkdir, draft), (os.chmod, draft, 0o777), (write, draft / "m.safetensors", b"bad")]) == [0] * 3

    def keep(path):
        path.mkdir(0o700)
        (path / "secret").write_bytes(b"secret")
        (path / "secret").chmod(0o600)

    alone = draft / "secret"
    assert outcomes_as(OTHER, [(write, alone, b"secret"), (os.chmod, alone, 0o600), (keep, draft / "their")]) == [0] * 3
    assert outcomes_as(ONE, [(os.rename, draft, mount / "new/open@")])[0] != 0
    assert outcomes_as(ONE, [(os.open, alone, os.O_RDONLY)]) == [errno.EACCES]
    for path in (alone, draft / "their", draft / "their/secret"):
        assert path.stat().st_uid == OTHER


def test_nobody_can_write_to_what_he_has_published(mount):
    """While the import reads, the user reaches his files by it. What he opens there is his draft, and no pack."""
    draft = mount / "new/slow"
    content = os.urandom(1 << 20) * 512
    assert outcomes_as(ONE, [(os.mkdir, draft), (write, draft / "x", content)]) == [0] * 2

    def meddle(companion):
        companion.is_ready()
        wait_until(lambda: import_of(ONE))
        held = os.open(import_of(ONE) / "cwd/x", os.O_RDWR)
        companion.is_over(wait=True)
        os.pwrite(held, b"evil", 0)

    with process_of(ONE, meddle):
        assert outcomes_as(ONE, [(os.rename, draft, mount / "new/slow@")]) == [0]
    assert (mount.version("slow", 1) / "x").read_bytes() == content
    packs = [path for path in (mount.store.path / "packs").rglob("*.pack") if path.stat().st_size >= len(content)]
    assert [path.stat().st_uid for path in packs] == [0]


def test_a_note_replaces_no_file_of_another_user(mount):
    """What is wrong with a file stands beside it, under a name that is perhaps somebody's."""
    bad, theirs = mount / "new/bad.safetensors", mount / "new/bad.safetensors.weft.error"
    assert outcomes_as(OTHER, [(write, theirs, b"theirs")]) == [0]
    calls = [(write, bad, b"\x10\0\0\0\0\0\0\0{"), (os.rename, bad, mount / "new/m@")]
    assert outcomes_as(ONE, calls) == [0, errno.EINVAL]
    assert theirs.read_bytes() == b"theirs" and theirs.stat().st_uid == OTHER
    assert bad.exists()


def test_a_checkpoint_has_no_directory_of_another_user(mount):
    """It would become readable by the links that are made of it."""
    run, checkpoint = mount / "new/run", mount / "new/run/checkpoint-1"
    facts = b'{"model": "run", "each": "checkpoint-*", "when": "done"}'
    calls = [(os.mkdir, run), (write, run / ".weft.json", facts), (os.mkdir, checkpoint), (os.chmod, run, 0o755),
             (os.chmod, checkpoint, 0o777)]
    assert outcomes_as(ONE, calls) == [0] * len(calls)
    calls = [(os.mkdir, checkpoint / "their", 0o700), (write, checkpoint / "their/secret", b"secret")]
    assert outcomes_as(OTHER, calls) == [0, 0]
    assert outcomes_as(ONE, [(write, checkpoint / "done", b"")]) == [0]
    wait_until(lambda: (checkpoint / ".weft.error").exists() or (checkpoint / ".weft.published").exists())
    assert "another user" in (checkpoint / ".weft.error").read_text()
    assert not (mount / "models/run").exists()
    assert outcomes_as(ONE, [(os.rename, checkpoint / "their", run / "their")]) == [errno.EACCES]
    assert outcomes_as(OTHER, [(os.unlink, checkpoint / "their/secret"), (os.rmdir, checkpoint / "their")]) == [0, 0]
    assert outcomes_as(ONE, [(write, checkpoint / "done", b"1")]) == [0]
    wait_until(lambda: (checkpoint / ".weft.published").exists())


def test_a_file_that_was_published_is_no_word_of_root(mount):
    """A file of a user stays the user's when it is a part of a version. So does a directory that he makes a namespace: no
    checkpoint of it is published with the right of root to remove versions."""
    for number in (1, 2, 3):
        draft = mount / "new/m"
        calls = [(os.mkdir, draft), (write, draft / "w", os.urandom(3000)), (os.rename, draft, mount / "new/vic@")]
        assert outcomes_as(OTHER, calls) == [0] * len(calls), number
    run = mount / "new/run"
    first, later = run / "c-1", run / "c-2"
    facts = json.dumps({"model": "vic", "each": "checkpoint-*", "when": "done", "keep": 1}).encode().ljust(1 << 20)
    calls = [(os.mkdir, run), (write, run / ".weft.json", b'{"model": "own", "each": "c-*", "when": "done"}'),
             (os.mkdir, first), (write, first / "facts", facts), (write, first / "done", b"1")]
    assert outcomes_as(ONE, calls) == [0] * len(calls)
    wait_until((first / ".weft.published").exists)
    assert (first / "facts").stat().st_uid == ONE
    space, draft = mount / "new/space", mount / "new/draft"
    checkpoint = space / "checkpoint-1"
    calls = [(os.mkdir, space), (os.mkdir, checkpoint), (os.mkdir, draft), (write, draft / "f", b"x"),
             (os.rename, draft, checkpoint / "z@")]
    assert outcomes_as(ONE, calls) == [0] * len(calls)
    outcomes_as(ONE, [(os.rename, first / "facts", space / ".weft.json"), (write, checkpoint / "w", os.urandom(9999)),
                      (write, checkpoint / "done", b"1")])
    calls = [(os.mkdir, later), (write, later / "done", b"2")]  # once this is a version, the others have been looked at
    assert outcomes_as(ONE, calls) == [0] * len(calls)
    wait_until((later / ".weft.published").exists)
    assert [(mount.version("vic", number) / "w").stat().st_size for number in (1, 2, 3)] == [3000] * 3
    assert not mount.version("vic", 4).exists()
    assert not (checkpoint / ".weft.published").exists()


def test_a_training_holds_up_no_other_user(mount):
    """Each of its checkpoints is complete, and written to: the look at them would take a minute."""
    run, own = mount / "new/run", mount / "new/own"
    facts = b'{"model": "run", "each": "checkpoint-*", "when": "done"}'
    def train(companion):
        run.mkdir()
        files = []
        for number in range(300):
            (run / f"checkpoint-{number}").mkdir()
            files.append(open(run / f"checkpoint-{number}/x", "wb"))
            (run / f"checkpoint-{number}/done").touch()
        (run / ".weft.json").write_bytes(facts)
        companion.is_ready()
        companion.is_over(wait=True)

    with process_of(ONE, train):
        calls = [(os.mkdir, own), (write, own / "x", b"x"), (os.unlink, own / "x"), (os.rmdir, own)]
        outcomes = []
        other = threading.Thread(target=lambda: outcomes.extend(outcomes_as(OTHER, calls)))
        other.start()
        wait_until(lambda: outcomes)
        other.join()
        assert outcomes == [0] * len(calls)


@pytest.mark.parametrize("server", ["stays", "restarts"])
def test_a_daemon_that_restarts_refuses_nobody(server, tmp_path):
    """Without a daemon this user may not publish. One that was there a moment ago comes back. A new server of the mount
    knows that, too."""
    store = Store(tmp_path / "store")
    options = ("--control-publish", ONE)
    with Mount(store, tmp_path / "mnt", "publish") as mount:
        mount.let_in()
        draft = mount / "new/draft"
        with Daemon(store, *options):
            assert outcomes_as(ONE, [(os.mkdir, draft)]) == [0]
        if server == "restarts":
            os.kill(mount.figure("pid"), signal.SIGKILL)
        assert outcomes_as(ONE, [(os.mkdir, mount / "new/other"), (write, draft / "x", b"x")]) == [0, 0]
        outcomes = []
        rename = threading.Thread(
            target=lambda: outcomes.extend(outcomes_as(ONE, [(os.rename, draft, mount / "new/draft@")])))
        rename.start()
        time.sleep(2)
        assert not outcomes
        with Daemon(store, *options):
            rename.join()
        assert outcomes == [0]
        assert (mount.version("draft", 1) / "x").read_bytes() == b"x"


def test_a_user_without_the_right_waits_for_no_daemon(tmp_path):
    """The rename would hold up all others in the directory, and fail in the end."""
    store = Store(tmp_path / "store")
    with Mount(store, tmp_path / "mnt", "publish") as mount:
        mount.let_in()
        draft = mount / "new/draft"
        with Daemon(store, "--control-publish", ONE, "--control-publish", OTHER):
            assert outcomes_as(OTHER, [(os.mkdir, draft), (write, draft / "x", b"x")]) == [0, 0]
        with Daemon(store, "--control-publish", ONE):
            assert outcomes_as(OTHER, [(os.mkdir, mount / "new/other")])[0] in NOT_THEIRS
            assert outcomes_as(ONE, [(os.mkdir, mount / "new/one")]) == [0]
        begin = time.monotonic()
        assert outcomes_as(OTHER, [(os.rename, draft, mount / "new/draft@")])[0] in NOT_THEIRS
        assert time.monotonic() - begin < 8, "the wait for a daemon takes ten seconds"
        assert (draft / "x").read_bytes() == b"x"


def test_a_rule_gives_the_right_for_some_names(tmp_path):
    """The user may write drafts of any name, and publishes only where the rule allows it."""
    store = Store(tmp_path / "store")
    with Mount(store, tmp_path / "mnt", "publish") as mount, Daemon(store, "--grant", f"team/ publish={ONE}"):
        mount.let_in()
        new = mount / "new"
        assert outcomes_as(OTHER, [(os.mkdir, new / "mine")])[0] in NOT_THEIRS
        made = [(os.mkdir, new / "team"), (os.mkdir, new / "team/m"), (write, new / "team/m/x", b"x"),
                (os.mkdir, new / "m"), (write, new / "m/x", b"x"), (os.rename, new / "team/m", new / "team/m@")]
        assert outcomes_as(ONE, made) == [0] * len(made)
        assert outcomes_as(ONE, [(os.rename, new / "m", new / "m@")])[0] in NOT_THEIRS
        assert (mount.version("team/m", 1) / "x").read_bytes() == b"x"
        assert (new / "m/x").read_bytes() == b"x"
