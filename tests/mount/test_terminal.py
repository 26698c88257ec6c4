"""Names and texts that would steer a terminal: what weft and the files of a mount print of them."""
import json
import os
import pathlib

import pytest

from weftlib import Mount, files_below, random_bytes, safetensors_bytes

BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
LINES = "\u2028\u2029"
C1 = "\x80\x85\x9b\x9f"
STEERING = BIDI + LINES + C1 + "\x07\x1b\x7f"


@pytest.fixture
def steering(store, tmp_path):
    """Two versions whose file and tensor names, message, metric and model card hold such characters."""
    model = tmp_path / "model"
    model.mkdir()
    (model / f"a{BIDI}{LINES}.safetensors").write_bytes(safetensors_bytes(
        {f"t{C1}{BIDI}.weight": ("U8", [64], random_bytes(64, "a")), "plain": ("U8", [1], b"x")}))
    (model / "README.md").write_text(f'---\nbase_model: "org/{BIDI}base"\n---\n', encoding="utf-8")
    store.publish(model, name="m")
    (model / "more.txt").write_text("more")
    (model / f"b{BIDI}.txt").write_text("more")
    store.publish(model, name="m", message=f"first {BIDI}{LINES}\nsecond\tline", metric=f"k{BIDI}=v{BIDI}", parent="m@1")
    return store


def assert_harmless(text):
    assert not set(text) & set(STEERING), ascii(text)


COMMANDS = [["log", "m"], ["log", "m@2"], ["info", "m"], ["ls"], ["ls", "m@2"], ["ls", "-l", "m@2"], ["ls", "--names", "m@2"],
            ["lineage", "m@2"], ["lineage", "m@2", "--owners"], ["lineage", "m@2", "--dot"], ["lineage", "m@2", "--svg"],
            ["diff", "m@1", "m@2"], ["info", "m", "--graph", "dot"], ["info", "m", "--graph", "json"],
            ["log", "m", "--json"], ["info", "m", "--json"], ["diff", "m@1", "m@2", "--json"], ["lineage", "m", "--json"],
            ["ls", "m@2", "--json"]]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_steers_the_terminal(steering, words):
    done = steering.weft(*words, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert_harmless(done.stdout + done.stderr)


def test_json_has_the_text_itself(steering):
    said = steering.json("log", "m")["versions"][0]
    assert said["message"] == f"first {BIDI}{LINES}\nsecond\tline"
    assert said["metrics"] == {f"k{BIDI}": f"v{BIDI}"}
    assert f"org/{BIDI}base" in json.dumps(steering.json("log", "m"), ensure_ascii=False)


def test_text_shows_what_was_there(steering):
    said = steering.weft("log", "m").stdout
    assert "first \\xe2\\x80\\xaa" in said and "second\tline" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
def test_no_file_of_the_mount_steers_the_terminal(steering, tmp_path):
    """Generated names and texts; the published files keep their names and bytes."""
    with Mount(steering, tmp_path / "mnt") as mount:
        looked = 0
        places = [mount.version("m", 2, tree) for tree in ("lineage", "tensors", "layers")]
        places += [mount / "hub/models--m/refs", mount / "lineage/m"]
        for place in places:
            for directory, _, files in os.walk(place):
                assert_harmless(str(directory))
                for name in files:
                    path = pathlib.Path(directory) / name
                    if name.endswith((".npy", ".safetensors")):
                        assert_harmless(name)
                        continue
                    if name == "SHA256SUMS":  # for a program, which needs the names of the files
                        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
                        published = mount.version("m", pathlib.Path(directory).name)
                        assert {line.split("  ", 1)[1] for line in lines} == set(files_below(published))
                        continue
                    assert_harmless(path.read_text(encoding="utf-8"))
                    looked += 1
        assert looked > 8


@pytest.mark.parametrize("control", C1, ids=lambda c: f"{ord(c):02x}")
def test_control_characters_are_refused(store, tmp_path, control):
    """C1 like C0: in messages, metrics and file names."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "a.txt").write_text("text")
    for words in (["--message", f"a{control}b"], ["--metric", f"k=v{control}"]):
        done = store.weft("import", model, "--name", "m", *words, check=False)
        assert done.returncode == 1 and "control characters" in done.stderr, done
        assert_harmless(done.stderr)
    (model / f"b{control}.txt").write_text("text")
    done = store.weft("import", model, "--name", "m", check=False)
    assert done.returncode == 1 and "control characters" in done.stderr, done
    assert_harmless(done.stderr)


def test_bad_usage_does_not_steer_the_terminal(store):
    for words in (["ls", f"m{C1}{BIDI}"], [f"l{BIDI}"], ["ls", f"--x{C1}"], ["tag", "m", f"t{BIDI}"], ["pin", f"x{C1}"]):
        done = store.weft(*words, check=False)
        assert done.returncode in (1, 2)
        assert_harmless(done.stderr)
