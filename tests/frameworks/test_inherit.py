"""weft import --inherit: the same version as if the whole had been published."""
import json
import pathlib

import numpy
import pytest
from safetensors.numpy import save_file

from weftlib import files_below, write_model

RANDOM = numpy.random.default_rng(11)


def array(*shape, dtype=numpy.float32):
    return RANDOM.normal(0, 1, shape).astype(dtype)


def save(directory, tensors, name="model.safetensors", files=()):
    directory.mkdir(exist_ok=True)
    save_file(tensors, directory / name, metadata={"format": "pt"})
    for path, data in files:
        (directory / path).write_text(data)
    return directory


def manifest(store, spec):
    return json.loads(store.weft("info", spec, "--json").stdout)["manifest"]


@pytest.fixture
def base():
    return {"emb.weight": array(300, 64), "h.0.weight": array(64, 64), "h.0.bias": array(64),
            "h.1.weight": array(64, 64, dtype=numpy.float16), "ids": numpy.arange(10)}


def same_as_whole(store, tmp_path, whole, arguments, files=()):
    """Publishes the whole under another name: one manifest, so one set of bytes; and exports it to be sure."""
    directory = save(tmp_path / "whole", whole, files=files)
    report = json.loads(store.weft("import", *arguments, "--json").stdout)
    store.publish(directory, name="whole")
    assert manifest(store, f"{report['model']}@{report['version']}") == manifest(store, "whole")
    store.weft("export", f"{report['model']}@{report['version']}", tmp_path / "out")
    assert files_below(tmp_path / "out") == files_below(directory)
    store.assert_sound()
    return report


def test_changed_tensors(store, tmp_path, base):
    store.publish(save(tmp_path / "base", base, files=[("config.json", "{}\n")]), name="base")
    changed = {"h.0.bias": array(64), "h.1.weight": array(64, 64, dtype=numpy.float16)}
    part = save(tmp_path / "part", changed, "part.safetensors") / "part.safetensors"
    report = same_as_whole(store, tmp_path, base | changed, [part, "--name", "child", "--inherit", "base"],
                           files=[("config.json", "{}\n")])
    assert report["parents"] == [{"model": "base", "version": 1, "declared": True, "same_tensors": 3,
                                  "same_bytes": sum(base[name].nbytes for name in ("emb.weight", "h.0.weight", "ids"))}]
    assert report["new_bytes"] < sum(value.nbytes for value in changed.values()) + 1024


def test_several_partial_files(store, tmp_path, base):
    store.publish(save(tmp_path / "base", base), name="base")
    one, other = {"h.0.bias": array(64)}, {"ids": numpy.arange(10) * 2}
    parts = [save(tmp_path / f"p{i}", tensors, f"p{i}.safetensors") / f"p{i}.safetensors"
             for i, tensors in enumerate((one, other))]
    same_as_whole(store, tmp_path, base | one | other, [*parts, "--name", "child", "--inherit", "base@1"])


def test_other_files_take_their_place(store, tmp_path, base):
    store.publish(save(tmp_path / "base", base, files=[("config.json", "{}\n")]), name="base")
    (tmp_path / "config.json").write_text('{"new": 1}\n')
    same_as_whole(store, tmp_path, base, [tmp_path / "config.json", "--name", "child", "--inherit", "base"],
                  files=[("config.json", '{"new": 1}\n')])


def test_nothing_of_the_base_is_read(store, tmp_path, base):
    store.publish(save(tmp_path / "base", base), name="base")
    aside = tmp_path / "aside"
    aside.mkdir()
    packs = list((store.path / "packs").glob("*.pack"))
    for pack in packs:
        pack.rename(aside / pack.name)
    part = save(tmp_path / "part", {"h.0.bias": array(64)}) / "model.safetensors"
    report = json.loads(store.weft("import", part, "--name", "child", "--inherit", "base", "--json").stdout)
    assert report["tensors"] == 5
    for pack in packs:
        (aside / pack.name).rename(pack)
    store.assert_sound()


def test_refused_without_add(store, tmp_path, base):
    store.publish(save(tmp_path / "base", base), name="base")
    before = store.state()
    cases = {"name": ({"extra": array(3)}, 'tensor "extra": expected a name of base@1'),
             "shape": ({"h.0.bias": array(65)}, "expected F32 [64] as in model.safetensors of base@1, got F32 [65]"),
             "type": ({"h.0.bias": array(64, dtype=numpy.float16)}, "got F16 [64]")}
    for what, (tensors, message) in cases.items():
        part = save(tmp_path / what, tensors) / "model.safetensors"
        done = store.weft("import", part, "--name", "child", "--inherit", "base", check=False)
        assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1
    assert store.state() == before
    done = store.weft("import", tmp_path / "name/model.safetensors", "--name", "child", "--add", check=False)
    assert done.returncode == 2


def test_added_and_reshaped(store, tmp_path, base):
    store.publish(save(tmp_path / "base", base), name="base")
    changed = {"extra.weight": array(7, 3), "h.0.bias": array(32), "h.0.weight": array(64, 64, dtype=numpy.float16),
               "flags": numpy.array([True, False])}
    part = save(tmp_path / "part", changed) / "model.safetensors"
    same_as_whole(store, tmp_path, base | changed, [part, "--name", "child", "--inherit", "base", "--add"])


def shard(directory, shards):
    """Shards and their index as transformers writes them."""
    directory.mkdir()
    weight_map = {}
    for i, tensors in enumerate(shards, 1):
        name = f"model-{i:05}-of-{len(shards):05}.safetensors"
        save(directory, tensors, name)
        weight_map |= dict.fromkeys(tensors, name)
    index = {"metadata": {"total_size": sum(t.nbytes for s in shards for t in s.values())}, "weight_map": weight_map}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")
    return directory


def test_sharded_base(store, tmp_path, base):
    items = list(base.items())
    first, second = dict(items[:2]), dict(items[2:])
    store.publish(shard(tmp_path / "base", [first, second]), name="base")
    changed = {"h.0.weight": array(64, 64), "ids": numpy.arange(10) + 5}
    part = save(tmp_path / "part", changed) / "model.safetensors"
    store.weft("import", part, "--name", "child", "--inherit", "base")
    whole = shard(tmp_path / "whole", [{k: changed.get(k, v) for k, v in s.items()} for s in (first, second)])
    store.publish(whole, name="whole")
    assert manifest(store, "child") == manifest(store, "whole")
    store.weft("export", "child", tmp_path / "out")
    assert files_below(tmp_path / "out") == files_below(whole)
    # A tensor more: in the shard of the partial file's name, with a new index.
    extra = {"extra": array(9)}
    more = shard(tmp_path / "more", [{k: changed.get(k, v) for k, v in first.items()},
                                     {k: changed.get(k, v) for k, v in second.items()} | extra])
    partial = save(tmp_path / "x", extra, "model-00002-of-00002.safetensors")
    refused = store.weft("import", partial, "--name", "child", "--inherit", "child", "--add", check=False)
    assert refused.returncode == 1 and "index" in refused.stderr
    index = pathlib.Path("model.safetensors.index.json")
    (partial / index).write_bytes((more / index).read_bytes())
    store.weft("import", partial, "--name", "child", "--inherit", "child", "--add")
    store.publish(more, name="more")
    assert manifest(store, "child") == manifest(store, "more")


def test_hostile_partials(store, tmp_path, base):
    store.publish(save(tmp_path / "base", base), name="base")
    before = store.state()
    broken = write_model(tmp_path / "broken", {}) / "model.safetensors"
    for data in (b"", b"\xff" * 64, (1 << 60).to_bytes(8, "little") + b"{}"):
        broken.write_bytes(data)
        assert store.weft("import", broken, "--name", "c", "--inherit", "base", check=False).returncode == 1
    for spec in ("nosuch", "base@9", "../base"):
        part = save(tmp_path / "part", {"h.0.bias": array(64)}) / "model.safetensors"
        assert store.weft("import", part, "--name", "c", "--inherit", spec, check=False).returncode == 1
    assert store.state() == before


def test_norms_agree_with_numpy(store, tmp_path, base):
    changed = base | {"emb.weight": base["emb.weight"] + array(300, 64) * numpy.float32(1e-3),
                      "h.1.weight": array(64, 64, dtype=numpy.float16), "ids": numpy.arange(10) + 1}
    changed["emb.weight"][0, 0] = numpy.inf
    store.publish(save(tmp_path / "a", base), name="m")
    store.publish(save(tmp_path / "b", changed), name="m")
    report = json.loads(store.weft("diff", "m@1", "m@2", "--norms", "--json").stdout)
    measured = {one["name"]: one["norms"] for one in report["tensors"] if "norms" in one}
    assert set(measured) == {"emb.weight", "h.1.weight"}
    for name, norms in measured.items():
        a, b = (x[name].astype(numpy.float64).ravel() for x in (base, changed))
        finite = numpy.isfinite(a) & numpy.isfinite(b)
        a, b = a[finite], b[finite]
        assert norms["before"] == pytest.approx(numpy.linalg.norm(a), rel=1e-12)
        assert norms["difference"] == pytest.approx(numpy.linalg.norm(b - a), rel=1e-12)
        assert norms["largest"] == numpy.abs(b - a).max()
        assert norms["not_finite"] == int((~finite).sum())
    assert "norms" not in store.weft("diff", "m@1", "m@2", "--json").stdout
