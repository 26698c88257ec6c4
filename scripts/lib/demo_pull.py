"""The Python parts of `scripts/demo pull`.

    demo_pull.py hub ENDPOINT NAME ADDRESS STORAGE    serves the model NAME of a weftd's endpoint as a model hub does, at ADDRESS:
                                                      files in LFS come from another host, STORAGE. Prints its own endpoint
    demo_pull.py load NAME DIRECTORY                  loads a model by its name, and the same model from a directory. Prints the
                                                      seconds of the first load, and "yes" if both are equal
    demo_pull.py from_peers                           reads the JSON of `weft status`. Prints how many bytes came from peers
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests"))
from hub_double import File, Hub, git_blob, is_in_lfs  # noqa: E402


class ServedFile:
    """A file of an endpoint, as the source of a hub_double.File. The first open fetches it into a file without a name."""

    def __init__(self, url):
        self.url, self.lock, self.kept = url, threading.Lock(), None

    def open(self, mode):
        with self.lock:
            if self.kept is None:
                self.kept = self.fetch()
        return os.fdopen(os.dup(self.kept.fileno()), mode)

    def fetch(self):
        kept = tempfile.TemporaryFile()
        with urllib.request.urlopen(self.url) as answer:
            shutil.copyfileobj(answer, kept)
        kept.flush()
        return kept


def file_of(endpoint, name, commit, row):
    """The file of a row of the endpoint's listing. The hub has the git SHA-1 of a small file, which no endpoint of weftd has."""
    source = ServedFile(f"{endpoint}/{name}/resolve/{commit}/{urllib.request.quote(row['path'])}")
    if is_in_lfs(row["path"], row["size"]):
        return File(row["path"], source, row["size"], row["lfs"]["oid"], row["oid"], row["lfs"]["pointerSize"])
    with source.open("rb") as content:
        git_sha1 = git_blob(os.pread(content.fileno(), row["size"], 0))
    return File(row["path"], source, row["size"], row["lfs"]["oid"], git_sha1, 0)


def ask(url):
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


def serve(endpoint, name, address, storage):
    commit = ask(f"{endpoint}/api/models/{name}")["sha"]
    rows = ask(f"{endpoint}/api/models/{name}/tree/{commit}?recursive=true")
    with Hub(address, storage) as hub:
        repository = hub.add(name)
        repository.commits[commit] = {row["path"]: file_of(endpoint, name, commit, row) for row in rows if row["type"] == "file"}
        repository.branches["main"] = commit
        print(hub.endpoint, flush=True)
        threading.Event().wait()


def load(name, directory):
    from torch import equal
    from transformers import AutoModel, AutoTokenizer

    begin = time.perf_counter()
    words = AutoTokenizer.from_pretrained(name)("Weights are files.")["input_ids"]
    state = {key: tensor.clone() for key, tensor in AutoModel.from_pretrained(name).state_dict().items()}
    seconds = time.perf_counter() - begin
    expected = AutoModel.from_pretrained(directory).state_dict()
    same = (words == AutoTokenizer.from_pretrained(directory)("Weights are files.")["input_ids"] and
            state.keys() == expected.keys() and all(equal(state[key], expected[key]) for key in expected))
    print(f"{seconds:.2f} {'yes' if same else 'NO'}")


def from_peers():
    sources = json.load(sys.stdin)["daemon"]["fetched"]["sources"]
    print(sum(source["bytes"] for source in sources if source["name"] == "peer"))


if __name__ == "__main__":
    {"hub": serve, "load": load, "from_peers": from_peers}[sys.argv[1]](*sys.argv[2:])
