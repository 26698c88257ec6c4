"""The server of a mount, weftd, or both are killed at a random moment of a publish: each version is complete or absent, each
draft is complete or gone, and no rename yields two numbers."""
import contextlib
import errno
import json
import os
import random
import shutil
import signal
import statistics
import threading
import time

import pytest

from daemonlib import Daemon
from weftlib import LENGTH, Mount, Store, files_below, random_bytes, wait_until

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="needs root"), pytest.mark.long]
ROUNDS = int(17 * LENGTH)  # of each kind; scripts/campaign long makes ten times as many
INSIDE_MIN = 1 / 3  # of the kills: so many fall between the begin of a rename and its answer
MAY_FAIL = {errno.EINTR, errno.EIO, errno.ETIMEDOUT, errno.ENOENT, errno.ESTALE}
NOT_PUBLISHED = errno.EHOSTUNREACH  # weftd was away before it took the import: there is no version


class World:
    def __init__(self, mount, daemon, seed):
        self.mount, self.daemon, self.random = mount, daemon, random.Random(seed)
        self.draft = mount / "new/m"
        self.begun = threading.Event()
        self.took = []  # seconds, of publishes that nothing disturbed
        self.published = (0, 0)  # when the last rename began, and when it was answered

    def versions(self):
        """Each version and what it holds."""
        model = self.mount / "models/m"
        names = os.listdir(model) if model.exists() else []
        return {name: files_below(model / name) for name in names if name.isdigit()}

    def server(self):
        return json.loads((self.mount / ".weft/status").read_text())["mount"]["pid"]

    def write(self, number):
        self.draft.mkdir()
        (self.draft / "large").write_bytes(random_bytes(2 << 20, f"large {number}"))
        (self.draft / "sub").mkdir()
        (self.draft / "sub/small").write_bytes(random_bytes(1000, f"small {number}"))
        return files_below(self.draft)

    def publish(self):
        """True: it was acknowledged. Not if it was interrupted, or nobody knows."""
        begin = time.monotonic()
        self.begun.set()
        try:
            os.rename(self.draft, f"{self.draft}@")
        except OSError as error:
            assert error.errno in MAY_FAIL | {NOT_PUBLISHED}, error
            self.refusal = error.errno
            return False
        finally:
            self.published = (begin, time.monotonic())
        return True

    def publish_undisturbed(self):
        assert self.publish()
        begin, end = self.published
        self.took.append(end - begin)

    def killer(self, kind, moments):
        """Kills at a random moment of the next publish, and adds to `moments` when."""
        victims = [self.server()] if kind != "weftd" else []
        victims += [self.daemon.pid] if self.daemon else []
        wait = self.random.uniform(0, statistics.quantiles(self.took[-9:])[0])
        self.begun.clear()

        def kill():
            self.begun.wait()
            time.sleep(wait)
            moments.append(time.monotonic())
            for victim in self.random.sample(victims, len(victims)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)

        return threading.Thread(target=kill)

    def bring_back(self):
        if self.daemon:
            self.daemon.process.wait(60)
            self.daemon.start()
        wait_until(lambda: os.path.isdir(self.mount / "models"))


def drafts_of(world, written):
    """A draft is complete, wherever it came back to."""
    found = [world.mount / "new" / name for name in os.listdir(world.mount / "new")]
    for draft in found:
        content = files_below(draft)
        content.pop(".weft.error", None)
        assert content == written, draft
    return found


@pytest.mark.parametrize("kind", ["server", "weftd", "both"])
def test_no_rename_yields_two_numbers(kind, tmp_path):
    with contextlib.ExitStack() as stack:
        store = Store(tmp_path / "store")
        daemon = stack.enter_context(Daemon(store)) if kind != "server" else None
        mount = stack.enter_context(Mount(store, tmp_path / "mnt", "publish"))
        world = World(mount, daemon, kind)
        for number in range(3):
            world.write(f"undisturbed {number}")
            world.publish_undisturbed()
        inside, moments, lost = 0, [], 0
        for number in range(ROUNDS):
            before = world.versions()
            written = world.write(number)
            killer = world.killer(kind, moments)
            killer.start()
            acknowledged = world.publish()
            killer.join()
            refused = not acknowledged and world.refusal == NOT_PUBLISHED
            assert acknowledged or refused or kind != "weftd", number  # a second import finds the version, or makes it
            begin, end = world.published
            inside += begin <= moments[-1] <= end
            lost += not acknowledged
            world.bring_back()
            drafts = drafts_of(world, written)
            after = world.versions()
            new = [content for version, content in after.items() if version not in before]
            assert new in ([], [written]) and (new or not acknowledged), (number, acknowledged)
            assert not (new and refused), number
            assert len(drafts) == (0 if acknowledged else 1), (number, acknowledged)
            if not acknowledged:
                if drafts[0] != world.draft:
                    drafts[0].rename(world.draft)
                world.publish_undisturbed()
                assert [content for version, content in world.versions().items() if version not in before] == [written]
            shutil.rmtree(world.draft, ignore_errors=True)
        store.assert_sound()
        print(f"{kind}: {inside} of {ROUNDS} kills fell inside a publish, which takes "
              f"{1000 * statistics.median(world.took):.0f} ms; {lost} publishes were not acknowledged")
        assert inside >= INSIDE_MIN * ROUNDS
