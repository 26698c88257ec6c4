"""Commands with a directory that begins as the last run left it: `weft carry`."""
import os
import signal
import subprocess
import sys

import pytest

from weftlib import COMMAND_SECONDS_MAX, NOBODY, WEFT, assert_refused, environment, files_below, run, wait_until

# Compiles each source once, as ccache does: the results are named by the digest of their source.
COMPILER = """
import hashlib, pathlib, sys
cache = pathlib.Path(sys.argv[1])
for source in sys.argv[2:]:
    result = cache / hashlib.sha256(source.encode()).hexdigest()[:2] / f"{source}.o"
    if result.exists():
        print("found", source, result.read_text())
        continue
    result.parent.mkdir(exist_ok=True)
    result.write_text(source.upper())
    result.chmod(0o755)
    print("compiled", source)
"""

# The first call of a compiled function, and how often the cache of the compiler had it.
TORCH = """
import torch
from torch._dynamo.utils import counters
@torch.compile
def f(x, w):
    return torch.nn.functional.gelu(x @ w).sum(dim=1)
f(torch.ones(8, 8), torch.ones(8, 8))
print(counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"])
"""


@pytest.fixture
def carry(store, tmp_path):
    """Runs a command with the directory tmp_path/cache, which does not exist before."""
    def start(*command, options=(), **extra):
        run(["rm", "-rf", tmp_path / "cache"])
        return run([WEFT, "--store", store.path, "carry", "c", tmp_path / "cache", *options, "--", *command],
                   check=False, **extra)
    return start


def compiles(carry, tmp_path, *sources, **options):
    done = carry(sys.executable, "-c", COMPILER, tmp_path / "cache", *sources, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def versions(store):
    """Of the one key that these tests use."""
    models = store.json("ls")["models"]
    return models[0]["versions"] if models else 0


def test_the_second_start_finds_what_the_first_compiled(store, carry, tmp_path):
    assert compiles(carry, tmp_path, "a", "b") == ["compiled a", "compiled b"]
    first = files_below(tmp_path / "cache")
    assert compiles(carry, tmp_path, "a", "b") == ["found a A", "found b B"]
    assert files_below(tmp_path / "cache") == first
    assert all(os.access(tmp_path / "cache" / name, os.X_OK) for name in first)
    assert versions(store) == 1
    assert compiles(carry, tmp_path, "b", "c") == ["found b B", "compiled c"]
    assert versions(store) == 2


def test_torch(store, tmp_path):
    """The second process compiles nothing."""
    pytest.importorskip("torch")
    cache = tmp_path / "cache"
    env = environment(TORCHINDUCTOR_CACHE_DIR=str(cache), HOME=str(tmp_path), OMP_NUM_THREADS="1",
                      PATH=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    counts, lines = [], []
    for _ in range(2):
        run(["rm", "-rf", cache])
        done = run([WEFT, "--store", store.path, "carry", "caches/inductor", cache, "--", "python3", "-c", TORCH],
                   env=env, timeout=3 * COMMAND_SECONDS_MAX)
        counts.append(done.stdout.split())
        lines.append(done.stderr)
    assert counts == [["0", "1"], ["1", "0"]]
    assert "python: torch " in lines[0] and "nothing has changed" in lines[1]


def test_a_key_has_its_own_versions(store, carry, tmp_path):
    assert compiles(carry, tmp_path, "a", options=["--key", "one"]) == ["compiled a"]
    assert compiles(carry, tmp_path, "a", options=["--key", "two"]) == ["compiled a"]
    assert compiles(carry, tmp_path, "a", options=["--key", "one"]) == ["found a A"]
    models = store.json("ls")["models"]
    assert len(models) == 2 and all(model["model"].startswith("c/key-") for model in models)
    assert store.json("info", models[0]["model"])["message"] in ("key: one", "key: two")


def test_streams_words_and_exit_codes(carry, tmp_path):
    (tmp_path / "input").write_text("given")
    with open(tmp_path / "input", encoding="utf-8") as given:
        done = carry("sh", "-c", 'cat; printf "%s\\n" "$@" >&2; exit 7', "sh", "[1,2]", "--", "--key=x", "", stdin=given)
    assert (done.returncode, done.stdout) == (7, "given")
    assert "[1,2]\n--\n--key=x\n\n" in done.stderr
    limits = "ulimit -S -n; ulimit -f"
    assert carry("sh", "-c", limits).stdout == run(["sh", "-c", limits]).stdout
    assert carry("weft-no-such-command").returncode == 127
    assert carry(tmp_path).returncode == 126
    assert_refused(carry("true", options=["--store", tmp_path / "nowhere"]), "nowhere", code=125)
    quiet = carry("sh", "-c", f"echo 1 >{tmp_path}/cache/file", options=["--quiet"])
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_a_full_directory_is_left_alone(store, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/mine").write_text("mine")
    done = store.weft("carry", "c", tmp_path / "cache", "-q", "--", "rm", tmp_path / "cache/mine", check=False)
    assert_refused(done, "expected an empty directory", code=125)
    assert (tmp_path / "cache/mine").read_text() == "mine"


def test_one_command_at_a_time_has_the_directory(store, service):
    """Although it is still empty. A process in the background that the command leaves does not keep the lock."""
    process, cache = service
    words = ["carry", "other", cache, "-q", "--", "touch", cache / "mine"]
    assert_refused(store.weft(*words, check=False), cache, f"process {process.pid}", code=125)
    assert not (cache / "mine").exists()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=COMMAND_SECONDS_MAX)
    store.weft("carry", "left", cache, "-q", "--", "sh", "-c", "sleep 20 >/dev/null 2>&1 &")
    store.weft(*words)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_directory_of_another_user_is_refused(store, tmp_path):
    """He could write what the command runs: in /tmp he may have made it first."""
    (tmp_path / "cache").mkdir()
    os.chown(tmp_path / "cache", NOBODY, NOBODY)
    done = store.weft("carry", "c", tmp_path / "cache", "-q", "--", "touch", tmp_path / "cache/mine", check=False)
    assert_refused(done, f"got one of user {NOBODY}", code=125)
    assert not (tmp_path / "cache/mine").exists()


@pytest.fixture
def service(store, tmp_path):
    """A command that never ends by itself, and the directory that it may write to."""
    cache = tmp_path / "cache"
    script = "trap 'echo ending; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen(
        [WEFT, "--store", store.path, "carry", "c", cache, "--quiet-after", "1", "--", "sh", "-c", script],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    assert process.stdout.readline() == "ready\n"
    yield process, cache
    process.kill()
    process.communicate()


def test_publishes_while_the_command_runs(store, service):
    """Only after the writer has paused, and at the end what came since."""
    process, cache = service
    (cache / "first").write_text("1")
    wait_until(lambda: versions(store) == 1, seconds_max=30)
    (cache / "second").write_text("2")
    wait_until(lambda: versions(store) == 2, seconds_max=30)
    (cache / "third").write_text("3")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=COMMAND_SECONDS_MAX)
    assert (process.returncode, out) == (0, "ending\n"), err
    assert err.count("is published") == 3
    assert versions(store) == 3


def test_the_signal_of_a_terminal_comes_once(store, tmp_path):
    """The terminal sends Ctrl-C to weft and to the command."""
    script = "trap 'echo INT' INT; echo ready; n=0; while [ $n -lt 20 ]; do sleep 0.05; n=$((n + 1)); done; exit 4"
    command = [WEFT, "--store", store.path, "carry", "c", tmp_path / "cache", "-q", "--", "sh", "-c", script]
    master, slave = os.openpty()
    process = subprocess.Popen(["setsid", "--ctty", "--wait", *map(str, command)], stdin=slave, stdout=subprocess.PIPE,
                               text=True, env=environment())
    os.close(slave)
    assert process.stdout.readline() == "ready\n"
    os.write(master, b"\x03")
    out, _ = process.communicate(timeout=COMMAND_SECONDS_MAX)
    os.close(master)
    assert (process.returncode, out) == (4, "INT\n")
