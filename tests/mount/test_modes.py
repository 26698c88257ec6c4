"""How a mount reads where it is made in other ways than by root on a plain disk, and what it says of that."""
import json
import os
import re
import signal

import pytest

from weftlib import (HAS_LINUX_6_9, MOUNT_WEFT, NOBODY, WEFT, InotifyWatcher, Mount, in_mount_namespace, is_alive,
                     is_mounted, overlay_over, programs_for_everybody, random_tensors, run, store_with, wait_until,
                     write_model)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def mount_status(text):
    return json.loads(text)["mount"]


def assert_told(status, said):
    """`weft status` says the mode of a mount that reads through its server, and why."""
    assert re.search('mode: "?cached', said) and status["mode_reason"] in said, said


@pytest.fixture
def overlay(tmp_path):
    with overlay_over(tmp_path / "lower", tmp_path) as merged:
        yield merged


def test_a_store_on_overlayfs_is_passed_through(overlay, tmp_path):
    model = write_model(tmp_path / "model", random_tensors(4, 1 << 20, seed="overlay"))
    store = store_with(overlay, model)
    with Mount(store, tmp_path / "mnt") as mount:
        status = mount_status((mount.path / ".weft/status").read_text())
        assert status["mode"] == "passthrough", status
        assert status["read_ahead_kb"] > 128 and "read_ahead_problem" not in status
        assert re.search('mode: "?passthrough', store.weft("status", "--all").stdout)
        with open(mount.version("m", 1) / "model.safetensors", "rb") as held:
            server = status["pid"]
            os.kill(server, signal.SIGKILL)
            assert held.read() == (model / "model.safetensors").read_bytes()
        after = mount_status((mount.path / ".weft/status").read_text())
        assert after["mode"] == "passthrough" and after["pid"] != server
        store.weft("umount", mount.path)


def test_a_store_on_two_overlays_is_not_passed_through(overlay, tmp_path):
    """The kernel stacks no third file system upon them: the mount says so, and assembles nothing in vain."""
    model = write_model(tmp_path / "model", random_tensors(4, 1 << 20, seed="overlays"))
    store = store_with(overlay, model)
    with overlay_over(overlay, tmp_path / "second") as second:
        store.path = second / "store"
        with Mount(store, tmp_path / "mnt") as mount:
            said = json.loads((mount.path / ".weft/status").read_text())
            assert said["mount"]["mode"] == "cached", said
            assert "stacked" in said["mount"]["mode_reason"]
            assert said["assembly"]["state"] == "off"
            assert_told(said["mount"], store.weft("status", "--all").stdout)
            content = (mount.version("m", 1) / "model.safetensors").read_bytes()
            assert content == (model / "model.safetensors").read_bytes()


def test_without_the_capability_it_reads_through_the_server(store, small_model, open_dir):
    """Root of a user namespace may mount, and may not pass files through."""
    store.publish(small_model, name="m")
    where = open_dir / "mnt"
    where.mkdir()
    marker = "----"
    script = f"""
        {MOUNT_WEFT} {store.path} {where}
        cat {where}/.weft/status
        echo
        echo {marker}
        {WEFT} --store {store.path} status --all
        echo {marker}
        cmp {where}/models/m/1/model.safetensors {small_model}/model.safetensors
        umount {where}"""
    own, said, _ = in_mount_namespace(script, "--user", "--map-root-user").stdout.split(marker)
    status = mount_status(own)
    assert status["mode"] == "cached"
    assert ("CAP_SYS_ADMIN" if HAS_LINUX_6_9 else "Linux 6.9") in status["mode_reason"]
    assert_told(status, said)
    assert ("restart_problem" in status) != HAS_LINUX_6_9


@pytest.mark.parametrize("options", ["passthrough=off", "publish,passthrough=off"])
def test_root_can_leave_passthrough_out(options, store, small_model, tmp_path):
    """Every read is a request of the server then, also after a server was lost, and new/ works without it."""
    store.publish(small_model, name="m")
    content = (small_model / "model.safetensors").read_bytes()
    with Mount(store, tmp_path / "mnt", options) as mount:
        if HAS_LINUX_6_9:
            os.kill(mount.figure("pid"), signal.SIGKILL)
            wait_until(lambda: mount.figure("restarts") == 1)
        status = mount_status((mount.path / ".weft/status").read_text())
        assert status["mode"] == "cached" and "passthrough=off" in status["mode_reason"], status
        assert_told(status, store.weft("status", "--all").stdout)
        place = mount.version("m", 1) / "model.safetensors"
        assert mount.requests_for(lambda: place.read_bytes(), "reads") > 0
        assert place.read_bytes() == content
        if "publish" in options:
            (mount / "new/model.safetensors").write_bytes(content)
            os.rename(mount / "new/model.safetensors", mount / "new/n@v1")
            assert (mount / "models/n/v1/model.safetensors").read_bytes() == content


@pytest.fixture
def user(open_dir, as_nobody):
    """An ordinary user: run(words…) of `weft` and others, a store of root's with one model, a directory to mount on."""
    if not os.path.exists("/etc/mtab"):
        pytest.skip("fusermount3 unmounts nothing without /etc/mtab")
    programs = programs_for_everybody(open_dir)
    model = write_model(open_dir / "model", random_tensors(4, 1 << 20, seed="user"))
    os.chmod(open_dir / "model", 0o755)
    store = store_with(open_dir, model, group="nogroup")
    where = open_dir / "mnt"
    where.mkdir()
    os.chown(where, NOBODY, NOBODY)
    yield User(programs, store, model, where, as_nobody)
    run(["umount", where], check=False)
    assert not is_mounted(where)


class User:
    def __init__(self, programs, store, model, where, identity):
        self.programs, self.store, self.model, self.where, self.identity = programs, store, model, where, identity

    def run(self, *words, check=True):
        return run(words, check=check, **self.identity)

    def weft(self, *words):
        return self.run(self.programs / "weft", "--store", self.store.path, *words)

    def status(self):
        return mount_status(self.run("cat", self.where / ".weft/status").stdout)


def test_an_ordinary_users_mount(user):
    """By fusermount3: its mode, its reason, and a lost server is followed there too, if the kernel has that."""
    user.weft("mount", user.where)
    status = user.status()
    assert (status["mode"], status["restarts"]) == ("cached", 0)
    assert "root" in status["mode_reason"]
    wait_until(lambda: "/sys/class/bdi" in user.status().get("read_ahead_problem", ""))  # root's to set
    status = user.status()
    assert "read_ahead_kb" not in status
    said = user.weft("status", "--all").stdout
    assert_told(status, said)
    assert status["read_ahead_problem"] in said
    user.run("cmp", user.where / "models/m/1/model.safetensors", user.model / "model.safetensors")
    if HAS_LINUX_6_9:
        user.run("sh", "-c", f"exec 5< {user.where}/models/m/1/model.safetensors; kill -9 {status['pid']}; "
                 f"cmp - {user.model}/model.safetensors <&5")
        after = user.status()
        assert after["restarts"] == 1 and after["pid"] != status["pid"]
        user.weft("mount", "--upgrade", user.where)
    user.weft("umount", user.where)
    assert not is_alive(status["supervisor_pid"])


@pytest.mark.parametrize("options", ["announce", "announce,umask=077", "announce,umask=277"])
def test_an_ordinary_users_mount_announces(options, user):
    """Also where the kernel checks modes, as umask asks for."""
    user.weft("mount", "-o", options, user.where)
    place = user.where / "models/m"
    with InotifyWatcher(place, **user.identity) as watcher:
        user.store.weft("tag", "m@1", "prod")
        watcher.saw(f"MOVED_TO {place / 'prod'}")
        user.store.weft("tag", "--delete", "m", "prod")
        watcher.saw(f"DELETE {place / 'prod'}")
        user.store.weft("import", user.model / "config.json", "--name", "m")
        watcher.saw(f"CREATE,ISDIR {place / '2'}", f"MOVED_TO {place / 'latest'}")
        assert watcher.lines[-1] == f"MOVED_TO {place / 'latest'}"
    refused = user.run("mkdir", place / "7", check=False)
    assert refused.returncode != 0 and "Read-only file system" in refused.stderr
    user.weft("umount", user.where)


def test_a_users_mount_that_was_left_dead(user):
    """What a user's killed supervisor and server left, the user's next mount clears."""
    user.weft("mount", user.where)
    status = user.status()
    for pid in (status["supervisor_pid"], status["pid"]):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: "not connected" in user.run("ls", user.where, check=False).stderr)
    assert "cleared a mount whose server was gone" in user.weft("mount", user.where).stderr
    assert "README" in user.run("ls", user.where).stdout
    user.weft("umount", user.where)
    assert os.listdir(user.where) == []
