"""The endpoint of weftd with an upstream: what the store lacks is pulled from a hub, once, however many clients ask."""
import concurrent.futures
import filecmp
import hashlib
import http.client
import os
import pathlib
import signal
import threading
import time

import pytest

from daemonlib import Daemon
from endpointlib import ask, client, free_port
from hub_double import Hub
from weftlib import PATIENCE, Store, environment, random_tensors, wait_until, write_model

TOKEN = "hf_secretOfTheUpstream"
LARGE = 96 << 20  # bytes of a file that is sent while it is pulled
SNAPSHOT = "import json, sys; from huggingface_hub import snapshot_download;" \
           "print(json.dumps(snapshot_download(sys.argv[1], revision=sys.argv[2] or None)))"
ONE_FILE = "import json, sys; from huggingface_hub import hf_hub_download;" \
           "print(json.dumps(hf_hub_download(sys.argv[1], sys.argv[2])))"
FAILS = "import json, sys; from huggingface_hub import snapshot_download\n" \
        "try: print(json.dumps(snapshot_download(sys.argv[1], revision=sys.argv[2] or None)))\n" \
        "except Exception as error: print(json.dumps(type(error).__name__))"


class Node:
    """A node with an empty store whose endpoint has the double of a hub as its upstream."""

    def __init__(self, store, hub, area):
        self.store, self.hub, self.area = store, hub, area
        self.port, self.metrics = free_port(), free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.homes = 0

    def daemon(self, *options, upstream=None):
        return Daemon(self.store, "--hub-listen", f"127.0.0.1:{self.port}", "--metrics-listen", f"127.0.0.1:{self.metrics}",
                      "--hub-upstream", upstream or self.hub.endpoint, *options)

    def ask(self, path, method="GET", body=None, **fields):
        return ask(f"{self.endpoint}/{path}", method, body, **fields)

    def client(self, script, *words, **options):
        """As a process with an empty cache."""
        self.homes += 1
        return client(script, self.endpoint, self.area / f"home{self.homes}", *words, **options)

    def figure(self, name):
        lines = ask(f"http://127.0.0.1:{self.metrics}/metrics").body.decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    def downloads(self, path):
        """How often the bytes of a file were asked for, by ranges from its beginning on."""
        asked = [*self.hub.asked("storage", f"/blobs/*/{path}"), *self.hub.asked("hub", f"/api/resolve-cache/*/{path}")]
        return sum(one.method == "GET" and one.headers.get("range", "bytes=0-").startswith("bytes=0-") for one in asked)


@pytest.fixture
def hub():
    with Hub() as double:
        yield double


@pytest.fixture
def source(tmp_path):
    return write_model(tmp_path / "source", random_tensors(3, 400 << 10, seed="upstream"),
                       files=[("config.json", b"{}"), ("sub/a b.txt", b"odd"), ("empty", b"")])


@pytest.fixture
def repository(hub, source):
    return hub.add("org/m", source)


@pytest.fixture
def node(store, hub, tmp_path):
    made = Node(store, hub, tmp_path)
    with made.daemon() as made.running:
        yield made


def files_of(directory):
    return sorted(path.relative_to(directory).as_posix() for path in pathlib.Path(directory).rglob("*") if path.is_file())


def assert_same(directory, source):
    assert files_of(directory) == files_of(source)
    assert filecmp.cmpfiles(directory, source, files_of(source), shallow=False)[0] == files_of(source)


def children_of(pid):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(path.name))
    return found


def pull_of(node):
    """The process of the pull that runs."""
    wait_until(lambda: children_of(node.running.pid), seconds_max=30 * PATIENCE)
    return children_of(node.running.pid)[0]


def test_a_client_gets_what_only_the_upstream_has_and_each_file_is_downloaded_once(node, repository, source):
    assert_same(node.client(SNAPSHOT, "org/m", ""), source)
    commit = repository.branches["main"]
    assert node.store.json("info", "org/m@main")["version"] == 1
    for name in files_of(source):
        assert node.downloads(name) == (1 if (source / name).stat().st_size > 0 else 0), name
    asked = len(node.hub.asked())
    assert_same(node.client(SNAPSHOT, "org/m", ""), source)
    assert filecmp.cmp(node.client(ONE_FILE, "org/m", "config.json"), source / "config.json", shallow=False)
    assert_same(node.client(SNAPSHOT, "org/m", commit), source)
    assert len(node.hub.asked()) == asked  # the store has the revision
    assert node.ask("api/models/org/m").json()["sha"] == commit  # as the hub names it
    assert node.ask("org/m/resolve/main/config.json", "HEAD").fields["X-Repo-Commit"] == commit
    assert node.figure("weft_hub_pulls_total") == 1 and node.figure("weft_hub_pull_failures_total") == 0


def test_ten_clients_at_once_cause_one_download(node, repository, source):
    node.hub.pace = 2 << 20
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        directories = list(pool.map(lambda _: node.client(ONE_FILE, "org/m", "model.safetensors"), range(10)))
    for path in directories:
        assert filecmp.cmp(path, source / "model.safetensors", shallow=False)
    assert node.downloads("model.safetensors") == 1 and node.figure("weft_hub_pulls_total") == 1
    size = sum((source / name).stat().st_size for name in files_of(source))
    assert sum(node.hub.sent.values()) <= 1.05 * size


def test_while_a_pull_runs_the_listing_answers_and_bytes_have_to_wait(node, repository, source):
    node.hub.trouble("stall", path="*model.safetensors", bytes=1000, times=1, seconds=20)
    commit = repository.branches["main"]
    begin = time.monotonic()
    answer = node.ask("api/models/org/m").json()
    assert answer["sha"] == commit and [one["rfilename"] for one in answer["siblings"]] == files_of(source)
    rows = {row["path"]: row for row in node.ask("api/models/org/m/tree/main?recursive=true").json()}
    assert sorted(rows) == sorted([*files_of(source), "sub"])
    file = repository.commits[commit]["model.safetensors"]
    assert rows["model.safetensors"]["lfs"]["oid"] == file.sha256 and rows["config.json"]["oid"]
    assert [row["path"] for row in node.ask("api/models/org/m/tree/main/sub").json()] == ["sub/a b.txt"]
    named = node.ask("api/models/org/m/paths-info/main", "POST", b"paths=empty&paths=sub&paths=no").json()
    assert [row["path"] for row in named] == ["empty", "sub"]
    head = node.ask("org/m/resolve/main/model.safetensors", "HEAD")
    assert (head.fields["ETag"], head.fields["X-Repo-Commit"]) == (file.etag, commit)
    assert head.fields["Content-Length"] == head.fields["X-Linked-Size"] == str(file.size)
    assert node.ask("org/m/resolve/main/no.bin").refusal == (404, "EntryNotFound")
    assert node.ask(f"api/models/org/m/revision/{commit}").json()["sha"] == commit  # the same pull
    assert time.monotonic() - begin < 8
    begin = time.monotonic()
    refused = node.ask("org/m/resolve/main/model.safetensors")
    assert refused.status == 429 and int(refused.fields["Retry-After"]) >= 5 and 6 < time.monotonic() - begin < 10
    assert node.figure("weft_hub_pulls_running") == 1
    path = node.client(ONE_FILE, "org/m", "model.safetensors")  # repeats its request until the file is there
    assert filecmp.cmp(path, source / "model.safetensors", shallow=False)
    assert node.ask("org/m/resolve/main/config.json").body == b"{}"
    assert node.figure("weft_hub_pulls_total") == 1


@pytest.fixture
def large(hub, tmp_path):
    """A repository that takes longer than a request for bytes waits."""
    area = write_model(tmp_path / "large", random_tensors(16, LARGE // 16, seed="large"))
    hub.add("org/large", area)
    hub.pace = LARGE // 8 // 30  # for each of eight connections: 30 s
    return area / "model.safetensors"


def begin_get(node, path, **fields):
    """(the answer, whose body has not been read; the connection)."""
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=10 * PATIENCE)  # as clients of the hub wait
    connection.request("GET", path, headers=fields)
    return connection.getresponse(), connection


def test_a_large_file_is_sent_while_it_is_pulled(node, hub, large):
    whole = large.read_bytes()
    answer, _ = begin_get(node, "/org/large/resolve/main/model.safetensors")
    assert answer.status == 200 and int(answer.headers["Content-Length"]) == len(whole)
    assert answer.headers["ETag"] == f'"{hashlib.sha256(whole).hexdigest()}"'
    assert answer.read(1 << 20) == whole[:1 << 20]
    assert node.figure("weft_hub_pulls_running") == 1 and sum(hub.sent.values()) < len(whole)
    begin = len(whole) // 8
    end, _ = begin_get(node, "/org/large/resolve/main/model.safetensors", Range=f"bytes={begin}-")
    assert end.status == 206 and end.headers["Content-Range"] == f"bytes {begin}-{len(whole) - 1}/{len(whole)}"
    hub.pace = None
    assert answer.read() == whole[1 << 20:]
    assert end.read() == whole[begin:]
    assert node.figure("weft_hub_pulls_total") == 1


def test_a_client_of_the_hub_reads_a_large_file_while_it_is_pulled(node, hub, large):
    path = node.client(ONE_FILE, "org/large", "model.safetensors")
    assert filecmp.cmp(path, large, shallow=False)
    assert node.figure('weft_hub_requests_total{kind="file",status="4xx"}') == 0
    assert sum(hub.sent.values()) <= 1.05 * sum(path.stat().st_size for path in large.parent.iterdir())


def read_all(answer):
    """How many bytes of the body came; at most all but the last."""
    with pytest.raises((http.client.IncompleteRead, ConnectionError)) as failure:
        answer.read()
    return len(getattr(failure.value, "partial", b""))


def test_a_client_never_gets_a_whole_file_of_a_pull_that_fails(node, hub, large):
    answer, _ = begin_get(node, "/org/large/resolve/main/model.safetensors")
    assert answer.status == 200
    os.kill(pull_of(node), signal.SIGKILL)
    assert read_all(answer) < large.stat().st_size


def test_a_client_never_gets_a_whole_file_with_a_wrong_byte(node, hub, large):
    hub.trouble("damage", path="*model.safetensors", at=1 << 20)
    answer, _ = begin_get(node, "/org/large/resolve/main/model.safetensors")
    assert answer.status == 200
    hub.pace = None
    assert read_all(answer) < large.stat().st_size
    assert node.store.weft("ls", "org/large", "--names", check=False).stdout == ""


def pull_part(store, hub):
    """Pulls the files of org/m that have these names, as its main. The rest is left out."""
    store.weft("pull", "hf:org/m", "--include", "*.json", env=environment(HF_ENDPOINT=hub.endpoint, HF_HOME="/nonexistent/hf"))


@pytest.mark.parametrize("by_commit", [False, True])
def test_the_rest_is_pulled_if_the_store_has_a_part_of_the_commit(node, repository, source, by_commit):
    pull_part(node.store, node.hub)
    commit = repository.branches["main"]
    part = node.store.json("info", "org/m@main")
    assert part["source"]["commit"] == commit and part["source"]["left_out"] == len(files_of(source)) - 1
    assert_same(node.client(SNAPSHOT, "org/m", commit if by_commit else ""), source)
    assert node.ask("org/m/resolve/main/config.json", "HEAD").fields["X-Repo-Commit"] == commit
    wait_until(lambda: node.store.json("info", "org/m@main")["version"] == 2, seconds_max=60 * PATIENCE)  # the tag follows
    assert "left_out" not in node.store.json("info", "org/m@main")["source"]
    assert all(node.downloads(name) <= 1 for name in files_of(source))


def test_a_part_of_a_commit_is_served_by_its_tag_alone(store, hub, repository, tmp_path):
    """Without an upstream, and while the upstream is away."""
    node = Node(store, hub, tmp_path)
    pull_part(store, hub)
    commit = repository.branches["main"]
    for options in ([], ["--hub-upstream", f"http://127.0.0.1:{free_port()}"]):
        with Daemon(store, "--hub-listen", f"127.0.0.1:{node.port}", *options):
            head = node.ask("org/m/resolve/main/config.json", "HEAD")
            assert head.status == 200 and head.fields["X-Repo-Commit"] != commit
            assert node.ask("org/m/resolve/main/model.safetensors").refusal == (404, "EntryNotFound")
            assert node.ask(f"org/m/resolve/{commit}/config.json").status == (503 if options else 404)
            assert node.ask(f"org/m/resolve/{head.fields['X-Repo-Commit']}/config.json").status == 200


@pytest.mark.parametrize("revision", ["v1", "refs/pr/1"])
def test_other_revisions(node, repository, source, tmp_path, revision):
    other = write_model(tmp_path / "other", random_tensors(1, 4096, seed="other"), files=[("config.json", b"{1}")])
    repository.tags[revision] = repository.commit(other, branch="dev")
    assert_same(node.client(SNAPSHOT, "org/m", revision), other)
    assert node.client(FAILS, "org/m", "v2") == "RevisionNotFoundError"
    assert_same(node.client(SNAPSHOT, "org/m", ""), source)  # main is not the version that came first


def test_a_branch_that_moves_stays_what_the_store_has(node, repository, source, tmp_path):
    assert_same(node.client(SNAPSHOT, "org/m", ""), source)
    other = write_model(tmp_path / "other", random_tensors(1, 4096, seed="other"), files=[("config.json", b"{1}")])
    moved = repository.commit(other)
    assert_same(node.client(SNAPSHOT, "org/m", ""), source)
    assert_same(node.client(SNAPSHOT, "org/m", moved), other)


def test_a_branch_that_moves_during_a_pull(node, repository, source, tmp_path):
    """A client reads the files of the commit that it was told, whatever the branch is by then."""
    listed = repository.branches["main"]
    other = write_model(tmp_path / "other", random_tensors(1, 4096, seed="other"), files=[("config.json", b"{1}")])
    node.hub.on_request = lambda request: repository.commit(other) if "/tree/" in request.path else None
    assert node.ask("api/models/org/m").json()["sha"] == listed
    node.hub.on_request = None
    wait_until(lambda: node.figure("weft_hub_pulls_running") == 0, seconds_max=60 * PATIENCE)
    assert_same(node.client(SNAPSHOT, "org/m", listed), source)
    assert_same(node.client(SNAPSHOT, "org/m", ""), source)


def test_a_data_set(node, hub, tmp_path):
    source = tmp_path / "set"
    source.mkdir()
    (source / "train.csv").write_text("a,b\n1,2\n")
    hub.add("org/set", source, kind="dataset")
    assert node.ask("datasets/org/set/resolve/main/train.csv").body == b"a,b\n1,2\n"
    assert node.ask("org/set/resolve/main/train.csv").refusal == (404, "RepoNotFound")


def test_a_missing_repository_is_asked_for_once(node):
    for _ in range(2):
        assert node.client(FAILS, "org/none", "") == "RepositoryNotFoundError"
    assert node.ask("org/none/resolve/main/x").refusal == (404, "RepoNotFound")
    assert len(node.hub.asked()) == 1 and node.figure("weft_hub_pulls_total") == 0


def test_hostile_names_reach_neither_the_upstream_nor_a_program(node):
    for path in ("api/models/..%2f..%2fetc", "api/models/-x/y", "api/models/a%20b/c", "api/models/org/m%00", "a/$(id)/resolve/main/x",
                 "org/m/resolve/a..b/x", "org/m/resolve/%0a/x", "org/m/resolve/a%3a%2f%2fb/x", "org/" + "m" * 3000 + "/resolve/main/x"):
        assert node.ask(path).status in (400, 404, 414), path
    assert node.ask("api/models/org/m", "POST", b"a=b").status in (404, 405)
    assert node.hub.asked() == [] and children_of(node.running.pid) == []


def test_an_upstream_that_refuses_for_a_while(node, repository, source):
    node.hub.trouble("status", path="/api/models/org/m/revision/*", status=429, fields={"Retry-After": "1"})
    begin = time.monotonic()
    answer = node.ask("api/models/org/m")
    assert answer.status == 503 and int(answer.fields["Retry-After"]) >= 1 and time.monotonic() - begin < 10
    wait_until(lambda: node.figure("weft_hub_pulls_running") == 0, seconds_max=30 * PATIENCE)
    asked = len(node.hub.asked())
    for _ in range(5):
        assert node.ask("org/m/resolve/main/config.json", "HEAD").status == 503
    assert len(node.hub.asked()) == asked and node.figure("weft_hub_pulls_total") == 0


def test_an_upstream_that_does_not_answer(node, repository, source):
    node.store.publish(source, name="own/m")
    goes_on = threading.Event()
    node.hub.on_request = lambda request: goes_on.wait(60)
    begin = time.monotonic()
    answer = node.ask("org/m/resolve/main/config.json", "HEAD")
    assert answer.status == 503 and int(answer.fields["Retry-After"]) >= 1 and 6 < time.monotonic() - begin < 10
    begin = time.monotonic()
    assert node.ask("own/m/resolve/main/config.json").body == b"{}" and time.monotonic() - begin < 5
    goes_on.set()
    wait_until(lambda: node.ask("org/m/resolve/main/config.json").status == 200, seconds_max=60 * PATIENCE)


def test_a_pull_that_fails(node, repository):
    """A client gets an error that says when to come again, and never a wrong byte."""
    node.hub.trouble("damage", path="*model.safetensors")
    assert node.ask("api/models/org/m").status == 200
    wait_until(lambda: node.figure("weft_hub_pull_failures_total") == 1, seconds_max=60 * PATIENCE)
    refused = node.ask("org/m/resolve/main/model.safetensors")
    assert refused.status == 503 and int(refused.fields["Retry-After"]) <= 30
    assert "model.safetensors" in node.running.said()


def test_an_upstream_that_is_gone(store, hub, source, tmp_path):
    node = Node(store, hub, tmp_path)
    store.publish(source, name="own/m")
    with node.daemon(upstream=f"http://127.0.0.1:{free_port()}"):
        assert_same(node.client(SNAPSHOT, "own/m", ""), source)
        assert node.ask("api/models/org/m").status == 503
        assert node.ask("api/models/own/m/revision/none").status in (404, 503)


def test_a_gated_repository(node, hub, source):
    hub.add("org/gated", source, gated=True)
    assert node.client(FAILS, "org/gated", "") == "GatedRepoError"
    assert node.figure("weft_hub_pulls_total") == 0


@pytest.mark.parametrize("access, marks", [("private", (True, False)), ("gated", (False, "auto"))])
def test_a_closed_repository_is_marked_as_the_upstream_marks_it(store, hub, source, tmp_path, access, marks):
    """During the pull and after it. So a store that pulls from this node has the mark too."""
    hub.add("org/closed", source, readers=[TOKEN], **{access: True})
    token = tmp_path / "upstream-token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    node = Node(store, hub, tmp_path)
    hub.trouble("stall", path="*model.safetensors", bytes=1000, times=1, seconds=5)

    def shown():
        answer = node.ask("api/models/org/closed").json()
        return answer["private"], answer["gated"]

    with node.daemon("--hub-upstream-token-file", token):
        assert shown() == marks and node.figure("weft_hub_pulls_running") == 1
        wait_until(lambda: node.figure("weft_hub_pulls_running") == 0, seconds_max=60 * PATIENCE)
        assert shown() == marks
        other = Store(tmp_path / "other")
        other.weft("pull", "hf:org/closed", env=environment(HF_ENDPOINT=node.endpoint, HF_HOME="/nonexistent/hf"))
        assert other.json("info", "org/closed")["source"]["access"] == access


def test_the_token_of_the_upstream_stays_in_its_file(store, hub, source, tmp_path):
    hub.add("org/private", source, private=True, readers=[TOKEN])
    token = tmp_path / "upstream-token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    node = Node(store, hub, tmp_path)
    hub.trouble("stall", path="*model.safetensors", bytes=1000, times=1, seconds=5)
    with node.daemon("--hub-upstream-token-file", token, "--log-level", "debug") as node.running:
        assert node.ask("api/models/org/private").status == 200
        program = pull_of(node)
        for name in ("cmdline", "environ"):
            assert TOKEN.encode() not in pathlib.Path(f"/proc/{program}/{name}").read_bytes()
        assert TOKEN.encode() not in pathlib.Path(f"/proc/{node.running.pid}/environ").read_bytes()
        path = node.client(ONE_FILE, "org/private", "model.safetensors")
        assert filecmp.cmp(path, source / "model.safetensors", shallow=False)
        assert node.ask("org/none/resolve/main/x").status == 404
    assert TOKEN not in node.running.said()
    for path in store.path.rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path
    assert all(one.token is None for one in hub.asked("storage")) and hub.asked("hub")[0].token == TOKEN


def test_a_token_of_the_environment_goes_to_no_upstream(store, hub, repository, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    node = Node(store, hub, tmp_path)
    with node.daemon() as node.running:
        assert node.ask("org/m/resolve/main/config.json").body == b"{}"
    assert all(one.token is None for one in hub.asked())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_pull_ends_with_the_daemon_and_goes_on_later(store, hub, repository, source, tmp_path, number):
    node = Node(store, hub, tmp_path)
    hub.trouble("stall", path="*model.safetensors", bytes=500_000, times=1, seconds=60)
    with node.daemon() as node.running:
        assert node.ask("api/models/org/m").status == 200
        program = pull_of(node)
        wait_until(lambda: hub.sent["storage"] >= 500_000, seconds_max=30 * PATIENCE)
        begin = time.monotonic()
        node.running.signal(number)
        node.running.wait()
        wait_until(lambda: not os.path.exists(f"/proc/{program}"), seconds_max=15 * PATIENCE)
        assert time.monotonic() - begin < 20 * PATIENCE  # long before drain_seconds are over
    hub.calm()
    with node.daemon() as node.running:
        assert_same(node.client(SNAPSHOT, "org/m", ""), source)


def test_conditional_requests_and_counts(node, repository, source):
    assert node.ask("org/m/resolve/main/config.json").status == 200
    etag = node.ask("org/m/resolve/main/config.json", "HEAD").fields["ETag"]
    for sent in (etag, f'"other", W/{etag}', "*"):
        answer = node.ask("org/m/resolve/main/config.json", If_None_Match=sent)
        assert (answer.status, answer.body, answer.fields["ETag"]) == (304, b"", etag)
    assert node.ask("org/m/resolve/main/config.json", If_None_Match='"other"').body == b"{}"
    for path in ("api/models/org/m", "api/models/org/m/tree/main?recursive=true", "api/models/org/m/refs"):
        whole = node.ask(path)
        assert node.ask(path, If_None_Match=whole.fields["ETag"]).status == 304
        assert node.ask(path, If_None_Match='"other"').json() == whole.json()
    assert node.figure('weft_hub_requests_total{kind="file",status="3xx"}') == 3
    assert node.figure('weft_hub_requests_total{kind="info",status="2xx"}') == 2
    before = node.figure("weft_hub_sent_bytes_total")
    size = len(node.ask("org/m/resolve/main/model.safetensors").body)
    wait_until(lambda: node.figure("weft_hub_sent_bytes_total") - before >= size, seconds_max=10 * PATIENCE)


def test_a_token_file_of_two_lines(store, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN + "\nhf_old\n")
    token.chmod(0o600)
    daemon = Daemon(store, "--hub-listen", f"127.0.0.1:{free_port()}", "--hub-upstream", "http://127.0.0.1:9",
                    "--hub-upstream-token-file", token, ready=False)
    with daemon:
        assert daemon.wait() != 0
    assert "expected one line" in daemon.said() and TOKEN not in daemon.said()


def test_the_own_model_of_a_name_stays_the_newest(node, hub, source, tmp_path):
    """Who registers the name at the hub must not get a version into the model of this cluster."""
    node.store.publish(source, name="team/m")
    other = write_model(tmp_path / "other", random_tensors(1, 4096, seed="other"), files=[("config.json", b"{1}")])
    hub.add("team/m", other).commit(other, branch="v2")
    assert node.client(FAILS, "team/m", "v2") == "RevisionNotFoundError"
    assert_same(node.client(SNAPSHOT, "team/m", ""), source)
    assert node.store.json("info", "team/m")["version"] == 1 and hub.asked() == []


@pytest.mark.parametrize("options, problem", [
    (["--hub-upstream", "huggingface.co"], "hub.upstream: expected a URL"),
    (["--hub-upstream", "http://"], "hub.upstream"),
    (["--hub-upstream-token-file", "/etc/passwd"], "hub.upstream_token_file: expected hub.upstream with it")])
def test_settings_that_cannot_be(store, options, problem):
    daemon = Daemon(store, "--hub-listen", f"127.0.0.1:{free_port()}", *options, ready=False)
    with daemon:
        assert daemon.wait() != 0
    assert problem in daemon.said()
