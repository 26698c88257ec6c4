"""Two ordinary users who publish by new/ of one mount, and the imports that the mount starts for them."""
import contextlib
import json
import os
import pathlib
import signal

from daemonlib import Daemon
from weftlib import PATIENCE, Mount, Store, command_lines, random_tensors, wait_until, write_model

ONE, OTHER = 64001, 64002


def outcomes_as(user, calls):
    """What each call answers, as an ordinary user: 0 or an errno. Each is (function, argument…)."""
    hears, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        outcomes = []
        with contextlib.suppress(BaseException):
            os.closerange(3, said)  # a call that hangs keeps no pipe of a process_of()
            os.closerange(said + 1, 4096)
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            for act, *arguments in calls:
                try:
                    act(*arguments)
                    outcomes.append(0)
                except OSError as error:
                    outcomes.append(error.errno)
            os.write(said, json.dumps(outcomes).encode())
        os._exit(0)
    os.close(said)
    with open(hears, "rb") as answer:
        outcomes = json.loads(answer.read())
    os.waitpid(pid, 0)
    assert len(outcomes) == len(calls)
    return outcomes


@contextlib.contextmanager
def mount_for_users(area, options=""):
    """Both users may publish there, and org is a namespace that `weft import` made. Its `weftd` is the store's daemon."""
    store = Store(area / "store")
    store.publish(write_model(area / "model", random_tensors(1, 4096, seed="users")), name="org/m")
    with Mount(store, area / "mnt", f"publish,drafts_max=64G{options}") as mount, \
            Daemon(store, "--control-publish", ONE, "--control-publish", OTHER) as mount.weftd:
        mount.let_in()
        yield mount


def write(path, content):
    path.write_bytes(content)


def import_of(user):
    """The process that publishes a draft of this user, if there is one."""
    for pid, words in command_lines():
        with contextlib.suppress(OSError):
            process = pathlib.Path(f"/proc/{pid}")
            if b"import" in words and process.stat().st_uid == user:
                return process
    return None


def stop_import_of(user):
    """As ^C does, once the import handles it: an import that ends without an answer is run once more."""
    def handles_it():
        caught = next(line for line in (import_of(user) / "status").read_text().splitlines() if line.startswith("SigCgt:"))
        return int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1

    wait_until(handles_it)
    os.kill(int(import_of(user).name), signal.SIGINT)


SLOW = int((3 << 30) / PATIENCE)  # bytes that take seconds to publish


def slow_draft(mount, size=SLOW):
    """A draft of one user that takes seconds to publish."""
    draft = mount / "new/slow"
    made = [(os.mkdir, draft), (write, draft / "x", b"x"), (os.truncate, draft / "x", size)]
    outcomes = outcomes_as(ONE, made)
    assert outcomes == [0] * len(made), outcomes
    return draft


