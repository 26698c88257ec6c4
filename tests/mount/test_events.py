"""`.weft/events`: a stream of what is published, tagged and removed."""
import contextlib
import errno
import json
import os
import select
import signal
import threading
import time

import pytest

from weftlib import (COMMAND_SECONDS_MAX, HAS_LINUX_6_9, NOBODY, Mount, context_switches, process_of, random_tensors, run,
                     store_with, wait_until)

needs_restart = pytest.mark.skipif(not HAS_LINUX_6_9, reason="a server follows another from Linux 6.9 on")


@pytest.fixture
def mount(tmp_path):
    with Mount(store_with(tmp_path, random_tensors(1, 4096, seed="events")), tmp_path / "mnt") as mounted:
        yield mounted


def tag(mount, name, version=1):
    mount.store.weft("tag", f"m@{version}", name)


def kill_server(mount):
    os.kill(json.loads((mount / ".weft/status").read_text())["mount"]["pid"], signal.SIGKILL)


class Reader:
    """Reads lines in a thread of its own."""

    def __init__(self, mount, size=8192):
        self.fd = os.open(mount / ".weft/events", os.O_RDONLY)
        self.size = size
        self.lines = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        rest = b""
        while True:
            rest += os.read(self.fd, self.size)
            *whole, rest = rest.split(b"\n")
            self.lines += [json.loads(line) for line in whole]
            if whole and self.lines[-1].get("tags") == ["end"]:
                return

    def tags(self, mount):
        """All that came, up to the tag "end", which this sets."""
        tag(mount, "end")
        self.thread.join(COMMAND_SECONDS_MAX)
        assert not self.thread.is_alive()
        os.close(self.fd)
        return [line["tags"][0] for line in self.lines]


def test_listed_nowhere(mount):
    assert sorted(os.listdir(mount / ".weft")) == ["metrics", "peers", "status"]
    assert run(["grep", "-r", "nothing", mount / ".weft"], check=False).stdout == ""
    assert os.stat(mount / ".weft/events").st_size == 0


def test_lines(mount, tmp_path):
    """From the open on, as `weft watch --json` prints them."""
    tag(mount, "before")
    with open(mount / ".weft/events", encoding="utf-8") as events:
        tag(mount, "one")
        mount.store.weft("tag", "--delete", "m", "one")
        mount.store.publish(tmp_path / "model", name="other")
        mount.store.weft("rm", "other@1")
        lines = [json.loads(next(events)) for _ in range(4)]
    assert [(line["event"], line["model"], line["version"]) for line in lines] == [
        ("tag", "m", 1), ("tag", "m", None), ("publish", "other", 1), ("remove", "other", 1)]


def test_a_read_waits(mount):
    reader = Reader(mount)
    time.sleep(0.3)
    assert reader.lines == []
    tag(mount, "a")
    wait_until(lambda: reader.lines)
    assert reader.tags(mount) == ["a", "end"]


@pytest.mark.parametrize("size", [1, 7, 200, 300, 1 << 20])
def test_buffers_of_any_size(mount, size):
    readers = [Reader(mount, size) for _ in range(3)]
    names = [f"t{number}" for number in range(5)]
    for name in names:
        tag(mount, name)
    for reader in readers:
        assert reader.tags(mount) == [*names, "end"]


def test_every_user_may_read_and_nobody_write(mount):
    with pytest.raises(OSError) as refused:
        os.open(mount / ".weft/events", os.O_WRONLY)
    assert refused.value.errno == errno.EROFS
    fd = os.open(mount / ".weft/events", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(BlockingIOError):
            os.read(fd, 100)
        with pytest.raises(OSError) as unseekable:
            os.lseek(fd, 0, os.SEEK_CUR)
        assert unseekable.value.errno == errno.ESPIPE
    finally:
        os.close(fd)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_no_right_to_write(open_dir):
    """A user who may not write to the store reads the events: waits in a read, and polls."""
    store = store_with(open_dir, random_tensors(1, 4096, seed="events"), group="nogroup")
    with Mount(store, open_dir / "mnt") as mount:
        def work(companion):
            with open(mount / ".weft/events", encoding="utf-8") as events, select.epoll() as epoll:
                epoll.register(events, select.EPOLLIN)
                companion.is_ready()
                assert epoll.poll(COMMAND_SECONDS_MAX)
                assert json.loads(next(events))["tags"] == ["a"]
                assert json.loads(next(events))["tags"] == ["b"]
            (open_dir / "seen").write_text("all")

        with process_of(NOBODY, work):
            tag(mount, "a")
            tag(mount, "b")
            wait_until((open_dir / "seen").exists)


def test_epoll(mount):
    fds = [os.open(mount / ".weft/events", os.O_RDONLY | os.O_NONBLOCK) for _ in range(2)]
    with select.epoll() as epoll:
        for fd in fds:
            epoll.register(fd, select.EPOLLIN)
        assert epoll.poll(0.2) == []
        for name in ["a", "b"]:
            tag(mount, name)
            wait_until(lambda: len(epoll.poll(COMMAND_SECONDS_MAX)) == 2)
            assert [json.loads(os.read(fd, 8192))["tags"] for fd in fds] == [[name], [name]]
            assert epoll.poll(0.2) == []
    for fd in fds:
        os.close(fd)


def test_other_files_are_always_ready(mount):
    with open(mount / ".weft/status", "rb") as status, open(mount / "models/m/1/model.safetensors", "rb") as model:
        poll = select.poll()
        poll.register(status, select.POLLIN)
        poll.register(model, select.POLLIN)
        assert len(poll.poll(10_000)) == 2


@contextlib.contextmanager
def reading_process(mount):
    """A process that waits in a read, as its pid."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGUSR1, lambda *_: os._exit(7))
        with contextlib.suppress(BaseException), open(mount / ".weft/events", "rb", buffering=0) as events:
            events.read(100)
        os._exit(8)
    try:
        wait_until(lambda: "events" in str([os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")
                                            if os.path.lexists(f"/proc/{pid}/fd/{fd}")]))
        time.sleep(0.2)
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number, ends_with", [(signal.SIGUSR1, 7 << 8), (signal.SIGKILL, signal.SIGKILL)])
def test_a_signal_ends_a_read(mount, number, ends_with):
    with reading_process(mount) as pid:
        os.kill(pid, number)
        ended = []

        def has_ended():
            got, status = os.waitpid(pid, os.WNOHANG)
            ended.extend([status] if got else [])
            return ended

        wait_until(has_ended, seconds_max=COMMAND_SECONDS_MAX)
        assert ended == [ends_with]


@needs_restart
def test_a_new_server_goes_on(mount):
    """No line is lost or comes twice, whoever reads when the server dies; a waiting poll goes on."""
    reader = Reader(mount)
    fd = os.open(mount / ".weft/events", os.O_RDONLY)
    with select.epoll() as epoll:
        epoll.register(fd, select.EPOLLIN)
        polled = []
        poller = threading.Thread(target=lambda: polled.extend(epoll.poll(COMMAND_SECONDS_MAX)), daemon=True)
        poller.start()
        time.sleep(0.2)
        kill_server(mount)
        tag(mount, "a")
        poller.join(COMMAND_SECONDS_MAX)
        assert polled and json.loads(os.read(fd, 8192))["tags"] == ["a"]
    os.close(fd)
    for number in range(10):
        tag(mount, f"t{number}")
        kill_server(mount)
    assert reader.tags(mount) == ["a", *[f"t{number}" for number in range(10)], "end"]


def test_unmount_ends_reads(tmp_path):
    store = store_with(tmp_path, random_tensors(1, 4096, seed="events"))
    with Mount(store, tmp_path / "mnt") as mount:
        with reading_process(mount) as pid:
            run(["umount", "--lazy", "--force", mount.path])
            assert os.waitpid(pid, 0)[1] == 8 << 8


def test_idle(mount):
    """Readers that wait cost nothing: the mount wakes at most once a second, as without them."""
    reader = Reader(mount)
    time.sleep(1)
    pids = mount.server_pids()
    before = context_switches(pids)
    time.sleep(5)
    assert context_switches(pids) - before <= 5
    assert reader.tags(mount) == ["end"]


def test_others_are_served_while_many_wait(mount):
    """More readers wait than the server has threads."""
    fds = [os.open(mount / ".weft/events", os.O_RDONLY) for _ in range(600)]
    threads = [threading.Thread(target=os.read, args=(fd, 8192), daemon=True) for fd in fds]
    for thread in threads:
        thread.start()
    for _ in range(100):
        (mount / ".weft/status").read_text()
    tag(mount, "all")
    for thread in threads:
        thread.join(COMMAND_SECONDS_MAX)
        assert not thread.is_alive()
    for fd in fds:
        os.close(fd)
