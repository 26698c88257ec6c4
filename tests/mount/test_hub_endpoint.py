"""weftd serves its models to clients of a model hub: what it answers, to whom, and that the hub's own client takes it."""
import filecmp
import hashlib
import json
import os
import socket
import time

import pytest

from daemonlib import Daemon
from endpointlib import ask, client, curl, free_port
from weftlib import PATIENCE, random_tensors, run, wait_until, write_model

ODD = "sub/a b#%?é.txt"  # a path that a URL has only with escapes
DOWNLOAD = "import json, sys; from huggingface_hub import snapshot_download;" \
           "print(json.dumps(snapshot_download(sys.argv[1], revision=sys.argv[2] or None, repo_type=sys.argv[3])))"


class Served:
    """A store with the endpoint, and two versions of org/m; the first has the tag prod."""

    def __init__(self, store, tmp_path):
        self.store, self.area = store, tmp_path
        self.sources = [write_model(tmp_path / f"source{n}", random_tensors(3, 400 << 10, seed=f"endpoint {n}"),
                                    files=[(ODD, f"odd {n}".encode()), ("empty", b"")]) for n in (1, 2)]
        for source in self.sources:
            store.publish(source, name="org/m")
        store.weft("tag", "org/m@1", "prod")
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def daemon(self, *options):
        return Daemon(self.store, "--hub-listen", f"127.0.0.1:{self.port}", *options)

    def ask(self, path, method="GET", body=None, **fields):
        return ask(f"{self.endpoint}/{path}", method, body, **fields)

    def commit(self, number):
        return self.store.json("info", f"org/m@{number}")["manifest"][:40]


@pytest.fixture
def served(store, tmp_path):
    made = Served(store, tmp_path)
    with made.daemon() as made.running:
        yield made


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def files_of(directory):
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def test_a_version_by_each_of_its_revisions(served):
    first, second = served.commit(1), served.commit(2)
    for revision, commit in (("main", second), ("2", second), ("prod", first), ("1", first), (first, first)):
        answer = served.ask(f"api/models/org/m/revision/{revision}").json()
        assert (answer["id"], answer["sha"]) == ("org/m", commit)
        assert [one["rfilename"] for one in answer["siblings"]] == files_of(served.sources[0])
        assert answer["private"] is False and answer["gated"] is False
    assert served.ask("api/models/org/m").json()["sha"] == second
    for revision in ("3", "01", "nope", "refs%2Fpr%2F1", "f" * 40, "a" * 3000, "%20"):
        assert served.ask(f"api/models/org/m/revision/{revision}").refusal == (404, "RevisionNotFound")
    refs = served.ask("api/models/org/m/refs").json()
    assert [(one["name"], one["targetCommit"]) for one in refs["branches"]] == [("main", second)]
    assert {one["name"]: one["targetCommit"] for one in refs["tags"]} == {"prod": first, "1": first, "2": second}


def test_a_commit_of_the_hub_is_a_revision_and_is_named_in_answers(served):
    commit = "c0ffee" + "0" * 34
    cached = served.area / "cache/models--org--pulled/snapshots" / commit
    write_model(cached, random_tensors(1, 4096, seed="pulled"))
    served.store.weft("import", cached)
    assert served.ask(f"api/models/org/pulled/revision/{commit}").json()["sha"] == commit
    head = served.ask(f"org/pulled/resolve/{commit}/model.safetensors", "HEAD")
    assert head.fields["X-Repo-Commit"] == commit
    own = served.store.json("info", "org/pulled")["manifest"][:40]
    assert served.ask("api/models/org/pulled").json()["sha"] == own


def test_the_listing_has_sizes_and_digests(served):
    source = served.sources[1]
    rows = {row["path"]: row for row in served.ask("api/models/org/m/tree/main?recursive=true").json()}
    assert sorted(rows) == sorted([*files_of(source), "sub"])
    for name in files_of(source):
        assert rows[name]["size"] == (source / name).stat().st_size
        assert rows[name]["lfs"]["oid"] == sha256(source / name) and rows[name]["type"] == "file"
    assert rows["sub"]["type"] == "directory"
    top = served.ask("api/models/org/m/tree/main").json()
    assert [row["path"] for row in top] == [path for path in rows if "/" not in path]
    assert [row["path"] for row in served.ask("api/models/org/m/tree/main/sub").json()] == [ODD]
    assert served.ask("api/models/org/m/tree/main/none").refusal == (404, "EntryNotFound")
    assert served.ask("api/models/org/m/tree/main/empty").refusal == (404, "EntryNotFound")


def test_a_long_listing_has_pages(served):
    source = served.area / "many"
    expected = [f"d{n % 7}/e{n % 3}/f{n}" for n in range(2500)] + [f"top{n}" for n in range(800)]
    for number, path in enumerate(expected):
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(str(number))
    served.store.publish(source, name="many")
    url, paths, pages = f"{served.endpoint}/api/models/many/tree/main?recursive=true", [], 0
    while url:
        answer = ask(url)
        paths += [row["path"] for row in answer.json() if row["type"] == "file"]
        link = answer.fields.get("Link")
        url, pages = link and link.split(">")[0].removeprefix("<"), pages + 1
        assert link is None or (link.endswith('; rel="next"') and url.startswith(served.endpoint) and "recursive=true" in url)
    assert pages == 4 and sorted(paths) == sorted(expected)
    for cursor in ("", "x", "1:", ":", "0.0:", "0.0:..", "0.0:none", "0:d0", f"{1 << 64}:", "%00", "0.0.0:d0%2F"):
        assert served.ask(f"api/models/many/tree/main?recursive=true&cursor={cursor}").status == 400
    names = served.ask("api/models/many").json()["siblings"]
    assert sorted(one["rfilename"] for one in names) == sorted(expected)


def test_named_paths(served):
    form = "paths=empty&paths=sub&paths=none&paths=sub%2Fa+b%23%25%3F%C3%A9.txt&expand=false"
    url = "api/models/org/m/paths-info/prod"
    answer = served.ask(url, "POST", form.encode(), Content_Type="application/x-www-form-urlencoded")
    assert [row["path"] for row in answer.json()] == ["empty", "sub", ODD]
    assert answer.json()[2]["lfs"]["oid"] == sha256(served.sources[0] / ODD)
    body = json.dumps({"paths": ["empty", "..", "", "sub/../empty", "/etc/passwd"], "expand": True}).encode()
    answer = served.ask(url, "POST", body, Content_Type="application/json")
    assert [row["path"] for row in answer.json()] == ["empty"]
    for body in (b"{", b"[]", b'{"paths": 5}', b'{"paths": [[]]}', b"\xff"):
        assert served.ask(url, "POST", body, Content_Type="application/json").status == 400
    assert served.ask(url, "POST", b"paths=%zz", Content_Type="application/x-www-form-urlencoded").status == 400
    large = served.area / "large"
    large.write_bytes(b"x" * (1 << 21))
    refused = curl("--write-out", "%{http_code}", "--output", os.devnull, "--header", "Expect: 100-continue", "--data-binary",
                   f"@{large}", f"{served.endpoint}/{url}")
    assert refused.stdout == "413"
    assert served.ask(url).status == 405 and served.ask("api/models/org/m", "POST", b"a").status == 405


def test_a_file_whole_and_in_ranges(served):
    source = served.sources[1] / "model.safetensors"
    whole, url = source.read_bytes(), "org/m/resolve/main/model.safetensors"
    head = served.ask(url, "HEAD")
    etag = f'"{sha256(source)}"'
    expected = {"ETag": etag, "X-Repo-Commit": served.commit(2), "X-Linked-Size": str(len(whole)),
                "Content-Length": str(len(whole)), "Accept-Ranges": "bytes"}
    assert {name: head.fields[name] for name in expected} == expected
    assert served.ask(url).body == whole
    part = served.ask(url, Range="bytes=1000-300000")
    assert (part.status, part.body) == (206, whole[1000:300001])
    assert part.fields["Content-Range"] == f"bytes 1000-300000/{len(whole)}"
    assert served.ask(url, Range="bytes=-7").body == whole[-7:]
    assert served.ask(url, Range=f"bytes={len(whole)}-").status == 416
    assert served.ask(url, Range="bytes=5-6", If_Range=etag).status == 206
    assert served.ask(url, Range="bytes=5-6", If_Range='"other"').body == whole
    assert served.ask("org/m/resolve/main/empty").body == b""
    target = served.area / "by-curl"
    curl("--output", target, "--continue-at", "-", f"{served.endpoint}/{url}")
    assert target.read_bytes() == whole
    for missing in ("none", "sub", "empty/x", "sub//x", "", "MODEL.safetensors", "x" * 4000):
        refused = served.ask(f"org/m/resolve/main/{missing}")
        assert refused.refusal == (404, "EntryNotFound") and refused.fields["X-Repo-Commit"] == served.commit(2)


def test_no_path_leads_out_of_a_version(served):
    for path in ("org/m/resolve/main/../../etc/passwd", "org/m/resolve/main/%2e%2e/%2e%2e/x", "org/m/resolve/main/..%2fx",
                 "org/m/resolve/main/a%00b", "org/m/resolve/%2e%2e/x", "api/models/..%2f..", "org/m/resolve/main/%",
                 "api/models/org/m/tree/main/%2e%2e", "../x", "org/m/resolve/main/./empty"):
        answer = curl("--path-as-is", "--write-out", "%{http_code}", "--output", os.devnull, f"{served.endpoint}/{path}")
        assert answer.stdout == "400", path
    assert served.ask("org/m/resolve/main/" + "a/" * 2000).status in (400, 414)
    assert served.ask("api/models/org/m?" + "a=b&" * 30000).status in (400, 414, 431)


def test_names_that_are_not_there(served):
    served.store.publish(served.sources[0], name="bert")
    served.store.publish(served.sources[0], name="other/refs")
    served.store.publish(served.sources[0], name="a/b/c")
    assert served.ask("api/models/bert").json()["id"] == "bert"
    assert served.ask("api/models/bert/refs").json()["branches"][0]["name"] == "main"
    assert served.ask("api/models/other/refs").json()["id"] == "other/refs"
    assert served.ask("api/models/other/refs/refs").json()["branches"][0]["name"] == "main"
    assert served.ask("bert/resolve/main/empty").status == 200
    for name in ("none", "org/none", "org/M", "%2e", "a--b/c"):
        assert served.ask(f"api/models/{name}").status in (400, 404)
    assert served.ask("api/models/none").refusal == served.ask("none/x/resolve/main/y").refusal == (404, "RepoNotFound")
    assert served.ask("api/datasets/org/m").refusal == (404, "RepoNotFound")
    assert served.ask("datasets/org/m/resolve/main/empty").refusal == (404, "RepoNotFound")
    for path in ("", "api", "api/models", "api/models/a/b/c", "api/whoami-v2", "api/models/org/m/discussions", "metrics"):
        assert served.ask(path).refusal == (404, None)


def test_removed_and_renamed(served):
    served.store.weft("rm", "org/m@2")
    assert served.ask("api/models/org/m").json()["sha"] == served.commit(1)
    assert served.ask("api/models/org/m/revision/2").refusal == (404, "RevisionNotFound")
    served.store.weft("mv", "org/m", "org/n")
    assert served.ask("org/m/resolve/main/empty").refusal == (404, "RepoNotFound")
    assert served.ask("org/n/resolve/prod/empty").status == 200


def test_the_hubs_client_downloads_what_was_published(served, tmp_path):
    for revision, source in (("", served.sources[1]), ("prod", served.sources[0]), (served.commit(1), served.sources[0])):
        directory = client(DOWNLOAD, served.endpoint, tmp_path / "home", "org/m", revision, "model")
        assert filecmp.cmpfiles(directory, source, files_of(source), shallow=False)[0] == files_of(source)
    script = "import json; from huggingface_hub import HfApi, hf_hub_download, HfFileSystem; a = HfApi();" \
             "print(json.dumps([a.list_repo_files('org/m'), a.file_exists('org/m', 'empty'), a.file_exists('org/m', 'x')," \
             "a.repo_exists('org/x'), a.revision_exists('org/m', 'x'), [one.path for one in a.get_paths_info('org/m', ['sub'])]," \
             "open(hf_hub_download('org/m', 'empty', revision='1')).read(), HfFileSystem().ls('org/m', detail=False)]))"
    expected = [files_of(source), True, False, False, False, ["sub"], "", [f"org/m/{name}" for name in sorted(os.listdir(source))]]
    assert client(script, served.endpoint, tmp_path / "home") == expected
    for call, error in (("'org/none'", "RepositoryNotFoundError"), ("'org/m', revision='none'", "RevisionNotFoundError")):
        done = client(f"from huggingface_hub import snapshot_download; snapshot_download({call})", served.endpoint,
                      tmp_path / "home", check=False)
        assert done.returncode != 0 and error in done.stderr


def test_a_data_set_with_small_files(served, tmp_path):
    source = tmp_path / "set"
    for number in range(300):
        path = source / f"part{number % 3}/{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text {number}")
    (source / "train.csv").write_text("a,b\n" + "1,2\n" * 50)
    served.store.weft("import", "--dataset", source, "--name", "org/set")
    rows = served.ask("api/datasets/org/set/tree/main?recursive=true").json()
    files = {row["path"]: row["lfs"]["oid"] for row in rows if row["type"] == "file"}
    assert files == {name: sha256(source / name) for name in files_of(source)}
    assert served.ask("datasets/org/set/resolve/main/part1/7.txt", Range="bytes=5-").body == b"7"
    assert served.ask("api/models/org/set").refusal == (404, "RepoNotFound")
    directory = client(DOWNLOAD, served.endpoint, tmp_path / "home", "org/set", "", "dataset")
    assert filecmp.cmpfiles(directory, source, files_of(source), shallow=False)[0] == files_of(source)


def test_a_token_opens_it(store, tmp_path):
    made = Served(store, tmp_path)
    token = tmp_path / "token"
    token.write_text("hf_secret word\n")
    token.chmod(0o600)
    assert "expected a token" in refused_to_start(made, "--hub-token-file", token)
    token.write_text("hf_secret\n")
    token.chmod(0o644)
    assert "others can read" in refused_to_start(made, "--hub-token-file", token)
    token.chmod(0o600)
    with made.daemon("--hub-token-file", token) as daemon:
        for sent in ({}, {"Authorization": "Bearer hf_secre"}, {"Authorization": "Bearer hf_secret2"},
                     {"Authorization": "Bearer "}, {"Authorization": "Basic hf_secret"}, {"Authorization": "hf_secret"}):
            answer = made.ask("api/models/org/m", **sent)
            assert answer.status == 401 and answer.fields["WWW-Authenticate"] == "Bearer"
        assert made.ask("org/m/resolve/main/empty", Authorization="bearer hf_secret").status == 200
        directory = client(DOWNLOAD, made.endpoint, tmp_path / "home", "org/m", "", "model", HF_TOKEN="hf_secret")
        assert filecmp.cmp(f"{directory}/model.safetensors", made.sources[1] / "model.safetensors", shallow=False)
        assert client(DOWNLOAD, made.endpoint, tmp_path / "other", "org/m", "", "model", check=False).returncode != 0
        assert "hf_secret" not in daemon.said()


def refused_to_start(made, *options):
    with Daemon(made.store, "--hub-listen", f"127.0.0.1:{made.port}", *options, ready=False) as daemon:
        assert daemon.wait() == 1
        return daemon.said()


@pytest.mark.parametrize("address", ["0.0.0.0:8123", "10.1.2.3:8123", "[::]:8123", "127.0.0.1", "127.0.0.1:0", "host:1:2",
                                     "127.0.0.1.example.com:8123"])
def test_only_the_loopback_without_a_token(store, address):
    with Daemon(store, "--hub-listen", address, ready=False) as daemon:
        assert daemon.wait() == 1
        assert "hub.listen: expected" in daemon.said()


def test_a_page_of_another_site_reads_nothing(served):
    """A name that leads to the loopback by now, as a browser on this machine would send it."""
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "x"):
        assert served.ask("api/models/org/m", Host=host).status == 403
    for host in ("localhost", f"localhost:{served.port}", "127.0.0.1", "[::1]:80"):
        assert served.ask("api/models/org/m", Host=host).status == 200


def test_a_token_alone_is_a_mistake(store, tmp_path):
    with Daemon(store, "--hub-token-file", tmp_path / "token", ready=False) as daemon:
        assert daemon.wait() == 1
        assert "hub.token_file: expected hub.listen with it" in daemon.said()


def test_clients_that_stop_keep_nothing(served):
    """Many at once, which leave in the middle of a file: the daemon closes what it has opened for them."""
    before = len(os.listdir(f"/proc/{served.running.pid}/fd"))
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", served.port)) as left:
            left.sendall(b"GET /org/m/resolve/main/model.safetensors HTTP/1.1\r\nHost: localhost\r\n\r\n")
            left.recv(1000)
    wait_until(lambda: len(os.listdir(f"/proc/{served.running.pid}/fd")) <= before + 2, seconds_max=30 * PATIENCE)
    assert served.ask("org/m/resolve/main/empty").status == 200
    begin = time.monotonic()
    assert served.running.stop() == 0 and time.monotonic() - begin < 20 * PATIENCE


def test_the_check_names_a_port_in_use(served, tmp_path):
    config = tmp_path / "weft.conf"
    other = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", other))
        taken.listen()
        config.write_text(f'store = "{tmp_path}/other"\n[hub]\nlisten = "127.0.0.1:{other}"\ntoken_file = "/nonexistent"\n')
        done = run([*served.running.words()[:1], "--config", config, "--check"], check=False)
    assert "hub.listen:" in done.stderr + done.stdout and "hub.token_file:" in done.stderr + done.stdout
