"""A revision of a hub becomes a version: from a double of the hub, with every trouble that it can make."""
import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import time

import pytest

from daemonlib import Daemon
from hub_double import Hub
from weftlib import (NOBODY, WEFT, Mount, Store, assert_refused, environment, files_below, programs_for_everybody,
                     random_bytes, random_tensors, run, wait_until, write_model)

MIB = 1 << 20
PIECE = 8 * MIB  # kPieceBytes
TOKEN = "hf_TheSecretOfThisTest"
HF_HOME = "/nonexistent/hf"  # no token of the user who runs the tests


@pytest.fixture
def hub():
    with Hub() as one:
        yield one


def settings(hub, **extra):
    return environment(HF_ENDPOINT=hub.endpoint, HF_HOME=HF_HOME) | extra


def pull(store, hub, *words, check=True, **extra):
    return run([WEFT, "--store", store.path, "pull", *words], check=check, env=settings(hub, **extra))


def pulled(store, hub, *words, **extra):
    """What `weft pull --json` says."""
    return json.loads(pull(store, hub, *words, "--json", **extra).stdout)


def running_pull(store, hub):
    return subprocess.Popen([WEFT, "--store", store.path, "pull", "hf:org/bert"], env=settings(hub), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def bytes_of(directory):
    return sum(len(data) for data in files_below(directory).values())


def make_repository(area, megabytes=2):
    """Files of LFS and of git, some in directories, one empty."""
    write_model(area, random_tensors(megabytes, MIB, seed=area.name))
    (area / "README.md").write_text("# A model\n")
    (area / "sub").mkdir()
    (area / "sub/vocabulary.txt").write_text("word\n" * 1000)
    (area / "sub/empty").write_text("")
    return area


@pytest.fixture
def repository(tmp_path):
    return make_repository(tmp_path / "repository")


def assert_version_is(store, tmp_path, spec, directory):
    out = tmp_path / f"out-{spec.replace('/', '-')}"
    store.weft("export", spec, out)
    assert files_below(out) == files_below(directory)


def is_unchanged(store):
    """No version, and nothing that only a pull needs is damaged."""
    return store.json("ls")["models"] == [] and store.weft("fsck").returncode == 0


def test_a_pull_is_a_version_with_name_tag_and_commit(store, hub, repository, tmp_path):
    bert = hub.add("org/bert", repository)
    commit = bert.branches["main"]
    report = pulled(store, hub, "hf:org/bert")
    assert (report["model"], report["version"], report["made"]) == ("org/bert", 1, True)
    assert (report["repository"], report["revision"], report["commit"]) == ("hf:org/bert", "main", commit)
    assert report["endpoint"] == hub.endpoint and report["tags"] == ["main"]
    assert report["received_bytes"] == report["bytes"] == bytes_of(repository) == sum(hub.sent.values())
    assert report["files"] == len(files_below(repository))
    info = store.json("info", "org/bert@main")
    source = dict(info["source"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", source.pop("time"))
    assert source == {"endpoint": hub.endpoint, "repository": "hf:org/bert", "revision": "main", "commit": commit}
    assert store.json("log", "org/bert")["versions"][0]["source"] == info["source"] | source
    for line in (hub.endpoint, "hf:org/bert", "main", commit):
        assert any(row.split()[-1] == line for row in store.weft("info", "org/bert").stdout.splitlines())
    assert info["message"] == f"hf:org/bert of {hub.endpoint}, revision main, commit {commit}"
    assert_version_is(store, tmp_path, "org/bert", repository)
    assert not any((store.path / "pulls").iterdir())
    with Mount(store, tmp_path / "mnt") as mount:
        snapshots = mount / "hub/models--org--bert/snapshots"
        assert files_below(snapshots / commit) == files_below(repository)


def test_the_store_is_created(hub, repository, tmp_path):
    hub.add("org/bert", repository)
    path = tmp_path / "new/store"
    assert run([WEFT, "--store", path, "pull", "hf:org/none"], check=False, env=settings(hub)).returncode == 1
    assert not path.parent.exists()
    assert "made a store" in run([WEFT, "--store", path, "pull", "hf:org/bert"], env=settings(hub)).stderr


@pytest.mark.parametrize("revision, tag", [("v1", "v1"), ("refs/pr/1", None), ("commit", None)])
def test_revisions(store, hub, repository, tmp_path, revision, tag):
    bert = hub.add("org/bert", repository)
    commit = bert.branches["main"]
    bert.tags["v1"] = bert.branches["refs/pr/1"] = commit
    bert.commit(make_repository(tmp_path / "later"))
    report = pulled(store, hub, f"hf:org/bert@{commit if revision == 'commit' else revision}")
    assert report["commit"] == commit and report["tags"] == ([tag] if tag else [])
    assert_version_is(store, tmp_path, "org/bert", repository)
    assert [one["tag"] for one in store.json("tag", "org/bert")["tags"]] == ([tag] if tag else [])


def test_name_and_tags(store, hub, repository):
    hub.add("org/_bert", repository)
    assert_refused(pull(store, hub, "hf:org/_bert", check=False), "hf:org/_bert", "--name", code=2)
    report = pulled(store, hub, "hf:org/_bert", "--name", "mine", "--tag", "a", "--tag", "b")
    assert (report["model"], report["tags"]) == ("mine", ["a", "b"])
    for tag in ("a", "b"):
        assert store.json("info", f"mine@{tag}")["version"] == 1


@pytest.mark.parametrize("words, paths", [
    (["--include", "*.json"], {"config.json"}),
    (["--include", "sub/"], {"sub/vocabulary.txt", "sub/empty"}),
    (["--include", "*", "--exclude", "*.safetensors", "--exclude", "sub/"], {"config.json", "README.md"}),
])
def test_patterns(store, hub, tmp_path, words, paths):
    area = tmp_path / "repository"
    area.mkdir()
    (area / "sub").mkdir()
    for path in ("config.json", "README.md", "a.safetensors", "sub/vocabulary.txt", "sub/empty"):
        (area / path).write_text("{}" if path.endswith(".json") else "")
    (area / "sub/vocabulary.txt").write_text("x")
    (area / "a.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    hub.add("org/bert", area)
    pull(store, hub, "hf:org/bert", *words)
    assert {file["path"] for file in store.json("info", "org/bert")["files"]} == paths
    assert_refused(pull(store, hub, "hf:org/bert", "--include", "none", check=False), "hf:org/bert", "none of 5")


def test_a_data_set(store, hub, tmp_path):
    area = make_repository(tmp_path / "data", megabytes=6)
    c4 = hub.add("org/c4", area, kind="dataset")
    assert pulled(store, hub, "hf:datasets/org/c4")["repository"] == "hf:datasets/org/c4"
    assert_version_is(store, tmp_path, "org/c4", area)
    assert pulled(store, hub, "hf:org/c4", "--dataset")["made"] is False
    (area / "sub/more.txt").write_text("more")
    c4.commit(area)
    assert pulled(store, hub, "hf:datasets/org/c4")["received_bytes"] == len("more")
    assert store.weft("fsck").returncode == 0


# What moves.


def test_the_same_commit_again_moves_nothing_and_says_so(store, hub, repository):
    bert = hub.add("org/bert", repository)
    pull(store, hub, "hf:org/bert")
    sent, state = dict(hub.sent), store.state()
    done = pull(store, hub, "hf:org/bert")
    assert "org/bert@1" in done.stdout and "nothing received" in done.stdout
    assert dict(hub.sent) == sent and store.state() == state
    bert.tags["v1"] = bert.branches["main"]
    assert pulled(store, hub, "hf:org/bert@v1")["made"] is False
    assert store.json("info", "org/bert@v1")["version"] == 1
    assert dict(hub.sent) == sent


def test_of_the_next_commit_only_what_changed_moves(store, hub, repository, tmp_path):
    bert = hub.add("org/bert", repository)
    pull(store, hub, "hf:org/bert")
    (tmp_path / "next").mkdir()
    for path, data in files_below(repository).items():
        (tmp_path / "next" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "next" / path).write_bytes(data)
    (tmp_path / "next/README.md").write_text("# A Model\n")  # as long as before
    write_model(tmp_path / "adapter", random_tensors(1, MIB, seed="adapter"))
    (tmp_path / "adapter/model.safetensors").rename(tmp_path / "next/adapter.safetensors")
    bert.commit(tmp_path / "next")
    changed = len("# A Model\n") + (tmp_path / "next/adapter.safetensors").stat().st_size
    before, state = sum(hub.sent.values()), store.state()
    assert pulled(store, hub, "hf:org/bert", "--check")["received_bytes"] == changed
    assert store.state() == state and sum(hub.sent.values()) == before
    report = pulled(store, hub, "hf:org/bert")
    assert report["received_bytes"] == changed == sum(hub.sent.values()) - before
    assert report["known_bytes"] == report["bytes"] - changed
    assert_version_is(store, tmp_path, "org/bert@2", tmp_path / "next")
    assert store.json("info", "org/bert@2")["parents"][0]["version"] == 1
    assert store.weft("fsck").returncode == 0


def test_files_that_another_version_has_do_not_move(store, hub, repository, tmp_path):
    hub.add("org/bert", repository)
    hub.add("other/copy", repository)
    pull(store, hub, "hf:org/bert")
    large = (repository / "model.safetensors").stat().st_size
    held, stored = hub.sent["storage"], store.pack_bytes()
    report = pulled(store, hub, "hf:other/copy")
    assert hub.sent["storage"] == held
    assert report["known_bytes"] == large and report["new_bytes"] == 0
    assert store.pack_bytes() - stored < 64 << 10
    assert_version_is(store, tmp_path, "other/copy", repository)
    whole = run([WEFT, "--store", store.path, "import", repository, "--name", "whole", "--json"]).stdout
    assert store.json("info", "whole")["manifest"] == store.json("info", "other/copy")["manifest"], whole


def test_files_of_a_version_that_is_removed_meanwhile_come_over_the_network(store, hub, repository, tmp_path):
    hub.add("org/bert", repository)
    pull(store, hub, "hf:org/bert")
    (repository / "README.md").write_text("# A copy\n")
    hub.add("other/copy", repository)

    def remove(request):
        if "README.md" in request.path:
            store.weft("rm", "org/bert@1", "--force", check=False)

    hub.on_request = remove
    report = pulled(store, hub, "hf:other/copy")
    assert report["received_bytes"] == report["bytes"] and report["known_files"] == report["resumed_bytes"] == 0
    assert_version_is(store, tmp_path, "other/copy", repository)


@pytest.mark.parametrize("daemon", [False, True], ids=["alone", "daemon"])
def test_a_large_file_is_written_once(store, hub, tmp_path, daemon):
    """The file that its bytes arrive in becomes the pack, and the import has read it by then."""
    area = tmp_path / "repository"
    write_model(area, random_tensors(8, MIB, seed="large"))
    hub.add("org/bert", area)
    hub.pace = 4 * MIB
    with Daemon(store) if daemon else contextlib.nullcontext(), running_pull(store, hub) as process:
        places = store.path / "pulls"
        wait_until(lambda: any(places.glob("*/files/model.safetensors")))
        [received] = places.glob("*/files/model.safetensors")
        number = received.stat().st_ino
        assert process.wait(60) == 0
    pack = max((store.path / "packs").glob("*.pack"), key=lambda path: path.stat().st_size)
    assert pack.stat().st_ino == number
    assert pack.read_bytes() == (area / "model.safetensors").read_bytes()
    assert store.weft("fsck").returncode == 0


def test_one_large_file_comes_over_several_connections(store, hub, tmp_path):
    area = tmp_path / "repository"
    area.mkdir()
    (area / "large.bin").write_bytes(random_bytes(3 * PIECE, seed="connections"))
    hub.add("org/bert", area)
    hub.pace, sent = 64 * MIB, []
    hub.on_request = lambda request: request.host == "storage" and sent.append(hub.sent["storage"])
    pull(store, hub, "hf:org/bert")
    assert len(sent) == 3 and max(sent) < PIECE


# What was received stays.


def test_an_interrupted_pull_goes_on(store, hub, tmp_path):
    area = tmp_path / "repository"
    write_model(area, random_tensors(24, MIB, seed="interrupted"))
    (area / "second.bin").write_bytes(random_bytes(24 * MIB, seed="second"))
    hub.add("org/bert", area)
    hub.pace = 8 * MIB
    with subprocess.Popen([WEFT, "--store", store.path, "pull", "hf:org/bert"], env=settings(hub), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until(lambda: hub.sent["storage"] > 8 * MIB)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and time.monotonic() - begin < 10
    assert said.splitlines()[-1].startswith("weft: interrupted, the store is as it was")
    assert is_unchanged(store)
    kept = {path: path.stat().st_mtime_ns for path in (store.path / "pulls").rglob("*")}
    expected = pulled(store, hub, "hf:org/bert", "--check")
    assert "received earlier" in pull(store, hub, "hf:org/bert", "--check").stdout
    assert {path: path.stat().st_mtime_ns for path in (store.path / "pulls").rglob("*")} == kept
    hub.pace, before = None, hub.sent["storage"]
    report = pulled(store, hub, "hf:org/bert")
    assert report["resumed_bytes"] >= 4 * MIB
    assert all(report[name] == expected[name] for name in ("received_bytes", "resumed_bytes"))
    assert report["received_bytes"] == report["bytes"] - report["resumed_bytes"]
    assert hub.sent["storage"] + hub.sent["hub"] >= report["bytes"] > hub.sent["storage"] - before
    assert_version_is(store, tmp_path, "org/bert", area)
    assert not any((store.path / "pulls").iterdir())


def test_a_killed_pull_goes_on(store, hub, tmp_path):
    """At 10 moments, each of which loses a piece's last MiB of each connection at most."""
    area = tmp_path / "repository"
    area.mkdir()
    for number in range(4):
        (area / f"{number}.bin").write_bytes(random_bytes(16 * MIB + number, seed=f"killed {number}"))
    hub.add("org/bert", area)
    hub.pace = 16 * MIB
    for number in range(1, 11):
        with subprocess.Popen([WEFT, "--store", store.path, "pull", "hf:org/bert"], env=settings(hub),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_until(lambda: sum(hub.sent.values()) > number * 4 * MIB or process.poll() is not None)
            process.kill()
    hub.pace = None
    report = pulled(store, hub, "hf:org/bert")
    assert report["received_bytes"] + report["resumed_bytes"] == report["bytes"]
    assert report["resumed_bytes"] > 0
    assert_version_is(store, tmp_path, "org/bert", area)
    assert store.weft("fsck").returncode == 0


def test_received_bytes_that_a_crash_damaged_are_received_again(store, hub, tmp_path):
    area = tmp_path / "repository"
    area.mkdir()
    for name in ("a.bin", "b.bin"):
        (area / name).write_bytes(random_bytes(4 * MIB, seed=name))
    hub.add("org/bert", area)
    hub.trouble("status", path="*b.bin", host="hub", status=404, code="EntryNotFound")
    # The bytes of the first file are more than the sockets hold, so some are received before the error.
    hub.on_request = lambda request: request.path.endswith("b.bin") and wait_until(lambda: hub.sent["storage"] == 4 * MIB)
    assert_refused(pull(store, hub, "hf:org/bert", check=False), "hf:org/bert", "b.bin")
    hub.on_request = None
    [kept] = (store.path / "pulls").glob("*/files/a.bin")
    with kept.open("r+b") as file:
        file.write(bytes(4096))
    hub.calm()
    pull(store, hub, "hf:org/bert")
    assert_version_is(store, tmp_path, "org/bert", area)


@pytest.mark.parametrize("daemon", [False, True], ids=["alone", "daemon"])
def test_a_pull_that_is_killed_while_the_import_reads_goes_on(store, hub, tmp_path, daemon):
    area = tmp_path / "repository"
    write_model(area, random_tensors(24, MIB, seed="killed while it reads"))
    hub.add("org/bert", area)
    hub.pace = 8 * MIB
    with Daemon(store) if daemon else contextlib.nullcontext():
        with running_pull(store, hub) as process:
            wait_until(lambda: hub.sent["storage"] > 8 * MIB)
            process.kill()
        assert store.json("ls")["models"] == []
        hub.pace = None
        report = pulled(store, hub, "hf:org/bert")
        assert report["received_bytes"] + report["resumed_bytes"] == report["bytes"]
        assert report["resumed_bytes"] > 4 * MIB
    assert_version_is(store, tmp_path, "org/bert", area)
    assert store.weft("fsck").returncode == 0


@pytest.mark.parametrize("daemon", [False, True], ids=["alone", "daemon"])
def test_an_import_that_waits_for_a_stalled_server_is_interrupted(store, hub, repository, tmp_path, daemon):
    hub.add("org/bert", repository)
    hub.trouble("stall", path="*.safetensors", host="storage", bytes=MIB)
    with Daemon(store) if daemon else contextlib.nullcontext():
        with running_pull(store, hub) as process:
            wait_until(lambda: hub.sent["storage"] > 0)
            process.send_signal(signal.SIGINT)
            begin = time.monotonic()
            _, said = process.communicate(timeout=60)
        assert process.returncode == 130 and time.monotonic() - begin < 10
        assert said.splitlines()[-1].startswith("weft: interrupted, the store is as it was")
        assert store.json("ls")["models"] == []
        hub.calm()
        report = pulled(store, hub, "hf:org/bert")
        assert report["received_bytes"] + report["resumed_bytes"] == report["bytes"]
    assert_version_is(store, tmp_path, "org/bert", repository)


def test_a_file_that_is_a_pack_already_keeps_its_bytes(store, hub, repository, tmp_path):
    """A pull that is killed after its import leaves the file under both names, and the next commit has another one."""
    bert = hub.add("org/bert", repository)
    pull(store, hub, "hf:org/bert")
    pack = max((store.path / "packs").glob("*.pack"), key=lambda path: path.stat().st_size)
    before = pack.read_bytes()
    later = tmp_path / "later"
    write_model(later, random_tensors(2, MIB, seed="later"))
    assert (later / "model.safetensors").stat().st_size == pack.stat().st_size
    bert.commit(later)
    hub.trouble("status", path="*.safetensors", host="hub", status=404, code="EntryNotFound")
    pull(store, hub, "hf:org/bert", check=False)
    hub.calm()
    [area] = (store.path / "pulls").iterdir()
    for note in (area / "notes").iterdir():
        note.unlink()
    (area / "files/model.safetensors").unlink(missing_ok=True)
    os.link(pack, area / "files/model.safetensors")
    pull(store, hub, "hf:org/bert")
    assert pack.read_bytes() == before
    assert_version_is(store, tmp_path, "org/bert", later)
    assert store.weft("fsck").returncode == 0


def test_gc_removes_what_no_pull_goes_on_with(store, hub, repository):
    hub.add("org/bert", repository)
    hub.trouble("status", path="*.safetensors", host="hub", status=404, code="EntryNotFound")
    pull(store, hub, "hf:org/bert", check=False)
    [area] = (store.path / "pulls").iterdir()
    store.weft("gc")
    assert area.exists()
    os.utime(area / "lock", (1, 1))
    store.weft("gc")
    assert not area.exists()


def test_the_wait_for_another_pull_can_have_a_limit(store, hub, repository):
    hub.add("org/bert", repository)
    assert_refused(pull(store, hub, "hf:org/bert", "--wait", "soon", check=False), "--wait", code=2)
    hub.trouble("stall", path="*.safetensors", bytes=1000)
    words = [WEFT, "--store", store.path, "pull", "hf:org/bert"]
    with subprocess.Popen(words, env=settings(hub), stderr=subprocess.DEVNULL) as first:
        try:
            wait_until(lambda: sum(hub.sent.values()) > 0)
            for seconds in (0, 1):
                done = pull(store, hub, "hf:org/bert", "--wait", seconds, check=False)
                assert done.returncode == 1 and f"process {first.pid} (weft)" in done.stderr and "--wait" in done.stderr
        finally:
            first.kill()
    hub.calm()
    assert pulled(store, hub, "hf:org/bert", "--wait", "1m")["made"]


def test_two_pulls_of_one_repository_take_turns(store, hub, repository):
    hub.add("org/bert", repository)
    hub.pace = 1 * MIB
    words = [WEFT, "--store", store.path, "pull", "hf:org/bert", "--quiet"]
    processes = [subprocess.Popen(words, env=settings(hub), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                 for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert sum("nothing received" in out for out, _ in outputs) == 1
    assert sum(hub.sent.values()) == bytes_of(repository)
    assert len(store.json("ls", "org/bert")["versions"]) == 1


def test_a_branch_that_moves_during_a_pull_does_not_matter(store, hub, repository, tmp_path):
    bert = hub.add("org/bert", repository)
    later = make_repository(tmp_path / "later")

    def move(request):
        if "/tree/" in request.path and len(bert.commits) == 1:
            bert.commit(later)

    hub.on_request = move
    pull(store, hub, "hf:org/bert")
    assert len(bert.commits) == 2
    assert_version_is(store, tmp_path, "org/bert", repository)


# Trouble.


@pytest.mark.parametrize("trouble", [
    ("cut", {"path": "*", "times": 2, "bytes": 100_000}),
    ("status", {"path": "*", "times": 2, "status": 503}),
    ("status", {"path": "*", "times": 2, "status": 429, "fields": {"Retry-After": "1"}}),
    ("short", {"path": "*.safetensors", "times": 2, "by": 1000, "host": "storage"}),
], ids=["cut", "503", "429", "short"])
def test_trouble_that_passes(store, hub, repository, tmp_path, trouble):
    hub.page_rows = 2
    hub.add("org/bert", repository)
    kind, arguments = trouble
    hub.trouble(kind, **arguments)
    pull(store, hub, "hf:org/bert")
    assert_version_is(store, tmp_path, "org/bert", repository)


@pytest.mark.parametrize("kind, arguments, words", [
    ("damage", {"path": "*.safetensors", "host": "storage", "at": 70_000}, ["model.safetensors", "SHA-256"]),
    ("damage", {"path": "*/README.md", "at": 3}, ["README.md", "git SHA-1"]),
    ("long", {"path": "*.safetensors", "host": "storage"}, ["model.safetensors"]),
    ("whole", {"path": "*.safetensors", "host": "storage"}, ["model.safetensors"]),
    ("encoded", {"path": "*.safetensors", "host": "storage"}, ["model.safetensors"]),
    ("redirect", {"path": "*.safetensors", "to": "file:///etc/passwd"}, ["model.safetensors"]),
    ("listed", {"path": "README.md", "row": {"size": 11}}, ["README.md"]),
    ("listed", {"path": "README.md", "row": {"path": "../README.md"}}, ["README.md"]),
    ("listed", {"path": "README.md", "row": {"path": "config.json"}}, ["config.json"]),
    ("body", {"path": "*/tree/*", "body": b"{}"}, ["hf:org/bert"]),
    ("link", {"path": "*/tree/*", "to": "http://127.0.0.3/"}, ["127.0.0.3"]),
    ("body", {"path": "*/tree/*", "size": 1 << 30}, ["at most"]),
    ("body", {"path": "*/revision/*", "size": 1 << 30}, ["at most"]),
    ("redirect", {"path": "*.safetensors", "to": "/org/bert/resolve/main/model.safetensors"},
     ["model.safetensors", "redirects"]),
    ("status", {"path": "*/tree/*", "status": 429, "fields": {"Retry-After": "1"}}, ["429"]),
], ids=["LFS", "git", "long", "whole", "gzip", "file:", "size", "..", "twice", "no list", "link",
        "list of 1 GiB", "revision of 1 GiB", "circle", "429"])
def test_bad_answers_are_refused_by_name_and_publish_nothing(store, hub, repository, kind, arguments, words):
    hub.add("org/bert", repository)
    hub.trouble(kind, **arguments)
    assert_refused(pull(store, hub, "hf:org/bert", check=False), "hf:org/bert", *words)
    assert is_unchanged(store)


@pytest.mark.parametrize("at", [3, 9], ids=["length", "JSON"])
@pytest.mark.parametrize("daemon", [False, True], ids=["alone", "daemon"])
def test_a_wrong_byte_in_a_header_is_told_from_a_bad_file(store, hub, repository, tmp_path, daemon, at):
    """The import reads the header long before it knows the SHA-256 of the file."""
    hub.add("org/bert", repository)
    hub.trouble("damage", path="*/model.safetensors", host="storage", at=at)
    with Daemon(store) if daemon else contextlib.nullcontext():
        assert_refused(pull(store, hub, "hf:org/bert", check=False), "hf:org/bert", "model.safetensors", "SHA-256")
        assert store.json("ls")["models"] == []
        hub.calm()
        assert pulled(store, hub, "hf:org/bert")["received_bytes"] == (repository / "model.safetensors").stat().st_size
    assert_version_is(store, tmp_path, "org/bert", repository)


def test_a_header_that_a_crash_damaged_is_received_again(store, hub, repository, tmp_path):
    hub.add("org/bert", repository)
    hub.trouble("stall", path="*.safetensors", host="storage", bytes=MIB)
    with running_pull(store, hub) as process:
        wait_until(lambda: hub.sent["storage"] >= MIB)
        time.sleep(0.5)
        process.kill()
    [kept] = (store.path / "pulls").glob("*/files/model.safetensors")
    with kept.open("r+b") as file:
        file.write(bytes(64))
    hub.calm()
    pull(store, hub, "hf:org/bert")
    assert_version_is(store, tmp_path, "org/bert", repository)


def test_a_bad_file_of_the_hub_is_refused_as_one(store, hub, repository):
    """Its SHA-256 is right, and what was received stays."""
    with (repository / "model.safetensors").open("r+b") as file:
        file.write(bytes(8))
    hub.add("org/bert", repository)
    for received in (True, False):
        before = sum(hub.sent.values())
        done = assert_refused(pull(store, hub, "hf:org/bert", check=False), "model.safetensors", "header")
        assert (sum(hub.sent.values()) > before) == received, done
    assert is_unchanged(store)


@pytest.mark.parametrize("daemon", [False, True], ids=["alone", "daemon"])
def test_a_wrong_byte_late_in_a_file_publishes_nothing(store, hub, repository, tmp_path, daemon):
    """The next pull receives this file again, and no other one."""
    write_model(tmp_path / "second", random_tensors(1, MIB, seed="second"))
    (tmp_path / "second/model.safetensors").rename(repository / "second.safetensors")
    hub.add("org/bert", repository)
    size = (repository / "model.safetensors").stat().st_size
    hub.trouble("damage", path="*/model.safetensors", host="storage", at=size - 5)
    with Daemon(store) if daemon else contextlib.nullcontext():
        assert_refused(pull(store, hub, "hf:org/bert", check=False), "hf:org/bert", "model.safetensors", "SHA-256")
        assert store.json("ls")["models"] == []
        hub.calm()
        report = pulled(store, hub, "hf:org/bert")
        assert report["received_bytes"] == size
    assert_version_is(store, tmp_path, "org/bert", repository)
    assert store.weft("fsck").returncode == 0


def test_a_repository_that_the_disk_cannot_hold_takes_no_space(small_disk, hub, tmp_path):
    area = tmp_path / "repository"
    area.mkdir()
    for name in ("a.bin", "b.bin"):
        (area / name).write_bytes(random_bytes(9 * MIB, seed=name))
    hub.add("org/bert", area)
    store = Store(small_disk / "store")
    before = os.statvfs(small_disk).f_bavail
    assert_refused(pull(store, hub, "hf:org/bert", check=False), "b.bin", "free bytes")
    assert (before - os.statvfs(small_disk).f_bavail) * os.statvfs(small_disk).f_frsize < MIB
    assert hub.sent["storage"] == 0


def test_what_the_hub_does_not_have(store, hub, repository):
    hub.add("org/bert", repository)
    assert_refused(pull(store, hub, "hf:org/none", check=False), "hf:org/none")
    assert_refused(pull(store, hub, "hf:org/bert@none", check=False), "hf:org/bert", "none")
    assert_refused(pull(store, hub, "hf:org/bert", check=False, HF_HUB_OFFLINE="1"), "HF_HUB_OFFLINE")
    for source in ("org/bert", "hf:", "hf:a/b/c", "hf:org/bert@", "hf:org/bert@a..b"):
        assert_refused(pull(store, hub, source, check=False), code=2)
    assert is_unchanged(store)


# Tokens.


def test_a_gated_repository_needs_a_token_which_stays_secret(store, hub, repository, tmp_path):
    hub.add("org/gated", repository, gated=True, readers={TOKEN})
    assert_refused(pull(store, hub, "hf:org/gated", check=False), "gated", "HF_TOKEN")
    home = tmp_path / "hf"
    home.mkdir()
    (home / "token").write_text(TOKEN + "\n")
    done = pull(store, hub, "hf:org/gated", HF_HOME=str(home))
    assert "every user who can read the store" in done.stderr
    again = pull(store, hub, "hf:org/gated", HF_HOME=str(home))
    assert "nothing received" in again.stdout and "every user who can read the store" in again.stderr
    assert store.json("info", "org/gated")["source"]["access"] == "gated"
    assert_version_is(store, tmp_path, "org/gated", repository)
    assert {one.token for one in hub.asked("hub")} == {None, TOKEN}
    assert {one.headers.get("authorization") for one in hub.asked("storage")} == {None}
    assert TOKEN not in done.stdout + done.stderr + again.stdout + again.stderr
    assert all(TOKEN.encode() not in path.read_bytes() for path in store.path.rglob("*") if path.is_file())


def test_a_refused_token_is_not_in_the_message(store, hub, repository):
    hub.add("org/private", repository, private=True, readers={"hf_other"})
    done = pull(store, hub, "hf:org/private", check=False, HF_TOKEN=TOKEN)
    assert_refused(done, "hf:org/private")
    assert TOKEN not in done.stdout + done.stderr


# URLs.


def test_urls(store, hub, repository, tmp_path):
    hub.add("org/bert", repository)
    paths = ["model.safetensors", "config.json"]
    plain = [f"{hub.endpoint}/org/bert/resolve/main/{path}" for path in paths]
    urls = [f"{url}?signature=secret" for url in plain]
    digests = [hashlib.sha256((repository / path).read_bytes()).hexdigest() for path in paths]
    words = [*urls, *(word for digest in digests for word in ("--sha256", digest))]
    assert_refused(pull(store, hub, *words, check=False), "--name", code=2)
    assert_refused(pull(store, hub, *urls, "--name", "m", check=False), "--sha256", code=2)
    assert_refused(pull(store, hub, urls[0], "--sha256", "12", "--name", "m", check=False), "64", code=2)
    for option in ("--include", "--exclude"):
        assert_refused(pull(store, hub, *words, "--name", "m", option, "*.json", check=False), "--include", "--exclude",
                       "URL", code=2)
    assert hub.asked() == []
    report = pulled(store, hub, *words, "--name", "m", HF_TOKEN=TOKEN)
    assert (report["made"], report["files"], report["commit"]) == (True, 2, "")
    source = store.json("info", "m")["source"]
    assert sorted(source) == ["time", "urls"] and source["urls"] == sorted(plain)
    assert {one.token for one in hub.asked()} == {None}
    store.weft("export", "m", tmp_path / "out")
    assert files_below(tmp_path / "out") == {path: (repository / path).read_bytes() for path in paths}
    assert pulled(store, hub, *words, "--name", "m")["received_bytes"] == 0
    assert_refused(pull(store, hub, urls[0], "--sha256", digests[1], "--name", "n", check=False), "model.safetensors",
                   digests[1])
    assert_refused(pull(store, hub, plain[0] + "x", "--sha256", digests[0], "--name", "n", check=False), "404")
    assert [model["model"] for model in store.json("ls")["models"]] == ["m"]


# Other users, and a daemon.


def test_through_a_daemon(store, hub, repository, tmp_path):
    bert = hub.add("org/bert", repository)
    with Daemon(store):
        pull(store, hub, "hf:org/bert")
        write_model(tmp_path / "second", random_tensors(1, MIB, seed="second"))
        (tmp_path / "second/model.safetensors").rename(repository / "second.safetensors")
        bert.commit(repository)
        report = pulled(store, hub, "hf:org/bert")
        assert report["received_bytes"] == (repository / "second.safetensors").stat().st_size
        assert_version_is(store, tmp_path, "org/bert", repository)
        assert pulled(store, hub, "hf:org/bert")["made"] is False
    assert store.weft("fsck").returncode == 0



@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_another_user_receives_into_a_cache_of_his_own(open_dir, hub, tmp_path):
    """The daemon publishes what he gives it."""
    programs = programs_for_everybody(open_dir)
    area = make_repository(tmp_path / "repository")
    hub.add("org/bert", area)
    shared = Store(open_dir / "store", group="nogroup")
    shared.path.chmod(0o755)
    cache = open_dir / "cache"
    cache.mkdir()
    os.chown(cache, NOBODY, NOBODY)
    with Daemon(shared, "--control-publish", str(NOBODY)):
        done = run([programs / "weft", "--store", shared.path, "pull", "hf:org/bert", "--json"], user=NOBODY, group=NOBODY,
                   extra_groups=[], env=settings(hub, XDG_CACHE_HOME=str(cache)))
        assert json.loads(done.stdout)["made"] is True
        assert_version_is(shared, tmp_path, "org/bert", area)
    assert not (shared.path / "pulls").exists()
    assert not any((cache / "weft/pulls").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_daemon_that_may_take_no_lease_copies_what_arrives(open_dir, hub, tmp_path):
    """Root in a container often lacks CAP_LEASE, which a lease on another user's file needs."""
    programs = programs_for_everybody(open_dir)
    area = make_repository(tmp_path / "repository")
    hub.add("org/bert", area)
    shared = Store(open_dir / "store")
    run(["chown", "-R", f"{NOBODY}:{NOBODY}", shared.path])
    drop = ["setpriv", "--bounding-set", "-lease", "--inh-caps", "-lease"]
    with Daemon(shared, "--control-publish", str(NOBODY), wrapper=drop):
        done = run([programs / "weft", "--store", shared.path, "pull", "hf:org/bert", "--json"], user=NOBODY,
                   group=NOBODY, extra_groups=[], env=settings(hub))
    assert json.loads(done.stdout)["made"] is True


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_receives_nothing_into_the_store_of_another_user(open_dir, hub, tmp_path):
    """The import reads by their paths, as root, what was received: the owner of the store must not have them."""
    programs = programs_for_everybody(open_dir)
    area = make_repository(tmp_path / "repository")
    hub.add("org/bert", area)
    home, cache = open_dir / "home", tmp_path / "cache"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    store = home / "store"
    run([programs / "weft", "--store", store, "init"], user=NOBODY, group=NOBODY, extra_groups=[])
    done = run([WEFT, "--store", store, "pull", "hf:org/bert", "--json"],
               env=settings(hub, XDG_CACHE_HOME=str(cache)))
    assert json.loads(done.stdout)["made"] is True
    assert not (store / "pulls").exists()
    assert not any((cache / "weft/pulls").iterdir())
