"""Coming up, options, going away, and who may."""
import json
import os
import signal

import pytest

from weftlib import (MOUNT_FAILED, MOUNT_WEFT, NOBODY, WEFT, Mount, Store, assert_refused, files_below,
                     foreground_mount, is_mounted, programs_for_everybody, random_tensors, run, store_with, wait_until,
                     write_model)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def try_mount(store_path, where, *options):
    return run([MOUNT_WEFT, store_path, where, *options], check=False)


def test_background_returns_when_it_answers(store, small_model, tmp_path):
    """No waiting is needed after the command, and nothing holds the caller's streams."""
    store.publish(small_model, name="m")
    (tmp_path / "mnt").mkdir()
    with Mount(store, tmp_path / "mnt") as mount:  # run() reads stdout and stderr to their ends
        assert files_below(mount.version("m", 1))


def test_foreground(store, small_model, tmp_path):
    store.publish(small_model, name="m")
    where = tmp_path / "mnt"
    with foreground_mount(store, where) as server:
        assert (where / "models/m/1/config.json").is_file()
        server.send_signal(signal.SIGTERM)
        assert server.wait(10) == 0
        assert not is_mounted(where)


def test_weft_mount_and_umount(store, small_model, tmp_path):
    store.publish(small_model, name="m")
    where = tmp_path / "mnt"
    where.mkdir()
    try:
        store.weft("mount", where)
        assert (where / "models/m/1/config.json").is_file()
        assert str(where) in store.weft("status", "--all").stdout
        store.weft("umount", where)
        assert not is_mounted(where)
    finally:
        Mount(store, where).unmount()


def assert_no_mount_point(store, where, *words):
    """`weft mount` and mount.weft refuse it in one line and exit as mount(8) does."""
    for done in (try_mount(store.path, where), store.weft("mount", where, check=False)):
        assert_refused(done, f"mount point {where}: ", *words, code=MOUNT_FAILED)


def test_mount_point_is_not_there(store, tmp_path):
    for where in (tmp_path / "none", tmp_path / "none/below"):
        assert_no_mount_point(store, where, f"does not exist; create it first: mkdir -p {where}")


def test_mount_point_is_a_file(store, tmp_path):
    (tmp_path / "file").write_text("x")
    assert_no_mount_point(store, tmp_path / "file", "not a directory; name an empty directory")


def test_mount_point_is_in_use(store, tmp_path):
    with Mount(store, tmp_path / "mnt") as mount:
        assert_no_mount_point(store, mount.path, f"the store {store.path} is mounted here already",
                              f"unmount it first: weft umount {mount.path}")
        assert "README" in os.listdir(mount.path)


def test_mount_point_holds_files(store, tmp_path):
    """A mount hides them, so the user has to ask for it."""
    where = tmp_path / "mnt"
    where.mkdir()
    (where / "hidden").write_text("x")
    assert_no_mount_point(store, where, "not empty: a mount would hide hidden", "-o nonempty")
    with Mount(store, where, options="nonempty"):
        assert "hidden" not in os.listdir(where)
    assert os.listdir(where) == ["hidden"]


@pytest.mark.parametrize("place", ["", "..", "packs"])
def test_mount_point_over_or_in_the_store(store, place):
    """The server would look for its store in its own mount."""
    where = os.path.normpath(store.path / place)
    try:
        assert_refused(try_mount(store.path, where, "-o", "nonempty"), where, "store", code=MOUNT_FAILED)
    finally:
        Mount(store, where).unmount()


def test_no_store(tmp_path):
    (tmp_path / "mnt").mkdir()
    assert_refused(try_mount(tmp_path / "none", tmp_path / "mnt"), tmp_path / "none", code=MOUNT_FAILED)
    (tmp_path / "empty").mkdir()
    assert_refused(try_mount(tmp_path / "empty", tmp_path / "mnt"), tmp_path / "empty", code=MOUNT_FAILED)
    assert not is_mounted(tmp_path / "mnt")


def test_bad_value(store, tmp_path):
    (tmp_path / "mnt").mkdir()
    assert_refused(try_mount(store.path, tmp_path / "mnt", "-o", "cold=ice"), "cold=ice: expected auto, stream or fetch")
    assert not is_mounted(tmp_path / "mnt")


@pytest.mark.parametrize("option", ["views=hidden", "views=shown", "vews=hidden", "shown"])
def test_unknown_option(store, tmp_path, option):
    (tmp_path / "mnt").mkdir()
    assert_refused(try_mount(store.path, tmp_path / "mnt", "-o", f"ro,{option}"),
                   f"unknown option {option}; remove it, also from /etc/fstab")
    assert not is_mounted(tmp_path / "mnt")


def test_umount_of_what_is_not_mounted(store, tmp_path):
    (tmp_path / "mnt").mkdir()
    assert_refused(store.weft("umount", tmp_path / "mnt", check=False), tmp_path / "mnt")


def test_owner_and_modes(store, small_model, tmp_path):
    store.publish(small_model, name="m")
    with Mount(store, tmp_path / "mnt", options="uid=12,gid=34,umask=027") as mount:
        config, tensors = mount.version("m", 1) / "config.json", mount.tensors("m", 1)
        assert (config.stat().st_uid, config.stat().st_gid) == (12, 34)
        assert config.stat().st_mode & 0o777 == 0o640
        assert tensors.stat().st_mode & 0o777 == 0o750


def test_log_option(store, small_model, tmp_path):
    with Mount(store, tmp_path / "mnt", options=f"log={tmp_path}/weft.log"):
        pass
    assert (tmp_path / "weft.log").is_file()


def test_standard_options_of_fstab(store, small_model, tmp_path):
    """What mount(8) passes on for lines of fstab is understood or ignored."""
    store.publish(small_model, name="m")
    with Mount(store, tmp_path / "mnt", options="ro,nosuid,nodev,noexec,noatime,nofail,_netdev") as mount:
        assert (mount.version("m", 1) / "config.json").is_file()


@needs_root
def test_ordinary_user_and_allow_other(open_dir, as_nobody):
    """fusermount3 refuses it, and the one line says which line of which file decides that."""
    store = store_with(open_dir, random_tensors(1, 64, seed="other"), group="nogroup")
    mount = [programs_for_everybody(open_dir) / "mount.weft", store.path, open_dir / "mnt", "-o", "allow_other"]
    (open_dir / "mnt").mkdir()
    os.chown(open_dir / "mnt", NOBODY, NOBODY)
    (open_dir / "fuse.conf").write_text("# nothing\n")
    as_user = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups"
    done = run(["unshare", "--mount", "sh", "-c", f"mount --bind {open_dir}/fuse.conf /etc/fuse.conf && "
                f"exec {as_user} {' '.join(map(str, mount))}"], check=False)
    assert_refused(done, open_dir / "mnt", "'user_allow_other' is set in /etc/fuse.conf",
                   "mount without allow_other, or have root add that line", code=MOUNT_FAILED)
    assert not is_mounted(open_dir / "mnt")


@needs_root
def test_ordinary_user_mounts_by_fusermount3(open_dir, as_nobody):
    """A user's own store on a user's own directory."""
    programs = programs_for_everybody(open_dir)
    model = write_model(open_dir / "model", random_tensors(2, 4096, seed="nobody"))
    os.chmod(open_dir / "model", 0o755)
    where = open_dir / "mnt"
    where.mkdir()
    os.chown(where, NOBODY, NOBODY)
    weft = [programs / "weft", "--store", open_dir / "store"]
    run([*weft, "init"], **as_nobody)
    run([*weft, "import", model, "--name", "m"], **as_nobody)
    try:
        run([programs / "mount.weft", open_dir / "store", where], **as_nobody)
        listed = run(["sh", "-c", f"cd {where}/models/m/1 && sha256sum *"], **as_nobody).stdout
        assert listed == run(["sh", "-c", f"cd {model} && sha256sum *"]).stdout
        with pytest.raises(PermissionError):  # without allow_other not even root
            os.listdir(where)
    finally:
        run(["umount", where], check=False)
    assert not is_mounted(where)


@needs_root
def test_ordinary_user_reads_a_store_that_is_not_theirs(open_dir, as_nobody):
    """Reading needs no right to write anything in the store."""
    programs = programs_for_everybody(open_dir)
    store = store_with(open_dir, random_tensors(2, 4096, seed="theirs"), group="nogroup")
    where = open_dir / "mnt"
    where.mkdir()
    os.chown(where, NOBODY, NOBODY)
    assert "m" in run([programs / "weft", "--store", store.path, "ls"], **as_nobody).stdout
    refused = run([programs / "weft", "--store", store.path, "import", open_dir / "model", "--name", "n"],
                  check=False, **as_nobody)
    assert_refused(refused)
    try:
        run([programs / "mount.weft", store.path, where], **as_nobody)
        run(["cat", where / "models/m/1/config.json"], **as_nobody)
    finally:
        run(["umount", where], check=False)


@needs_root
@pytest.mark.parametrize("options, words, code", [
    ("publish", ["cannot write to the store", "mount without publish"], MOUNT_FAILED),
    ("publish,allow_other", ["publish with allow_other needs root"], 1)])
def test_ordinary_user_publishes_in_a_store_of_their_own(open_dir, as_nobody, options, words, code):
    """And for themselves alone: what their server does, it does by their rights."""
    store = store_with(open_dir, random_tensors(1, 64, seed="theirs"), group="nogroup")
    (open_dir / "mnt").mkdir()
    os.chown(open_dir / "mnt", NOBODY, NOBODY)
    done = run([programs_for_everybody(open_dir) / "mount.weft", store.path, open_dir / "mnt", "-o", options], check=False,
               **as_nobody)
    assert_refused(done, *words, code=code)
    assert not is_mounted(open_dir / "mnt")


@needs_root
def test_ordinary_user_assembles_nothing(open_dir, as_nobody):
    """Reads a file of several packs as ever, and the mount says why."""
    store = Store(open_dir / "store", group="nogroup")
    shared = random_tensors(2, 1 << 20, seed="shared")
    for name in ("base", "one"):
        own = random_tensors(1, 1 << 20, seed=name, prefix="own")
        store.publish(write_model(open_dir / name, shared | own), name=name)
    store.weft("cache", "--max", "0")
    where = open_dir / "mnt"
    where.mkdir()
    os.chown(where, NOBODY, NOBODY)
    try:
        run([programs_for_everybody(open_dir) / "mount.weft", store.path, where], **as_nobody)
        run(["cmp", where / "models/one/1/model.safetensors", open_dir / "one/model.safetensors"], **as_nobody)
        status = json.loads(run(["cat", where / ".weft/status"], **as_nobody).stdout)["assembly"]
        assert status["state"] == "off" and "root" in status["reason"]
    finally:
        run(["umount", where], check=False)


@needs_root
@pytest.mark.parametrize("options", [None, "allow_other"])
def test_root_lets_others_in(open_dir, as_nobody, options):
    store = store_with(open_dir, random_tensors(1, 64, seed="allow"))
    with Mount(store, open_dir / "mnt", options=options):
        assert run(["cat", open_dir / "mnt/models/m/1/config.json"], **as_nobody).stdout


def test_server_ends_with_its_mount(store, tmp_path):
    with Mount(store, tmp_path / "mnt") as mount:
        assert mount.server_pids()
        mount.unmount()
        wait_until(lambda: not mount.server_pids())


def test_killed_server_leaves_a_mount_that_umount_clears(store, tmp_path):
    with Mount(store, tmp_path / "mnt") as mount:
        mount.kill()
        run([WEFT, "--store", store.path, "umount", mount.path])
        assert not is_mounted(mount.path)


def test_status_does_not_wait_for_a_mount_whose_server_is_stopped(store, small_model, tmp_path):
    store.publish(small_model, name="m")
    where = tmp_path / "mnt"
    with foreground_mount(store, where):
        assert f"mounted   {where}\n" in store.weft("status", "--all").stdout
        child = json.loads((where / ".weft/status").read_text())["mount"]["pid"]
        os.kill(child, signal.SIGSTOP)
        try:
            assert f"mounted   {where} (does not answer)\n" in store.weft("status", "--all").stdout
            assert store.json("status")["mounts"] == [{"directory": str(where), "status": None}]
        finally:
            os.kill(child, signal.SIGCONT)
