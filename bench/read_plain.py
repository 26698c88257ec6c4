"""Part `plain`: reads without passthrough, warm and cold, against the same file on the store's file system. As root: a mount
with passthrough=off, then the mount of an ordinary user, in a process of that user. As an ordinary user: that mount alone.

The mount has a page cache of its own there, which is brought in and forgotten with the pack below it."""

import os
import pathlib
import pwd
import subprocess
import sys

from measure import PAIR_HEAD, settle
from read_cold import Cold
from read_set import MIB
from read_warm import Warm, ways

NOBODY = 65534
FIND = "from importlib.util import find_spec; raise SystemExit(not (find_spec('torch') and find_spec('safetensors')))"


def can_load(python):
    """Has this Python torch and safetensors? One in a machine of scripts/vm may have none."""
    try:
        return subprocess.run([python, "-c", FIND], check=False).returncode == 0
    except OSError:
        return False


def loaders(bench):
    """One that has loaded a file before; none if there is no torch, which is printed."""
    if not can_load(bench.python):
        print(f"(load_file is left out: {bench.python} has no torch and safetensors)")
        return []
    loader = bench.loader()
    loader.seconds("load_file", bench.model("scratch", 4, MIB))
    return [loader]


def rows(bench, by_name, native, ours, store):
    settle()  # a page that waits to be written cannot be forgotten
    cold = Cold(native, ours, store)
    for state, sides in (("warm", Warm(native, ours, cold.below)), ("cold", cold)):
        for name, way in by_name.items():
            print(sides.pairs(bench.pairs, way).row(f"{state}: {name}"), flush=True)


def run_as_user(bench):
    """This part once more, as the user who called sudo, or as nobody, in a directory of that user."""
    user = pwd.getpwuid(int(os.environ.get("SUDO_UID", 0)) or NOBODY)
    where = bench.dir / "user"
    where.mkdir()
    os.chown(where, user.pw_uid, user.pw_gid)
    bench.dir.chmod(0o711)
    words = [sys.executable, pathlib.Path(__file__).resolve().with_name("reading.py"), "--build", bench.build, "--python",
             bench.python, "--dir", where, "--pairs", bench.pairs, "--megabytes", bench.size // MIB, "plain"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(where), "LC_ALL": "C.UTF-8"}
    print(f"\nAs {user.pw_name}:", flush=True)
    process = subprocess.Popen([str(word) for word in words], user=user.pw_uid, group=user.pw_gid, extra_groups=[], cwd="/",
                               env=environment)
    bench.undo.callback(process.wait)
    bench.undo.callback(process.terminate)  # before the wait; it unmounts what it mounted
    if process.wait() != 0:
        raise RuntimeError(f"the part `plain` of {user.pw_name} ended with exit status {process.returncode}")


def run(bench):
    is_root = os.geteuid() == 0
    native, ours, store = bench.sides(*(["passthrough=off"] if is_root else []))
    print("Without passthrough: " + ("root, -o passthrough=off" if is_root else "an ordinary user")
          + "; peer: the same file on the store's file system")
    print(f"The mount: {bench.mode()}")
    by_name = ways(bench, 1, loaders(bench))
    print("\n" + PAIR_HEAD)
    rows(bench, by_name, native, ours, store)
    if is_root:
        run_as_user(bench)
