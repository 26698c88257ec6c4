"""The audit log of a daemon: who did what, and who had no right to; as text and as JSON."""
import json
import os
import pwd

import pytest

from daemonlib import Daemon
from weftlib import NOBODY, Store, programs_for_everybody, run, wait_until

ME = {"user": pwd.getpwuid(os.geteuid()).pw_name, "uid": str(os.geteuid()), "outcome": "done", "node": "n7"}


def audited(log):
    """The audit lines of a log of JSON, as (action, object, the rest)."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]  # each line is an object
    found = [line for line in lines if line.get("category") == "audit"]
    return [(line["action"], line["object"], {name: line.get(name) for name in ME}) for line in found]


def test_each_change_has_a_line_with_its_user(store, small_model, tmp_path):
    log = tmp_path / "weftd.log"
    with Daemon(store, "--log-file", log, "--log-format", "json", "--log-level", "error", "--name", "n7"):
        store.publish(small_model, name="m")
        store.weft("tag", "m@1", "best")
        store.weft("note", "m@1", "--message", "better")
        store.weft("pin", "m@1")
        store.weft("unpin", "m@1")
        store.weft("tag", "--delete", "m", "best")
        store.weft("rm", "m@1", "--dry-run")
        store.weft("rm", "m@1")
        store.weft("undelete", "m@1")
        store.weft("gc", "--dry-run")
        store.weft("gc")
        store.weft("ls")
    assert audited(log) == [(action, where, ME) for action, where in (
        ("publish", "m@1"), ("tag", "m@1 best"), ("note", "m@1"), ("pin", "m@1"), ("unpin", "m@1"), ("untag", "m@best"),
        ("remove", "m@1"), ("undelete", "m@1"), ("gc", ""))]


def test_a_request_that_fails_has_lines_about_what_it_changed(store, small_model, tmp_path):
    log = tmp_path / "weftd.log"
    for name in ("mone", "mtwo"):
        store.publish(small_model, name=name)
    with Daemon(store, "--log-file", log, "--log-format", "json", "--log-level", "error", "--name", "n7"):
        store.weft("tag", "mtwo@1", "best")
        assert store.weft("rm", "--purge", "mone@1", "mtwo@1", check=False).returncode != 0
        assert store.weft("gc", "--origin", check=False).returncode != 0
    assert audited(log) == [("tag", "mtwo@1 best", ME), ("purge", "mone@1", ME),
                            ("gc-origin", "", {**ME, "outcome": "failed"})]


def test_who_has_no_right_is_in_the_log(open_dir, small_model):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    programs = programs_for_everybody(open_dir)
    store = Store(open_dir / "store", group="nogroup")
    store.publish(small_model, name="m")
    with Daemon(store, "--name", "n7") as daemon:
        for words in (["tag", "m@1", "mine"], ["rm", "m@1"], ["gc"], ["pin", "m@1"]):
            done = run([programs / "weft", "--store", store.path, *words], check=False, user=NOBODY, group=NOBODY,
                       extra_groups=[])
            assert done.returncode == 1
        who = f"user={pwd.getpwuid(NOBODY).pw_name} uid={NOBODY} outcome=denied reason=\"weftd: user {NOBODY} may not "
        for action in ('tag object="m@1 mine"', "remove object=m@1", 'gc object=""', "pin object=m@1"):
            wait_until(lambda action=action: f"audit: action={action} {who}" in daemon.said(), seconds_max=10)
        assert store.json("ls")["models"][0]["versions"] == 1
