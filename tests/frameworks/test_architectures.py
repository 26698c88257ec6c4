"""Architectures of models that transformers makes and saves: their graphs, matches, patterns."""
import json
import os

import pytest
import torch
import transformers
import weftlib
from weftlib import Store

SMALL = {
    "bert": (transformers.BertConfig, transformers.BertModel,
             {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
              "vocab_size": 50, "max_position_embeddings": 16}),
    "gpt2": (transformers.GPT2Config, transformers.GPT2LMHeadModel,
             {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 50, "n_positions": 16}),
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM,
              {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
               "intermediate_size": 32, "vocab_size": 50}),
    "t5": (transformers.T5Config, transformers.T5ForConditionalGeneration,
           {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 50}),
}
# Embeddings and their norm or sum, blocks, what follows; sums of two count.
VERTICES = {"bert": 4 + 2 * 8 + 1, "gpt2": 3 + 2 * 8 + 2, "llama": 1 + 2 * 11 + 2, "t5": 1 + 2 * 10 + 1 + 1 + 2 * 16 + 1 + 2}


def saved(directory, family, model=None, **changes):
    config, default_model, facts = SMALL[family]
    torch.manual_seed(1)
    (model or default_model)(config(**(facts | changes))).save_pretrained(directory)
    return directory


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    area = tmp_path_factory.mktemp("architectures")
    return {family: saved(area / family, family) for family in SMALL}


@pytest.fixture(scope="module")
def zoo(tmp_path_factory, models):
    store = Store(tmp_path_factory.mktemp("zoo") / "store")
    for family, directory in models.items():
        store.publish(directory, name=family, metric=f"accuracy=0.{len(family)}")
    store.publish(weftlib.real_model(), name="org/minilm")
    return store


def graph_of(store, spec):
    return json.loads(store.weft("info", spec, "--graph", "json").stdout)


@pytest.mark.parametrize("family", SMALL)
def test_family_is_known(zoo, family):
    """Every layer has its place in the table: nothing is left over, nothing falls back to a sequence."""
    graph = graph_of(zoo, family)
    assert graph["family"] == family
    assert len(graph["vertices"]) == VERTICES[family], [vertex["name"] for vertex in graph["vertices"]]
    used = {tensor["name"] for vertex in graph["vertices"] for tensor in vertex["tensors"]}
    tensors = {tensor["name"] for tensor in zoo.json("info", family)["tensors"]}
    assert used == tensors
    facts = zoo.json("info", family)["architecture"]
    assert (facts["family"], facts["id"], facts["layers"]) == (family, graph["id"], len(graph["vertices"]))


def test_real_model_is_a_bert(zoo):
    graph = graph_of(zoo, "org/minilm")
    assert graph["family"] == "bert"
    assert len(graph["vertices"]) == 4 + 6 * 8 + 1


@pytest.mark.parametrize("family", SMALL)
def test_match_finds_a_model_with_its_last_block_changed(zoo, tmp_path, family):
    """An unpublished child with one more block shares all of its parent's blocks."""
    more = {"bert": "num_hidden_layers", "gpt2": "n_layer", "llama": "num_hidden_layers", "t5": "num_decoder_layers"}
    child = saved(tmp_path / "child", family, **{more[family]: 3})
    done = zoo.json("match", str(child), "--top", "1")
    best = done["matches"][0]
    assert (best["model"], best["version"]) == (family, 1)
    # The first norm of the new block is what the parent's last norm is: a layer is what it does, not its name.
    new = {"bert": 0, "gpt2": 1, "llama": 1, "t5": 1}[family]
    after_blocks = {"bert": 1, "gpt2": 2, "llama": 2, "t5": 2}[family]
    assert best["shared"] == VERTICES[family] - after_blocks + new
    others = {tensor["name"].rpartition(".")[0] for tensor in best["tensors"] if tensor["name"] != tensor["from"]}
    assert best["tensors"] and len(others) == new
    assert best["tensor_bytes"] == sum(tensor["bytes"] for tensor in best["tensors"])


def test_match_of_a_version_leaves_that_version_out(zoo):
    assert "bert" not in [match["model"] for match in zoo.json("match", "bert@1")["matches"]]


def test_match_of_a_graph_that_info_printed(zoo, tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(zoo.weft("info", "llama", "--graph", "json").stdout)
    best = zoo.json("match", str(path))["matches"][0]
    assert (best["model"], best["shared"]) == ("llama", VERTICES["llama"])


def test_match_of_a_graph_that_is_no_file(zoo, tmp_path):
    """It does not wait for somebody to write into a pipe."""
    path = tmp_path / "graph.json"
    os.mkfifo(path)
    done = zoo.weft("match", str(path), check=False)
    assert done.returncode == 1 and done.stderr == f"weft: {path}: expected a regular file, got a fifo\n"


def test_match_by_metric(tmp_path, models):
    store = Store(tmp_path / "store")
    for name, accuracy, loss in (("a", 0.5, 0.1), ("b", 0.9, 0.3), ("c", 0.7, 0.2)):
        changed = saved(tmp_path / name, "bert", max_position_embeddings=16)
        (changed / "notes.txt").write_text(name)
        store.publish(changed, name=name, metric=[f"accuracy={accuracy}", f"loss={loss}"])
    names = lambda *by: [match["model"] for match in store.json("match", str(models["bert"]), *by)["matches"]]
    assert names() == ["a", "b", "c"]
    assert names("--by", "prefix,accuracy") == ["b", "c", "a"]
    assert names("--by", "prefix,-loss") == ["a", "c", "b"]
    assert names("--by", "prefix,accuracy", "--top", "1") == ["b"]
    store.weft("rm", "b@1")
    assert names("--by", "prefix,accuracy") == ["c", "a"]
    store.weft("gc")
    store.assert_sound()
    before = names()
    store.weft("fsck", "--rebuild")
    assert names() == before
    store.assert_sound()


def test_a_prefix_of_names_changes_nothing(tmp_path):
    """BertModel and BertForMaskedLM name their layers differently and share them all but the heads."""
    store = Store(tmp_path / "store")
    store.publish(saved(tmp_path / "plain", "bert"), name="plain")
    masked = saved(tmp_path / "masked", "bert", model=transformers.BertForMaskedLM)
    best = store.json("match", str(masked))["matches"][0]
    assert best["shared"] == VERTICES["bert"] - 1
    assert {tensor["name"] for tensor in best["tensors"]} == {"bert." + tensor["from"] for tensor in best["tensors"]}


def test_sharded_is_the_same(tmp_path):
    store = Store(tmp_path / "store")
    config, model, facts = SMALL["llama"]
    torch.manual_seed(1)
    made = model(config(**facts))
    made.save_pretrained(tmp_path / "one")
    made.save_pretrained(tmp_path / "many", max_shard_size="4KB")
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 2
    store.publish(tmp_path / "one", name="one")
    store.publish(tmp_path / "many", name="many")
    assert graph_of(store, "one")["id"] == graph_of(store, "many")["id"]


def test_layer_json_and_dot(zoo, tmp_path):
    with weftlib.Mount(zoo, tmp_path / "mnt") as mount:
        layer = json.loads((mount.layers("bert", 1) / "encoder/layer/0/attention/output/dense/layer.json").read_text())
    graph = graph_of(zoo, "bert")
    vertex = graph["vertices"][layer["vertex"]["position"]]
    assert layer["kind"] == vertex["kind"] == "linear"
    assert layer["vertex"]["id"] == vertex["id"]
    assert layer["params"] == {"heads": "2"}
    assert [graph["vertices"][i]["name"].split(".")[-1] for i in layer["vertex"]["inputs"]] == ["query", "key", "value"]
    dot = zoo.weft("info", "bert", "--graph", "dot").stdout
    assert dot.startswith("digraph") and dot.count("->") == sum(len(vertex["inputs"]) for vertex in graph["vertices"])


@pytest.mark.parametrize("query, found", [
    ("family = gpt2", ["gpt2@1"]),
    ("kind = rms_norm", ["llama@1", "t5@1"]),
    ("has linear -> linear{act=silu} -> add", ["llama@1"]),
    ("has linear[32,16] -> linear[16,32] -> layer_norm", ["bert@1"]),
    ("has embedding@*relative* --> rms_norm", ["t5@1"]),
    ("parameters > 10M or family = t5", ["org/minilm@1", "t5@1"]),
    ("metric.accuracy >= 0.5", ["llama@1"]),
    ("model ~ 'org/*' and tensor ~ *.bias and dtype = F32", ["org/minilm@1"]),
    ("not (layers < 1000)", []),
])
def test_find(zoo, query, found):
    assert zoo.weft("find", query).stdout.split() == found
    assert [f"{version['model']}@{version['version']}" for version in zoo.json("find", query)["versions"]] == found
    assert zoo.weft("find", query, "-0").stdout.split("\0")[:-1] == found


def test_find_points_at_the_mistake(zoo):
    done = zoo.weft("find", "family = bert and layers > many", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "column 28: " in done.stderr and "\"many\"" in done.stderr
    done = zoo.weft("find", "model = é世 and layers > many", check=False)
    assert "column 25: " in done.stderr  # as one counts them on the screen


def test_adapter_is_a_sequence(tmp_path):
    """LoRA: no model_type of its own; layers in the order of their numbers."""
    weftlib.write_model(tmp_path / "adapter", {
        f"base_model.model.layers.{i}.self_attn.q_proj.lora_{side}.weight":
            ("F32", shape, weftlib.random_bytes(4 * 4 * 16, f"{i}{side}"))
        for i in (10, 9) for side, shape in (("A", [4, 16]), ("B", [16, 4]))})
    (tmp_path / "adapter/config.json").unlink()
    (tmp_path / "adapter/adapter_config.json").write_text('{"peft_type": "LORA", "r": 4}')
    store = Store(tmp_path / "store")
    store.publish(tmp_path / "adapter", name="adapter")
    graph = graph_of(store, "adapter")
    assert graph["family"] == "sequence"
    assert [vertex["name"].split(".")[3] for vertex in graph["vertices"]] == ["9", "9", "10", "10"]
