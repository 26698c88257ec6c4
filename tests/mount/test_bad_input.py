"""Bad input to the command line: exit code 1, one line that says what and where, and a store that is as it was."""
import errno
import grp
import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import numpy
import pytest

import malformed
from daemonlib import WEFTD
from weftlib import (NOBODY, WEFT, Mount, Store, assert_refused, environment, files_below, programs_for_everybody,
                     random_bytes, random_tensors, run, safetensors_bytes, store_with, write_model)

MEMORY_MAX = 1 << 30  # address space is not memory, but what a small file makes a reader take must fit here easily
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A store with one model, that every refusal here must leave as it is."""
    area = tmp_path_factory.mktemp("kept")
    return store_with(area, random_tensors(2, 4096, seed="kept"), name="kept", tag="good")


@pytest.fixture
def unchanged(kept):
    before = kept.state(), kept.pack_bytes()
    yield kept
    assert (kept.state(), kept.pack_bytes()) == before
    assert list((kept.path / "tmp").iterdir()) == []
    kept.assert_sound()


def limit_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MAX, MEMORY_MAX))


def try_import(store, *paths, name="bad", options=(), **run_options):
    return store.weft("import", *paths, "--name", name, *options, check=False, **run_options)


@pytest.mark.parametrize("name, data", [pytest.param(name, data, id=label) for label, name, data in malformed.cases()])
def test_malformed_file(unchanged, tmp_path, name, data):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / name).write_bytes(data)
    assert_refused(try_import(unchanged, tmp_path / "m", preexec_fn=limit_memory), name)


@pytest.mark.parametrize("name, data, why", malformed.UNDER_OTHER_NAMES.values(), ids=malformed.UNDER_OTHER_NAMES)
def test_file_that_is_of_a_format_by_its_first_bytes(store, tmp_path, name, data, why):
    """Its name promises nothing to a reader, so it is kept even if it is cut short."""
    assert_kept(store, tmp_path, name, data, why)


def test_text_about_a_format(store, tmp_path):
    """It begins with the magic by chance."""
    store.publish(write_file(tmp_path / "m" / "notes", b"GGUF is a file format of models.\n"), name="m")
    assert "no tensors" not in store.weft("info", "m").stdout


@pytest.mark.parametrize("name, data, why", malformed.READABLE.values(), ids=malformed.READABLE)
def test_file_that_only_its_library_reads(store, tmp_path, name, data, why):
    assert_kept(store, tmp_path, name, data, why)


def assert_kept(store, tmp_path, name, data, why):
    """The file is kept as it is beside the others, has no tensors, and info says why."""
    write_file(tmp_path / "m" / "b.safetensors", safetensors_bytes({"b": ("U8", [4], b"read")}))
    write_file(tmp_path / "m" / name, data)
    store.publish(tmp_path / "m", name="m")
    assert f"  no tensors in {name}: " in store.weft("info", "m").stdout
    files = {file["path"]: file for file in store.json("info", "m")["files"]}
    assert files[name]["tensors"] == 0 and files[name]["format"] == "" and why in files[name]["metadata"]["no tensors"]
    assert files["b.safetensors"]["tensors"] == 1 and "metadata" not in files["b.safetensors"]
    with Mount(store, tmp_path / "mnt") as mount:
        assert files_below(mount.version("m", 1)) == files_below(tmp_path / "m")


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "model.onnx", "model.onnx_data",
                                  "tf_model.h5", "consolidated.00.pth", "last.ckpt", "flax_model.msgpack"])
def test_pointer_in_the_place_of_weights(unchanged, tmp_path, name):
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d' * 32}\nsize 12345\n"
    path = write_file(tmp_path / "m" / name, pointer.encode())
    assert_refused(try_import(unchanged, path), name, "git lfs pull")


@pytest.mark.parametrize("name", ["x.bin", "x.onnx", "x.h5", "images/0.jpg", "shard-00000.tar"])
def test_pointer_in_a_data_set(unchanged, tmp_path, name):
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d' * 32}\nsize 12345\n"
    (tmp_path / "d" / "images").mkdir(parents=True)
    write_file(tmp_path / "d" / "a.bin", b"whole")
    write_file(tmp_path / "d" / name, pointer.encode())
    assert_refused(try_import(unchanged, tmp_path / "d", options=["--dataset"]), name, "git lfs pull")


@pytest.mark.parametrize("name", malformed.whole_files())
def test_truncation_at_every_byte(unchanged, tmp_path, name):
    whole = malformed.whole_files()[name]
    assert try_import(Store(tmp_path / "other"), write_file(tmp_path / "whole" / name, whole)).returncode == 0
    # A file of no bytes is an empty one, and one without its magic is opaque: these formats are told by name or magic.
    for length in range(8, len(whole)):
        path = write_file(tmp_path / "cut" / name, whole[:length])
        done = try_import(unchanged, path)
        assert done.returncode == 1, f"cut to {length} of {len(whole)} bytes"
        assert_refused(done, name)


def write_file(path, data):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


INDEX = "model.safetensors.index.json"
BAD_INDEXES = {
    "no JSON": b"{",
    "no weight_map": b'{"metadata": {}}',
    "shard is not there": json.dumps({"weight_map": {"a": "none.safetensors"}}).encode(),
    "shard lies outside": json.dumps({"weight_map": {"a": "../a.safetensors"}}).encode(),
    "shard is a number": b'{"weight_map": {"a": 1}}',
    "a million deep": b'{"weight_map":' + b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_001,
}


@pytest.mark.parametrize("data", BAD_INDEXES.values(), ids=BAD_INDEXES.keys())
def test_index_of_shards(unchanged, tmp_path, data):
    write_file(tmp_path / "m" / "a.safetensors", safetensors_bytes({"a": ("U8", [4], bytes(4))}))
    write_file(tmp_path / "m" / INDEX, data)
    assert_refused(try_import(unchanged, tmp_path / "m"), INDEX)


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "JSON"])
def test_index_that_names_the_wrong_shard(store, tmp_path, options):
    """transformers reads all tensors of each shard, whatever the index says about them (tests/frameworks)."""
    for name in "ab":
        write_file(tmp_path / "m" / f"{name}.safetensors", safetensors_bytes({name: ("U8", [4], bytes(4))}))
    weight_map = {"a": "b.safetensors", "b": "b.safetensors", "z": "a.safetensors"}
    write_file(tmp_path / "m" / INDEX, json.dumps({"weight_map": weight_map}).encode())
    remark = "expected tensor a in b.safetensors, got none of that name; 2 tensors in all are not in their shard"
    done = store.weft("import", tmp_path / "m", "--name", "m", *options)
    assert f"{INDEX}: {remark}" in done.stderr
    assert not options or json.loads(done.stdout)["remarks"] == [f"{INDEX}: {remark}"]
    assert f"  remark     {INDEX}: {remark}\n" in store.weft("info", "m").stdout
    files = {file["path"]: file for file in store.json("info", "m")["files"]}
    assert files[INDEX]["metadata"] == {"remark": remark} and files["a.safetensors"]["tensors"] == 1


def test_index_of_shards_in_a_directory(store, tmp_path):
    (tmp_path / "m").mkdir()
    write_file(tmp_path / "m" / "sub" / "a.safetensors", safetensors_bytes({"a": ("U8", [4], bytes(4))}))
    write_file(tmp_path / "m" / INDEX, json.dumps({"weight_map": {"a": "sub/a.safetensors"}}).encode())
    store.publish(tmp_path / "m", name="m")
    assert "remark" not in store.weft("info", "m").stdout


# Names.

ODD_NAMES = {
    "slash": "a/b", "dots": "..", "path up": "../../etc/passwd", "absolute": "/etc/passwd", "one dot": ".",
    "empty": "", "dots in dots": "a..b", "trailing dot": "a.", "leading dot": ".a", "NUL": "a\0b", "newline": "a\nb",
    "percent": "a%2Fb", "at": "@a.b", "space": "a b", "umlaut": "gewichtü.ä", "backslash": "a\\b", "layer json": "layer.json",
}


@pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES.keys())
def test_odd_tensor_name(store, tmp_path, name):
    """A reversible escape, or a refusal; never a path that leads elsewhere."""
    data = random_bytes(64, seed=name)
    path = write_file(tmp_path / "m" / "a.safetensors", safetensors_bytes({name: ("U8", [64], data),
                                                                           "plain": ("U8", [1], b"x")}))
    done = try_import(store, path, name="odd")
    if done.returncode != 0:
        assert_refused(done, "a.safetensors")
        return
    with Mount(store, tmp_path / "mnt") as mount:
        views = [view for view in mount.tensors("odd", 1).rglob("*.npy") if view.name != "plain.npy"]
        assert len(views) == 1
        assert numpy.load(views[0]).tobytes() == data
        layered = [view for view in mount.layers("odd", 1).rglob("*") if view.is_file() and view.samefile(views[0])]
        assert len(layered) == 1
        assert (mount.version("odd", 1) / "a.safetensors").read_bytes() == path.read_bytes()


def test_tensor_that_is_also_a_layer(store, tmp_path):
    tensors = {"a.b": ("U8", [4], b"leaf"), "a.b.c": ("U8", [4], b"deep"), "a.b.npy.d": ("U8", [4], b"most")}
    done = try_import(store, write_file(tmp_path / "m" / "a.safetensors", safetensors_bytes(tensors)), name="both")
    if done.returncode != 0:
        assert_refused(done, "a.safetensors")
        return
    with Mount(store, tmp_path / "mnt") as mount:
        tensors_dir = mount.tensors("both", 1)
        assert {path.name: numpy.load(path).tobytes() for path in tensors_dir.iterdir()} == {
            f"{name}.npy": data for name, (_, _, data) in tensors.items()}
        layered = [numpy.load(path).tobytes() for path in mount.layers("both", 1).rglob("*.npy")
                   if path.is_file()]
        assert sorted(layered) == [b"deep", b"leaf", b"most"]


def test_name_that_just_fits(store, tmp_path):
    """NAME_MAX less the suffix is not too long."""
    name = "x" * 251
    store.publish(write_file(tmp_path / "a.safetensors", safetensors_bytes({name: ("U8", [4], b"fits")})), name="long")
    with Mount(store, tmp_path / "mnt") as mount:
        assert numpy.load(mount.tensors("long", 1) / f"{name}.npy").tobytes() == b"fits"


BAD_MODEL_NAMES = ["", "/", "a/", "/a", "a//b", "..", "a/..", ".a", "-a", "3", "a/3", "latest", "a/latest", "a b", "a@1",
                   "a\nb", "ü", "x" * 97, "/".join(["x" * 90] * 3)]


@pytest.mark.parametrize("name", BAD_MODEL_NAMES, ids=repr)
def test_bad_model_name(unchanged, tmp_path, name):
    model = write_model(tmp_path / "m", random_tensors(1, 64, seed="name"))
    done = unchanged.weft("import", model, f"--name={name}", check=False)
    assert done.returncode in (1, 2) and done.stderr.strip()


@pytest.mark.parametrize("tag", ["3", "007", "latest", "versions.tsv", "", "a/b", "..", "a b", "-x", "x" * 97],
                         ids=repr)
def test_bad_tag(unchanged, tmp_path, tag):
    for words in (["tag", "kept@1", tag],
                  ["import", write_model(tmp_path / "m", random_tensors(1, 64, seed="t")), "--name", "kept", f"--tag={tag}"]):
        done = unchanged.weft(*words, check=False)
        assert done.returncode in (1, 2) and done.stderr.strip()


@pytest.mark.parametrize("name", ["kept/below", "kept/below/that"])
def test_model_below_a_model(unchanged, tmp_path, name):
    model = write_model(tmp_path / "m", random_tensors(1, 64, seed="below"))
    assert_refused(try_import(unchanged, model, name=name), name, "kept")


def test_model_above_a_model(store, tmp_path):
    model = write_model(tmp_path / "m", random_tensors(1, 64, seed="above"))
    store.publish(model, name="org/llama")
    before = store.state()
    assert_refused(try_import(store, model, name="org"), "org")
    assert store.state() == before


MISSING = {
    "tag of no version": ["tag", "kept@9", "x"], "tag of no model": ["tag", "none@1", "x"],
    "rm of no version": ["rm", "kept@9"], "rm of no model": ["rm", "none@1"], "info of no model": ["info", "none"],
    "log of no model": ["log", "none"], "info of no tag": ["info", "kept@none"],
}


@pytest.mark.parametrize("words", MISSING.values(), ids=MISSING.keys())
def test_what_is_not_there(unchanged, words):
    assert_refused(unchanged.weft(*words, check=False), words[1].split("@")[0])


@pytest.mark.parametrize("parent", ["none", "kept@9", "kept@none"])
def test_parent_that_is_not_there(unchanged, tmp_path, parent):
    model = write_model(tmp_path / "m", random_tensors(1, 64, seed="orphan"))
    assert_refused(try_import(unchanged, model, options=["--parent", parent]), parent.split("@")[0])


@pytest.mark.parametrize("metric", ["loss", "=1", "a=b=c\n"])
def test_bad_metric(unchanged, tmp_path, metric):
    model = write_model(tmp_path / "m", random_tensors(1, 64, seed="metric"))
    done = try_import(unchanged, model, options=["--metric", metric])
    assert done.returncode in (1, 2) and done.stderr.strip()


@pytest.mark.parametrize("words", [[], ["none"], ["import"], ["import", "x"], ["ls", "--none"], ["tag"]], ids=repr)
def test_usage(unchanged, words):
    done = unchanged.weft(*words, check=False)
    assert done.returncode == 2 and done.stderr.strip()


# Sources.

def test_source_is_not_there(unchanged, tmp_path):
    assert_refused(try_import(unchanged, tmp_path / "none"), tmp_path / "none")


def test_empty_directory(unchanged, tmp_path):
    (tmp_path / "m").mkdir()
    assert_refused(try_import(unchanged, tmp_path / "m"), tmp_path / "m")


def special(kind, path, tmp_path):
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    elif kind == "link to a directory":
        (tmp_path / "elsewhere").mkdir()
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "link to itself":
        path.symlink_to(path.name)
    elif kind == "link to nothing":
        path.symlink_to("none")
    elif kind == "link to a fifo":
        os.mkfifo(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", ["fifo", "socket", "link to a directory", "link to itself", "link to nothing",
                                  "link to a fifo", "link to a device"])
def test_source_is_no_regular_file(unchanged, tmp_path, kind):
    model = write_model(tmp_path / "m", random_tensors(1, 64, seed="special"))
    special(kind, model / "odd", tmp_path)
    assert_refused(try_import(unchanged, model, timeout=20), "odd")


def test_two_files_of_one_name(unchanged, tmp_path):
    one, other = (write_file(tmp_path / place / "same.txt", place.encode()) for place in ("a", "b"))
    assert_refused(try_import(unchanged, one, other), "same.txt")


@needs_root
def test_unreadable_file(open_dir):
    """As an ordinary user: to root every file is readable."""
    programs = programs_for_everybody(open_dir)
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
    weft = [programs / "weft", "--store", open_dir / "store"]
    run([*weft, "init"], **user)
    model = write_model(open_dir / "m", random_tensors(1, 64, seed="secret"))
    (model / "config.json").chmod(0o600)
    before = run([*weft, "ls", "--json"], **user).stdout
    assert_refused(run([*weft, "import", model, "--name", "m"], check=False, **user), "config.json")
    assert run([*weft, "ls", "--json"], **user).stdout == before


@needs_root
@pytest.mark.parametrize("words", [["fsck"], ["fsck", "--quick"], ["fsck", "--repair"], ["fsck", "--rebuild"],
                                   ["cache", "--max", "1G"], ["init"]], ids=" ".join)
def test_a_reader_who_lacks_the_right_to_write(open_dir, words):
    """The message names the users who have the right, and no file that the user cannot do anything about."""
    programs = programs_for_everybody(open_dir)
    store = Store(open_dir / "store", group="nogroup")
    store.publish(write_model(open_dir / "m", random_tensors(1, 64, seed="reader")), name="m")
    reader = {"user": NOBODY, "group": grp.getgrnam("nogroup").gr_gid, "extra_groups": [], "cwd": "/"}
    weft = [programs / "weft", "--store", store.path]
    assert "m" in run([*weft, "ls"], **reader).stdout
    done = run([*weft, *words], check=False, **reader)
    assert done.returncode == 1
    assert done.stderr == (f"weft: {store.path}: user {NOBODY} may not write to this store: "
                           "expected user 0, its owner\n")
    store.assert_sound()


def test_source_that_changes(unchanged, tmp_path):
    """Whoever writes to a file while it is read gets no version of it."""
    path = tmp_path / "changing.bin"
    with open(path, "wb") as file:
        for i in range(64):
            file.write(random_bytes(1 << 20, seed=f"changing {i}"))
    stop = threading.Event()

    def scribble():
        with open(path, "r+b", buffering=0) as file:
            while not stop.is_set():
                os.pwrite(file.fileno(), os.urandom(8), (63 << 20) + 5)

    writer = threading.Thread(target=scribble)
    writer.start()
    try:
        assert_refused(try_import(unchanged, path), "changing.bin")
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_stopped_import(kept, tmp_path, stop):
    """The store is as before at once; what a kill leaves lying about, gc clears."""
    before = kept.state()
    path = tmp_path / "large.bin"
    with open(path, "wb") as file:
        file.truncate(4 << 30)  # sparse, and long to hash
    with subprocess.Popen([WEFT, "--store", kept.path, "import", path, "--name", "large"], env=environment(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as importer:
        time.sleep(0.3)
        importer.send_signal(stop)
        importer.communicate(timeout=20)
    assert importer.returncode not in (0, 2)
    assert kept.state() == before
    kept.weft("gc")
    assert list((kept.path / "tmp").iterdir()) == []
    kept.assert_sound()


def test_cut_pipe(kept):
    """`weft ls | head`: the reader that leaves is no failure worth a message."""
    done = run(["sh", "-c", f"'{WEFT}' --store '{kept.path}' ls --json | true"])
    assert done.stderr == ""


# Stores.

def test_path_is_no_store(tmp_path):
    (tmp_path / "some-dir").mkdir()
    (tmp_path / "some-dir/file").write_text("mine")
    for words in (["ls"], ["gc"], ["fsck"], ["fsck", "--rebuild"], ["init"]):
        assert_refused(run([WEFT, "--store", tmp_path / "some-dir", *words], check=False), tmp_path / "some-dir")
    assert os.listdir(tmp_path / "some-dir") == ["file"]
    assert_refused(run([WEFT, "--store", tmp_path / "none", "ls"], check=False), tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "plain-file").write_text("x")
    assert_refused(run([WEFT, "--store", tmp_path / "plain-file", "ls"], check=False), tmp_path / "plain-file")


def test_init_of_a_store(unchanged):
    assert_refused(unchanged.weft("init", check=False), unchanged.path)


def test_store_of_a_newer_weft(store, small_model, tmp_path):
    """The identity's record with a version that we cannot know (weft-store.5: checksum, length, kind, version)."""
    store.publish(small_model, name="m")
    identity = store.path / "weft-store"
    record = bytearray(identity.read_bytes())
    struct.pack_into("<H", record, 14, 2)
    record[:8] = xxh3_64(bytes(record[8:]))
    identity.chmod(0o600)
    identity.write_bytes(record)
    why = f"{identity}: another version of weft wrote this: expected record version 1, got 2"
    for words in (["ls"], ["import", small_model, "--name", "n"], ["gc"], ["fsck"], ["fsck", "--rebuild"]):
        done = store.weft(*words, check=False)
        assert_refused(done, why)
    (tmp_path / "mnt").mkdir()
    assert_refused(store.weft("mount", tmp_path / "mnt", check=False), why)
    done = run([WEFTD, "--store", store.path], check=False)
    assert done.returncode == 1 and why in done.stderr
    assert identity.read_bytes() == record


def xxh3_64(data):
    """Little-endian XXH3-64, by the library that Debian's package brings."""
    import ctypes
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_64bits.restype = ctypes.c_uint64
    library.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return struct.pack("<Q", library.XXH3_64bits(data, len(data)))


def test_failed_first_import_leaves_nothing(tmp_path):
    """Neither a store nor the directories above it, whatever it fails for."""
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"\xff" * 64)
    good = write_model(tmp_path / "good", random_tensors(2, 4096, seed="first"))
    where = tmp_path / "a/b/store"
    for words in ([bad, "--name", "m"], [good, "--name", "m", "--parent", "none@1"], [good, "--name", "latest"],
                  [tmp_path / "none", "--name", "m"]):
        assert_refused(run([WEFT, "--store", where, "import", *words, "--quiet"], check=False))
        assert not (tmp_path / "a").exists()
    (tmp_path / "a/b/store").mkdir(parents=True)
    assert_refused(run([WEFT, "--store", where, "import", good, "--name", "m", "--parent", "none", "--quiet"],
                       check=False))
    assert os.listdir(where) == []
    run([WEFT, "--store", where, "import", good, "--name", "m"])


def test_first_imports_at_once(tmp_path):
    """Several that find no store: one makes it, all publish; one that fails takes nothing from the others."""
    good = [write_model(tmp_path / f"m{i}", random_tensors(2, 4096, seed=f"race {i}")) for i in range(4)]
    for attempt in range(8):
        where = tmp_path / f"area-{attempt}/store"
        imports = [[good[i], "--name", f"m{i}"] for i in range(4)] + [[good[0], "--name", "x", "--parent", "none"]] * 2
        started = [subprocess.Popen([WEFT, "--store", where, "import", *words], env=environment(),
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for words in imports]
        said = [process.communicate(timeout=60) for process in started]
        assert [process.returncode for process in started] == [0, 0, 0, 0, 1, 1], said
        names = json.loads(run([WEFT, "--store", where, "ls", "--json"]).stdout)["models"]
        assert sorted(model["model"] for model in names) == ["m0", "m1", "m2", "m3"]
        run([WEFT, "--store", where, "fsck"])
        shutil.rmtree(where.parent)


def test_interrupt_while_waiting(kept, tmp_path):
    """Ctrl-C ends a wait for another writer at once, who is named, and the store is as it was."""
    import fcntl
    import struct
    before = kept.state()
    model = write_model(tmp_path / "m", random_tensors(2, 4096, seed="wait"))
    with open(kept.path / "index/writer", "r+b") as writer:
        writer.write(b"4711 somebody\n")
        writer.truncate()
        writer.flush()
        fcntl.fcntl(writer, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
        for words in (["import", model, "--name", "waits"], ["rm", "--force", "kept@1"], ["tag", "kept@1", "other"], ["gc"],
                      ["fsck"], ["fsck", "--rebuild"]):
            with subprocess.Popen([WEFT, "--store", kept.path, *words], env=environment(), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as waiting:
                assert "which process 4711 (somebody) holds" in waiting.stderr.readline()
                waiting.send_signal(signal.SIGINT)
                waiting.communicate(timeout=20)
            assert waiting.returncode in (128 + signal.SIGINT, -signal.SIGINT), words
    assert kept.state() == before
    assert list((kept.path / "tmp").iterdir()) == []
    kept.assert_sound()


def test_damaged_journal(store, small_model, tmp_path):
    """One damaged file of the journal is mended; both are refused by name, then given up when that is accepted."""
    other_model = write_model(tmp_path / "other", random_tensors(2, 4096, seed="other"))
    store.publish(small_model, name="a")
    begin = (store.path / "journal/0000000000000001.log").stat().st_size
    store.publish(other_model, name="a", tag="t")
    end = (store.path / "journal/0000000000000001.log").stat().st_size
    store.publish(small_model, name="b")
    before = store.state()
    log, copy = (store.path / f"journal/0000000000000001.{kind}" for kind in ("log", "copy"))
    middle = (begin + end) // 2
    flip(log, middle)
    assert store.weft("fsck", check=False).returncode == 1
    shutil.rmtree(store.path / "index")
    assert "repaired" in store.weft("fsck", "--rebuild").stdout
    assert store.state() == before
    flip(log, middle)
    flip(copy, 8192 + middle)
    shutil.rmtree(store.path / "index")
    refused = store.weft("fsck", "--rebuild", check=False)
    assert refused.returncode == 1
    assert "whole in neither copy" in refused.stdout
    accepted = store.weft("fsck", "--accept-loss")
    assert "lost:" in accepted.stdout
    assert [model["model"] for model in store.json("ls")["models"]] == ["a", "b"]
    after = store.state()
    shutil.rmtree(store.path / "index")
    assert "lost" not in store.weft("fsck", "--rebuild").stdout
    assert store.state() == after
    store.publish(other_model, name="a")
    assert store.json("ls", "a")["versions"][-1]["version"] > 2
    store.assert_sound()


# Disks.

def test_full_disk(small_disk, tmp_path):
    """An import that does not fit fails by name, leaves nothing, and the store goes on."""
    store = Store(small_disk / "store")
    small = write_model(tmp_path / "small", random_tensors(2, 1 << 20, seed="fits"))
    large = write_model(tmp_path / "large", random_tensors(20, 1 << 20, seed="does not"))
    store.publish(small, name="small")
    before, free = store.state(), os.statvfs(small_disk).f_bavail
    assert_refused(try_import(store, large, name="large"), "space")
    assert store.state() == before
    store.assert_sound()
    assert abs(os.statvfs(small_disk).f_bavail - free) * 4096 <= 256 << 10
    store.publish(write_model(tmp_path / "next", random_tensors(2, 1 << 20, seed="fits too")), name="next")
    with Mount(store, tmp_path / "mnt") as mount:
        assert files_below(mount.version("small", 1)) == files_below(small)
    store.assert_sound()


def test_disk_that_others_filled(small_disk, tmp_path):
    """With not a byte left everything that is there can be read, and rm and gc make room or say why not."""
    model = write_model(tmp_path / "m", random_tensors(4, 1 << 20, seed="room"))
    store = store_with(small_disk, model)
    with open(small_disk / "ballast", "wb") as ballast:
        try:
            while True:
                os.write(ballast.fileno(), bytes(4096))
        except OSError:
            pass
    with Mount(store, tmp_path / "mnt") as mount:
        assert files_below(mount.version("m", 1)) == files_below(model)
    assert "m" in store.weft("ls").stdout
    assert_refused(try_import(store, write_model(tmp_path / "n", random_tensors(1, 1 << 20, seed="no room")), name="n"))
    assert "m" in store.weft("ls").stdout
    store.weft("tag", "m@1", "last")
    store.weft("rm", "--force", "m@1")
    store.weft("gc")
    assert store.pack_bytes() == 0
    store.assert_sound()
    os.unlink(small_disk / "ballast")
    store.publish(model, name="m")
    store.assert_sound()


# Exports.

def test_export(unchanged, tmp_path):
    unchanged.weft("export", "kept", tmp_path / "out")
    with Mount(unchanged, tmp_path / "mnt") as mount:
        assert files_below(tmp_path / "out") == files_below(mount.version("kept", 1))


def test_export_into_a_directory_in_use(unchanged, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("x")
    assert_refused(unchanged.weft("export", "kept", tmp_path / "out", check=False), tmp_path / "out")
    assert os.listdir(tmp_path / "out") == ["mine"]


def test_export_to_a_full_disk(small_disk, store, tmp_path):
    store.publish(write_model(tmp_path / "m", random_tensors(20, 1 << 20, seed="export")), name="m")
    assert_refused(store.weft("export", "m", small_disk / "out", check=False), "space")
    assert not (small_disk / "out").exists() or files_below(small_disk / "out") == {}


def flip(path, offset):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)


def test_damaged_pack(store, tmp_path):
    """A flipped bit is found by fsck and by export, each naming it."""
    store.publish(write_model(tmp_path / "m", random_tensors(2, 1 << 20, seed="flip")), name="m")
    pack = max((store.path / "packs").glob("*.pack"), key=lambda path: path.stat().st_size)
    flip(pack, pack.stat().st_size // 2)
    assert store.weft("fsck", check=False).returncode == 1
    assert_refused(store.weft("export", "m", tmp_path / "out", check=False))
    assert not (tmp_path / "out").exists() or files_below(tmp_path / "out") == {}


def test_a_pack_cut_short_below_a_mount(store, tmp_path):
    """What is gone reads as EIO, and the server lives: it gives the kernel pages of packs that it has mapped."""
    store.publish(write_model(tmp_path / "m", random_tensors(1, 4 << 20, seed="cut")), name="m")
    pack = max((store.path / "packs").glob("*.pack"), key=lambda path: path.stat().st_size)
    with Mount(store, tmp_path / "mnt") as mount:
        view = next(mount.tensors("m", 1).iterdir())
        server = json.loads((mount / ".weft/status").read_text())["mount"]["pid"]
        with open(view, "rb", buffering=0) as file:
            whole = [os.pread(file.fileno(), 1 << 20, at << 20) for at in range(4)]
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            assert [os.pread(file.fileno(), 1 << 20, at << 20) for at in range(4)] == whole
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            os.truncate(pack, 2 << 20)
            assert os.pread(file.fileno(), 1 << 20, 0) == whole[0]
            with pytest.raises(OSError) as failed:
                os.pread(file.fileno(), 1 << 20, 3 << 20)
            assert failed.value.errno == errno.EIO
        assert json.loads((mount / ".weft/status").read_text())["mount"]["pid"] == server


def test_lost_index(store, small_model, tmp_path):
    """Without its index the store says what to do, and then it is as before."""
    store.publish(small_model, name="org/small", tag="best", message="first")
    before = store.state()
    shutil.rmtree(store.path / "index")
    (store.path / "index").mkdir()
    done = store.weft("ls", check=False)
    assert_refused(done, "weft fsck --rebuild")
    store.weft("fsck", "--rebuild")
    assert store.state() == before
    with Mount(store, tmp_path / "mnt") as mount:
        assert files_below(mount.version("org/small", 1)) == files_below(small_model)
