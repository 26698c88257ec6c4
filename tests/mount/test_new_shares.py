"""What each user takes of new/: open files, inodes, and the publishes of checkpoints."""
import contextlib
import errno
import json
import os
import resource
import time

import pytest

from daemonlib import Daemon
from weftlib import (Mount, Store, act_as, process_of, random_bytes, random_tensors, refused_by, run, wait_until,
                     write_model)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
ONE, OTHER = 64001, 64002
FILES_MAX = 800  # that the server may have open


@contextlib.contextmanager
def mount_in(area, tmp_path):
    """Both users may publish there."""
    store = Store(area / "store")
    store.publish(write_model(tmp_path / "model", random_tensors(1, 4096, seed="shares")), name="org/m")
    with Mount(store, tmp_path / "mnt", "publish") as mount, \
            Daemon(store, "--control-publish", ONE, "--control-publish", OTHER):
        mount.let_in()
        yield mount


@pytest.fixture(name="mount")
def a_mount(tmp_path):
    with mount_in(tmp_path, tmp_path) as mount:
        yield mount


@pytest.fixture(name="few_inodes")
def a_mount_with_few_inodes(tmp_path):
    """A quarter of the 4,000 is for drafts."""
    disk = tmp_path / "disk"
    disk.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=64m,nr_inodes=4000,mode=755", "tmpfs", disk])
    try:
        with mount_in(disk, tmp_path) as mount:
            yield mount
    finally:
        run(["umount", disk])


def refusal_after(make, count_max):
    """How many calls succeed, and the errno of the next one."""
    for done in range(count_max):
        try:
            make(done)
        except OSError as error:
            return done, error.errno
    return count_max, 0


def test_the_open_drafts_of_a_user_leave_files_to_others(mount):
    server = json.loads((mount / ".weft/status").read_text())["mount"]["pid"]
    resource.prlimit(server, resource.RLIMIT_NOFILE, (FILES_MAX, FILES_MAX))
    many, told = mount / "new/many", mount / "new/told"

    def open_many(companion):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        many.mkdir()
        told.mkdir()
        files = []
        outcome = refusal_after(lambda i: files.append(open(many / str(i), "wb")), 2 * FILES_MAX)
        for file in files[-10:]:
            file.close()
        time.sleep(1)  # the server hears of it a little later
        (told / "outcome").write_text(json.dumps(outcome))
        companion.is_ready()
        companion.is_over(wait=True)

    def work_beside():
        own = mount / "new/own"
        own.mkdir()
        files = [open(own / str(i), "wb") for i in range(20)]
        assert all(file.write(b"x") == 1 for file in files)
        for path in (mount / "models/org/m/1").iterdir():
            path.read_bytes()

    with process_of(ONE, open_many):
        opened, number = json.loads((told / "outcome").read_text())
        assert number == errno.EMFILE and 50 <= opened <= FILES_MAX / 4, (opened, number)
        act_as(OTHER, work_beside)

    def open_again():  # the kernel says a little later that files were closed
        try:
            act_as(ONE, lambda: open(many / "again", "wb").close())
        except AssertionError:
            return False
        return True

    wait_until(open_again)


def test_a_draft_that_is_open_many_times_takes_one_share(mount):
    server = json.loads((mount / ".weft/status").read_text())["mount"]["pid"]
    resource.prlimit(server, resource.RLIMIT_NOFILE, (FILES_MAX, FILES_MAX))
    path = mount / "new/log"

    def open_many():
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        files = [open(path, "ab") for _ in range(FILES_MAX)]
        files[-1].write(b"x")
        for file in files:
            file.close()
        assert path.read_bytes() == b"x"

    act_as(ONE, open_many)


def test_the_empty_files_of_a_user_leave_inodes_to_others(few_inodes):
    new = few_inodes / "new"

    def make_many():
        for name, make in (("files", lambda path: open(path, "wb").close()), ("directories", os.mkdir),
                           ("links", lambda path: os.symlink("x", path))):
            os.mkdir(new / name)
            outcome = refusal_after(lambda i: make(new / name / str(i)), 4000)
            assert outcome[1] == errno.EDQUOT and outcome[0] <= 500, (name, outcome)
            for entry in list(os.scandir(new / name)):
                (os.rmdir if name == "directories" else os.unlink)(entry)

    def work_beside():
        os.mkdir(new / "own")
        for i in range(100):
            open(new / "own" / str(i), "wb").close()

    def fill_and_stay():
        os.mkdir(new / "full")
        assert refusal_after(lambda i: open(new / "full" / str(i), "wb").close(), 4000)[1] == errno.EDQUOT

    act_as(ONE, make_many)
    act_as(ONE, fill_and_stay)
    act_as(OTHER, work_beside)
    (new / "of-root").write_bytes(b"x")
    act_as(ONE, lambda: refused_by(errno.EDQUOT, os.mkdir, new / "one-more"))
    act_as(ONE, lambda: [os.unlink(entry) for entry in list(os.scandir(new / "full"))])
    act_as(ONE, lambda: os.mkdir(new / "one-more"))


def test_no_depth_hides_what_a_user_makes(mount):
    """What is too deep would not be counted."""
    deepest = (mount / "new").joinpath(*["d"] * 64)
    tree = mount / "new/tree"

    def make():
        os.makedirs(deepest)
        refused_by(errno.ELOOP, os.mkdir, deepest / "x")
        refused_by(errno.ELOOP, os.symlink, "x", deepest / "x")
        refused_by(errno.ELOOP, lambda: open(deepest / "x", "wb").close())
        os.makedirs(tree / "a")
        (tree / "a/x").write_bytes(b"x")
        refused_by(errno.ELOOP, os.rename, tree, deepest.parents[1] / "tree")
        assert os.listdir(deepest) == []
        os.rename(tree, deepest.parents[2] / "tree")
        assert (deepest.parents[2] / "tree/a/x").read_bytes() == b"x"

    act_as(ONE, make)


def test_checkpoints_are_published_in_turn(mount):
    """A user's only checkpoint does not wait for all of another's, which are complete before it."""
    many = 30

    def save(training, count):
        training.mkdir()
        facts = {"model": training.name, "each": "checkpoint-*", "when": "done"}
        for number in range(count):
            (training / f"checkpoint-{number}").mkdir()
            (training / f"checkpoint-{number}/x").write_bytes(random_bytes(2_000_000, f"{training.name} {number}"))
            (training / f"checkpoint-{number}/done").touch()
        (training / ".weft.json").write_text(json.dumps(facts))
        training.chmod(0o755)

    def published(training):
        return sum((path / ".weft.published").exists() for path in training.glob("checkpoint-*"))

    first, second = mount / "new/first", mount / "new/second"
    act_as(ONE, lambda: save(first, many))
    act_as(OTHER, lambda: save(second, 1))
    wait_until(lambda: published(second) == 1, seconds_max=60, pause=0.01)
    assert published(first) < many * 2 / 3
    wait_until(lambda: published(first) == many, seconds_max=120)
