"""A double of a model hub: it speaks as the real one does, from directories, and makes the trouble that a test asks for.

    with Hub() as hub:
        bert = hub.add("org/bert", directory)           # a model whose branch main has these files
        bert.commit(other_directory)                    # main moves
        hub.trouble("cut", path="*.bin", times=2, bytes=1000)
        ... HF_ENDPOINT=hub.endpoint ...
        assert hub.asked("storage")                     # the requests to the second server, with their headers

Files in git come from the hub itself, after a redirect on it. Files in LFS come from the storage: a second server, which
refuses a request with an Authorization and accepts only the signed URLs that the hub gave out.
"""
import fnmatch
import gzip
import hashlib
import http.server
import json
import os
import pathlib
import secrets
import socketserver
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote, unquote, urlsplit

LFS_SUFFIXES = (".bin", ".gguf", ".h5", ".npy", ".npz", ".onnx", ".parquet", ".pt", ".pth", ".safetensors", ".tar")
LFS_BYTES = 10_000_000  # files from this size on are in LFS, whatever their name is
PIECE = 1 << 20         # bytes that are sent at once, and counted
PACED_PIECE = 1 << 16

# The kinds of trouble, and their arguments. `path` is a pattern of the path of the URL, or of the file for `listed`.
#   status    status, code=None, fields={}   an error, such as 429 with {"Retry-After": "1"}
#   stall     bytes, seconds=3600            the body stops after so many bytes, and then the connection ends
#   cut       bytes                          the connection ends after so many bytes of the body
#   short     by=1                           a body without its last bytes, whose length says so
#   long      by=1                           a body with more bytes than asked for
#   whole                                    status 200 and the whole file for a range
#   encoded                                  a body in gzip
#   damage    at=0                           one wrong byte at this offset of the file
#   listed    row                            members that replace those of a file's row in listings
#   rows      rows                           more rows in each page of a listing
#   link      to                             the link to the next page
#   body      body=None, size=None           another body: these bytes, or so many spaces
#   redirect  to                             where a file is
KINDS = ("status", "stall", "cut", "short", "long", "whole", "encoded", "damage", "listed", "rows", "link", "body", "redirect")


@dataclass(frozen=True)
class File:
    path: str
    source: pathlib.Path
    size: int
    sha256: str
    git_sha1: str      # of the blob in git, which is the pointer if the file is in LFS
    pointer_size: int  # 0: the file is in git

    @property
    def in_lfs(self):
        return self.pointer_size > 0

    @property
    def etag(self):
        return f'"{self.sha256 if self.in_lfs else self.git_sha1}"'

    def row(self):
        row = {"type": "file", "oid": self.git_sha1, "size": self.size, "path": self.path}
        if self.in_lfs:
            row["lfs"] = {"oid": self.sha256, "size": self.size, "pointerSize": self.pointer_size}
        return row


def git_blob(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def file_of(path, source, in_lfs):
    size = source.stat().st_size
    sha256, sha1 = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size)
    with source.open("rb") as content:
        while piece := content.read(PIECE):
            sha256.update(piece)
            sha1.update(piece)
    if not in_lfs:
        return File(path, source, size, sha256.hexdigest(), sha1.hexdigest(), 0)
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256.hexdigest()}\nsize {size}\n".encode()
    return File(path, source, size, sha256.hexdigest(), git_blob(pointer), len(pointer))


def is_in_lfs(path, size):
    return path.endswith(LFS_SUFFIXES) or size >= LFS_BYTES


@dataclass
class Repository:
    name: str
    kind: str                                    # "model" or "dataset"
    private: bool = False                        # only tokens of `readers` see it
    gated: bool = False                          # only tokens of `readers` get its files
    readers: set = field(default_factory=set)
    commits: dict = field(default_factory=dict)  # commit -> {path: File}
    branches: dict = field(default_factory=dict)
    tags: dict = field(default_factory=dict)

    def commit(self, directory, branch="main", in_lfs=is_in_lfs):
        """Makes the files below the directory the newest commit of the branch, and returns its name. The files are read
        when they are asked for: they must stay as they are."""
        directory, files = pathlib.Path(directory), {}
        for source in sorted(path for path in directory.rglob("*") if path.is_file()):
            path = source.relative_to(directory).as_posix()
            files[path] = file_of(path, source, in_lfs(path, source.stat().st_size))
        state = [len(self.commits), self.name, sorted((file.path, file.git_sha1) for file in files.values())]
        commit = hashlib.sha1(json.dumps(state).encode()).hexdigest()
        self.commits[commit] = files
        self.branches[branch] = commit
        return commit

    def commit_of(self, revision):
        for names in (self.branches, self.tags):
            if revision in names:
                return names[revision]
        return revision if revision in self.commits else None

    def rows(self, commit, below="", recursive=True):
        """The rows of a listing: files and the directories that they are in, by path."""
        prefix = below + "/" if below else ""
        rows = {}
        for file in self.commits[commit].values():
            if not file.path.startswith(prefix):
                continue
            steps = file.path[len(prefix):].split("/")
            for depth in range(1, len(steps)):
                path = prefix + "/".join(steps[:depth])
                oid = hashlib.sha1(path.encode()).hexdigest()
                if recursive or depth == 1:
                    rows[path] = {"type": "directory", "oid": oid, "size": 0, "path": path}
            if recursive or len(steps) == 1:
                rows[file.path] = file.row()
        return [rows[path] for path in sorted(rows)]


@dataclass
class Trouble:
    kind: str
    path: str
    times: int | None  # None: always
    host: str          # "hub", "storage" or "*"
    arguments: dict

    def meets(self, kind, host, path, concerns):
        return (kind == self.kind and self.times != 0 and self.host in ("*", host) and
                fnmatch.fnmatchcase(path, self.path) and concerns(self.arguments))


@dataclass(frozen=True)
class Request:
    host: str
    method: str
    path: str  # unquoted, without the query
    query: str
    headers: dict  # names in lower case
    token: str | None


class Hub:
    """As a context. All methods may be called while it serves."""

    def __init__(self, address="127.0.0.1", storage_address="127.0.0.2", page_rows=1000, tls=None):
        """`tls`: an ssl.SSLContext with a certificate for both addresses."""
        self.page_rows = page_rows
        self.tokens = set()     # the known ones
        self.pace = None        # bytes a second of each body; None: no limit
        self.on_request = None  # called with each Request before its answer, in a thread of the server
        self.repositories = {}  # (kind, name) -> Repository
        self.sent = {"hub": 0, "storage": 0}  # bytes of files
        self.lock = threading.Lock()
        self.requests, self.troubles, self.signatures = [], [], set()
        self.closing = threading.Event()
        self.servers = {host: Server((at, 0), host, self, tls) for host, at in (("hub", address), ("storage", storage_address))}
        self.endpoint, self.storage = (self.servers[host].url() for host in ("hub", "storage"))

    def __enter__(self):
        self.threads = [threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
                        for server in self.servers.values()]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exception):
        self.closing.set()
        for server, thread in zip(self.servers.values(), self.threads):
            server.shutdown()
            thread.join()
            server.server_close()

    def add(self, name, directory=None, kind="model", private=False, gated=False, readers=()):
        repository = Repository(name, kind, private, gated, set(readers))
        self.tokens |= repository.readers
        if directory is not None:
            repository.commit(directory)
        self.repositories[kind, name] = repository
        return repository

    def trouble(self, kind, path="*", times=None, host="*", **arguments):
        """Makes trouble `times` times, or until calm()."""
        if kind not in KINDS:
            raise ValueError(f"trouble: expected one of {', '.join(KINDS)}, got {kind}")
        with self.lock:
            self.troubles.append(Trouble(kind, path, times, host, arguments))

    def calm(self):
        with self.lock:
            self.troubles.clear()

    def meets(self, kind, host, path, concerns):
        """The arguments of the trouble of this kind that is due; None if there is none. `concerns` is told the arguments, and
        may say that this trouble is not for this answer."""
        with self.lock:
            trouble = next((one for one in self.troubles if one.meets(kind, host, path, concerns)), None)
            if trouble is None:
                return None
            if trouble.times is not None:
                trouble.times -= 1
            return trouble.arguments

    def asked(self, host="*", path="*"):
        """The requests so far."""
        with self.lock:
            return [one for one in self.requests if host in ("*", one.host) and fnmatch.fnmatchcase(one.path, path)]

    def record(self, request):
        with self.lock:
            self.requests.append(request)

    def count(self, host, size):
        with self.lock:
            self.sent[host] += size

    def signed(self, file):
        """A URL of the storage for this file."""
        signature = secrets.token_hex(16)
        with self.lock:
            self.signatures.add((file.sha256, signature))
        return f"{self.storage}/blobs/{file.sha256}/{quote(file.path)}?signature={signature}"

    def is_signed(self, sha256, signature):
        with self.lock:
            return (sha256, signature) in self.signatures

    def find(self, kind, steps):
        """The repository that the first steps of a path name, and the other steps."""
        for length in (2, 1):
            repository = self.repositories.get((kind, "/".join(steps[:length])))
            if repository is not None and len(steps) >= length:
                return repository, steps[length:]
        return None, steps

    def blob(self, sha256, path):
        files = (commit.get(path) for repository in list(self.repositories.values())
                 for commit in list(repository.commits.values()))
        return next((file for file in files if file is not None and file.sha256 == sha256), None)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address, host, hub, tls):
        super().__init__(address, Handler)
        self.host, self.hub, self.is_secure = host, hub, tls is not None
        if tls is not None:  # the thread of each connection shakes hands
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)  # HTTPServer's asks for the name of the address
        self.server_name, self.server_port = self.server_address[:2]

    def url(self):
        return f"{'https' if self.is_secure else 'http'}://{self.server_address[0]}:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """A client may go away at any time."""


class Refused(Exception):
    def __init__(self, status, code, message, fields=None):
        super().__init__(message)
        self.status, self.code, self.message, self.fields = status, code, message, fields or {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_GET(self):
        self.hub, self.host = self.server.hub, self.server.host
        url = urlsplit(self.path)
        self.url_path, self.query = url.path, parse_qs(url.query)
        self.steps = [unquote(step) for step in url.path.split("/")[1:]]
        self.text = "/" + "/".join(self.steps)
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        authorization = self.headers.get("Authorization")
        self.token = authorization.removeprefix("Bearer ") if authorization else None
        request = Request(self.host, self.command, self.text, url.query,
                          {name.lower(): value for name, value in self.headers.items()}, self.token)
        self.hub.record(request)
        if self.hub.on_request:
            self.hub.on_request(request)
        try:
            self.make_trouble()
            self.answer_storage() if self.host == "storage" else self.answer_hub()
        except Refused as refusal:
            fields = dict(refusal.fields)
            if refusal.code:
                fields |= {"X-Error-Code": refusal.code, "X-Error-Message": refusal.message}
            self.send_bytes(refusal.status, json.dumps({"error": refusal.message}).encode(), fields)
        except OSError:
            self.close_connection = True

    do_HEAD = do_POST = do_GET

    def due(self, kind, path=None, concerns=lambda arguments: True):
        return self.hub.meets(kind, self.host, self.text if path is None else path, concerns)

    def make_trouble(self):
        if (trouble := self.due("status")) is not None:
            raise Refused(trouble["status"], trouble.get("code"), "trouble", trouble.get("fields"))

    # The hub.

    def answer_hub(self):
        if self.token is not None and self.token not in self.hub.tokens:
            raise Refused(401, None, "Invalid credentials in Authorization header",
                          {"X-Error-Message": "Invalid credentials in Authorization header"})
        steps = self.steps
        if steps[:2] == ["api", "resolve-cache"]:
            repository, (commit, *path) = self.open_repository(steps[2], steps[3:])
            return self.send_resolved(repository, commit, "/".join(path))
        if steps[:1] == ["api"]:
            return self.answer_api(*self.open_repository(*self.split_kind(steps[1:])))
        kind = "datasets" if steps[0] == "datasets" else "models"
        repository, rest = self.open_repository(kind, steps[1:] if kind == "datasets" else steps)
        if len(rest) < 3 or rest[0] != "resolve":
            raise Refused(404, None, "no such page")
        self.resolve(repository, rest[1], "/".join(rest[2:]))

    def split_kind(self, steps):
        if len(steps) < 2:
            raise Refused(404, None, "no such page")
        return steps[0], steps[1:]

    def open_repository(self, kinds, steps):
        repository, rest = self.hub.find(kinds.removesuffix("s"), steps)
        if repository is None or (repository.private and self.token not in repository.readers):
            raise Refused(401 if self.token is None else 404, "RepoNotFound", "Repository not found")
        return repository, rest

    def open_revision(self, repository, revision):
        commit = repository.commit_of(revision)
        if commit is None:
            raise Refused(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return commit

    def answer_api(self, repository, rest):
        if not rest or (rest[0] == "revision" and len(rest) == 2):
            return self.send_info(repository, self.open_revision(repository, rest[1] if rest else "main"))
        if rest[0] == "tree" and len(rest) >= 2:
            return self.send_tree(repository, self.open_revision(repository, rest[1]), "/".join(rest[2:]))
        if rest[0] == "paths-info" and len(rest) == 2:
            return self.send_paths(repository, self.open_revision(repository, rest[1]))
        if rest == ["refs"]:
            named = {"branches": (repository.branches, "refs/heads/"), "tags": (repository.tags, "refs/tags/")}
            refs = {word: [{"name": name, "ref": prefix + name, "targetCommit": commit} for name, commit in names.items()]
                    for word, (names, prefix) in named.items()}
            return self.send_json(refs | {"converts": []})
        raise Refused(404, None, "no such page")

    def send_info(self, repository, commit):
        self.send_json({"id": repository.name, "sha": commit, "private": repository.private,
                        "gated": "auto" if repository.gated else False, "disabled": False, "tags": [], "downloads": 0, "likes": 0,
                        "siblings": [{"rfilename": path} for path in sorted(repository.commits[commit])]})

    def listed(self, row):
        trouble = self.due("listed", row["path"])
        return row if trouble is None else row | trouble["row"]

    def send_tree(self, repository, commit, below):
        rows = repository.rows(commit, below, self.query.get("recursive", ["false"])[0].lower() in ("true", "1"))
        begin = int(self.query.get("cursor", ["0"])[0])
        end = begin + self.hub.page_rows
        page = [self.listed(row) for row in rows[begin:end]]
        if (trouble := self.due("rows")) is not None:
            page += trouble["rows"]
        query = "&".join(f"{name}={quote(values[0], safe='')}" for name, values in self.query.items() if name != "cursor")
        following = f"{self.hub.endpoint}{self.url_path}?{query}&cursor={end}" if end < len(rows) else None
        if (trouble := self.due("link")) is not None:
            following = trouble["to"]
        self.send_json(page, {"Link": f'<{following}>; rel="next"'} if following else {})

    def send_paths(self, repository, commit):
        text = self.body.decode()
        is_json = self.headers.get("Content-Type", "").startswith("application/json")
        paths = json.loads(text)["paths"] if is_json else parse_qs(text).get("paths", [])
        rows = {row["path"]: row for row in repository.rows(commit)}
        self.send_json([self.listed(rows[path]) for path in paths if path in rows])

    def open_file(self, repository, revision, path):
        """The commit and the file, for a client that may have its bytes."""
        if repository.gated and self.token not in repository.readers:
            raise Refused(401 if self.token is None else 403, "GatedRepo", f"Access to {repository.name} is restricted")
        commit = self.open_revision(repository, revision)
        file = repository.commits[commit].get(path)
        if file is None:
            raise Refused(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": commit})
        return commit, file

    def resolve(self, repository, revision, path):
        commit, file = self.open_file(repository, revision, path)
        fields = {"X-Repo-Commit": commit, "ETag": file.etag, "Accept-Ranges": "bytes"}
        if file.in_lfs:
            fields |= {"X-Linked-Size": file.size, "X-Linked-Etag": file.etag, "Location": self.hub.signed(file)}
        else:
            fields["Location"] = f"/api/resolve-cache/{repository.kind}s/{repository.name}/{commit}/{quote(path)}"
        if (trouble := self.due("redirect")) is not None:
            fields["Location"] = trouble["to"]
        self.send_bytes(302 if file.in_lfs else 307, b"", fields)

    def send_resolved(self, repository, commit, path):
        commit, file = self.open_file(repository, commit, path)
        self.send_file(file, {"X-Repo-Commit": commit, "ETag": file.etag})

    # The storage.

    def answer_storage(self):
        if self.headers.get("Authorization") is not None:
            raise Refused(400, None, "Only one auth mechanism allowed")
        signature = self.query.get("signature", [""])[0]
        if self.steps[0] != "blobs" or len(self.steps) < 3 or not self.hub.is_signed(self.steps[1], signature):
            raise Refused(403, None, "Access denied")
        file = self.hub.blob(self.steps[1], "/".join(self.steps[2:]))
        if file is None:
            raise Refused(404, None, "no such blob")
        self.send_file(file, {"ETag": f'"{file.sha256[:32]}"'})

    # Both.

    def send_head(self, status, fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, str(value))
        self.end_headers()

    def send_bytes(self, status, body, fields):
        self.send_head(status, fields | {"Content-Length": len(body)})
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_json(self, value, fields=None):
        fields = {"Content-Type": "application/json; charset=utf-8"} | (fields or {})
        body = json.dumps(value).encode()
        if self.due("encoded") is not None:
            return self.send_bytes(200, gzip.compress(body), fields | {"Content-Encoding": "gzip"})
        trouble = self.due("body")
        if trouble is None:
            return self.send_bytes(200, body, fields)
        if trouble.get("size") is None:
            return self.send_bytes(200, trouble["body"], fields)
        self.send_head(200, fields | {"Content-Length": trouble["size"]})
        for begin in range(0, trouble["size"], PIECE):
            self.wfile.write(b" " * min(PIECE, trouble["size"] - begin))

    def asked_range(self, file):
        """The first byte and the end of what is asked for, and whether that is a range."""
        text = self.headers.get("Range", "")
        if not text.startswith("bytes=") or "," in text or self.due("whole") is not None:
            return 0, file.size, False
        first, _, last = text.removeprefix("bytes=").partition("-")
        begin = int(first) if first else max(0, file.size - int(last))
        end = min(file.size, int(last) + 1) if first and last else file.size
        if begin >= end:
            raise Refused(416, None, "no such range", {"Content-Range": f"bytes */{file.size}"})
        return begin, end, True

    def send_file(self, file, fields):
        begin, end, is_range = self.asked_range(file)
        fields = fields | {"Accept-Ranges": "bytes", "Content-Type": "application/octet-stream"}
        if is_range:
            fields["Content-Range"] = f"bytes {begin}-{end - 1}/{file.size}"
        if self.due("encoded") is not None:
            with file.source.open("rb") as content:
                body = gzip.compress(os.pread(content.fileno(), end - begin, begin))
            return self.send_bytes(206 if is_range else 200, body, fields | {"Content-Encoding": "gzip"})
        if (trouble := self.due("short")) is not None:
            end = max(begin, end - trouble.get("by", 1))
        more = b"" if (trouble := self.due("long")) is None else b"x" * trouble.get("by", 1)
        self.send_head(206 if is_range else 200, fields | {"Content-Length": end - begin + len(more)})
        if self.command == "HEAD":
            return
        with file.source.open("rb") as content:
            if self.send_content(content.fileno(), begin, end):
                self.wfile.write(more)

    def send_content(self, content, begin, end):
        """Sends these bytes, unless there is trouble. True if all are sent."""
        first, whole = begin, end

        def ends_inside(arguments):
            return first + arguments["bytes"] < whole

        stall, cut = self.due("stall", concerns=ends_inside), self.due("cut", concerns=ends_inside)
        damage = self.due("damage", concerns=lambda arguments: first <= arguments.get("at", 0) < whole)
        for trouble in (stall, cut):
            if trouble is not None:
                end = min(end, begin + trouble["bytes"])
        while begin < end and not self.hub.closing.is_set():
            size = min(PACED_PIECE if self.hub.pace else PIECE, end - begin)
            at = None if damage is None else damage.get("at", 0) - begin
            begin += self.send_piece(content, begin, size, at)
        if begin == whole:
            return True
        if stall is not None:
            self.hub.closing.wait(stall.get("seconds", 3600))
        self.close_connection = True
        return False

    def send_piece(self, content, begin, size, damaged_at):
        """Sends at most so many bytes, and returns how many."""
        if self.hub.pace:
            time.sleep(size / self.hub.pace)
        is_damaged = damaged_at is not None and 0 <= damaged_at < size
        if is_damaged or self.server.is_secure:
            piece = bytearray(os.pread(content, size, begin))
            if is_damaged:
                piece[damaged_at] ^= 0xFF
            self.wfile.write(piece)
            sent = len(piece)
        else:
            sent = os.sendfile(self.connection.fileno(), content, begin, size)
        if sent == 0:
            raise OSError("a file of the hub became shorter")
        self.hub.count(self.host, sent)
        return sent
