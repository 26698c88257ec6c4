#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>

#include "base/limits.h"
#include "model/arch/config.h"
#include "model/arch/layers.h"
#include "unit/model/models.h"
#include "weft/model/arch.h"

namespace weft {
namespace {

using testing::file_of;
using testing::Spec;

using Linear = std::pair<std::string, Shape>;

std::vector<Spec> with_bias(const std::vector<Linear>& layers) {
  std::vector<Spec> specs;
  for (const auto& [name, shape] : layers) {
    specs.push_back({name + ".weight", DType::f32, shape});
    specs.push_back({name + ".bias", DType::f32, {shape[0]}});
  }
  return specs;
}

std::vector<Spec> bert_tensors(const std::string& prefix, unsigned layers) {
  std::vector<Linear> all;
  std::vector<Spec> specs;
  for (const char* name : {"word_embeddings", "position_embeddings", "token_type_embeddings"})
    specs.push_back({prefix + "embeddings." + name + ".weight", DType::f32, {100, 8}});
  all.push_back({prefix + "embeddings.LayerNorm", {8}});
  for (unsigned i = 0; i < layers; ++i) {
    std::string block = prefix + "encoder.layer." + std::to_string(i) + ".";
    for (const char* name : {"query", "key", "value"}) all.push_back({block + "attention.self." + name, {8, 8}});
    all.push_back({block + "attention.output.dense", {8, 8}});
    all.push_back({block + "attention.output.LayerNorm", {8}});
    all.push_back({block + "intermediate.dense", {32, 8}});
    all.push_back({block + "output.dense", {8, 32}});
    all.push_back({block + "output.LayerNorm", {8}});
  }
  all.push_back({prefix + "pooler.dense", {8, 8}});
  for (Spec& spec : with_bias(all)) specs.push_back(std::move(spec));
  return specs;
}

std::vector<Spec> gguf_bert_tensors(unsigned layers) {
  std::vector<Spec> specs;
  for (const char* name : {"token_embd", "position_embd", "token_types"})
    specs.push_back({std::string(name) + ".weight", DType::f32, {100, 8}});
  std::vector<Linear> all = {{"token_embd_norm", {8}}};
  for (unsigned i = 0; i < layers; ++i) {
    std::string block = "blk." + std::to_string(i) + ".";
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) all.push_back({block + name, {8, 8}});
    all.push_back({block + "attn_output_norm", {8}});
    all.push_back({block + "ffn_up", {32, 8}});
    all.push_back({block + "ffn_down", {8, 32}});
    all.push_back({block + "layer_output_norm", {8}});
  }
  for (Spec& spec : with_bias(all)) specs.push_back(std::move(spec));
  return specs;
}

constexpr const char* kBertConfig = R"({"model_type": "bert", "num_attention_heads": 2, "hidden_act": "gelu"})";

Manifest with_config(std::vector<File> files) {
  files.push_back(testing::opaque("config.json"));
  std::ranges::sort(files, {}, &File::path);
  return {std::move(files), {}};
}

Architecture arch(const Manifest& manifest, const std::string& config) {
  auto made = architecture_of(manifest, [&](const File&) { return Result<std::string>(config); });
  REQUIRE(made.ok());
  return std::move(*made);
}

ArchGraph graph(Manifest manifest, const std::string& config) {
  manifest.architecture = arch(manifest, config);
  REQUIRE(encode_manifest(manifest).ok());
  return graph_of(manifest);
}

ArchGraph bert_graph(const std::string& prefix, unsigned layers, const std::string& config = kBertConfig) {
  return graph(with_config({file_of("model.safetensors", bert_tensors(prefix, layers))}), config);
}

std::set<Digest> id_set(const ArchGraph& graph) {
  auto ids = vertex_ids(graph);
  return {ids.begin(), ids.end()};
}

std::size_t shared(const ArchGraph& a, const ArchGraph& b) {
  return common_prefix(vertex_ids(a), vertex_ids(b)).size();
}

const GraphVertex& vertex(const ArchGraph& graph, std::string_view name) {
  auto at = std::ranges::find(graph.vertices, name, &GraphVertex::name);
  REQUIRE(at != graph.vertices.end());
  return *at;
}

std::string input_names(const ArchGraph& graph, std::string_view name) {
  std::string names;
  for (std::uint32_t input : vertex(graph, name).inputs)
    names += (names.empty() ? "" : " ") +
             (graph.vertices[input].name.empty() ? graph.vertices[input].kind : graph.vertices[input].name);
  return names;
}

TEST_CASE("a BERT has its edges, whatever its prefix") {
  ArchGraph graph = bert_graph("", 2);
  CHECK(graph.family == "bert");
  CHECK(graph.vertices.size() == 4 + 2 * 8 + 1);
  CHECK(input_names(graph, "embeddings.LayerNorm") ==
        "embeddings.word_embeddings embeddings.position_embeddings embeddings.token_type_embeddings");
  CHECK(vertex(graph, "embeddings.LayerNorm").summed);
  CHECK(input_names(graph, "encoder.layer.0.attention.self.key") == "embeddings.LayerNorm");
  CHECK(input_names(graph, "encoder.layer.1.attention.output.dense") ==
        "encoder.layer.1.attention.self.query encoder.layer.1.attention.self.key encoder.layer.1.attention.self.value");
  CHECK(input_names(graph, "encoder.layer.1.output.LayerNorm") ==
        "encoder.layer.1.output.dense encoder.layer.1.attention.output.LayerNorm");
  CHECK(input_names(graph, "pooler.dense") == "encoder.layer.1.output.LayerNorm");
  CHECK(vertex_ids(graph) == vertex_ids(bert_graph("bert.", 2)));
}

TEST_CASE("GGUF gives the same graph as safetensors") {
  File file = file_of("m.gguf", gguf_bert_tensors(2), "gguf");
  file.metadata = {{"general.architecture", "bert"},
                   {"bert.attention.head_count", "2"},
                   {"bert.attention.layer_norm_epsilon", "9.9999999600419720e-13"}};
  ArchGraph gguf = graph({{file}, {}}, "");
  CHECK(gguf.family == "bert");
  CHECK(shared(gguf, bert_graph("", 2)) == gguf.vertices.size());
}

std::vector<Spec> weights(const std::vector<Linear>& layers) {
  std::vector<Spec> specs;
  for (const auto& [name, shape] : layers) specs.push_back({name + ".weight", DType::f32, shape});
  return specs;
}

ArchGraph gguf_graph(const std::vector<Spec>& specs, const std::vector<std::pair<std::string, std::string>>& metadata) {
  File file = file_of("m.gguf", specs, "gguf");
  file.metadata = metadata;
  return graph({{file}, {}}, "");
}

TEST_CASE("a Llama as GGUF") {
  std::vector<Linear> all = {{"token_embd", {100, 8}}};
  for (const std::string block : {"blk.0.", "blk.1."})
    for (const char* name :
         {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"}) {
      const std::string_view which = name;
      const bool norm = which.ends_with("norm");
      all.push_back({block + name, norm                       ? Shape{8}
                                   : which == "ffn_down"      ? Shape{8, 32}
                                   : which.starts_with("ffn") ? Shape{32, 8}
                                                              : Shape{8, 8}});
    }
  all.push_back({"output_norm", {8}});
  all.push_back({"output", {100, 8}});
  const ArchGraph made = gguf_graph(weights(all), {{"general.architecture", "llama"},
                                                   {"llama.attention.head_count", "2"},
                                                   {"llama.attention.layer_norm_rms_epsilon", "1e-05"}});
  CHECK(made.family == "llama");
  CHECK(made.vertices.size() == 1 + 2 * 11 + 2);
  CHECK(input_names(made, "blk.0.attn_q") == "blk.0.attn_norm");
  CHECK(input_names(made, "blk.1.attn_output") == "blk.1.attn_q blk.1.attn_k blk.1.attn_v");
  CHECK(input_names(made, "blk.1.ffn_down") == "blk.1.ffn_gate blk.1.ffn_up");
  CHECK(input_names(made, "blk.1.ffn_norm") == "add");
  CHECK(input_names(made, "output") == "output_norm");
  // The head count changes all ids from the first attention on.
  const ArchGraph heads = gguf_graph(weights(all), {{"general.architecture", "llama"},
                                                    {"llama.attention.head_count", "4"},
                                                    {"llama.attention.layer_norm_rms_epsilon", "1e-05"}});
  CHECK(shared(made, heads) == 1 + 4);
}

TEST_CASE("a GPT-2 as GGUF") {
  std::vector<Spec> specs = weights({{"token_embd", {50, 4}}, {"position_embd", {8, 4}}});
  std::vector<Linear> all;
  for (const std::string block : {"blk.0.", "blk.1."})
    for (const Linear& layer : std::vector<Linear>{{"attn_norm", {4}},
                                                   {"attn_qkv", {12, 4}},
                                                   {"attn_output", {4, 4}},
                                                   {"ffn_norm", {4}},
                                                   {"ffn_up", {16, 4}},
                                                   {"ffn_down", {4, 16}}})
      all.push_back({block + layer.first, layer.second});
  all.push_back({"output_norm", {4}});
  for (const Spec& spec : with_bias(all)) specs.push_back(spec);
  specs.push_back({"output.weight", DType::f32, {50, 4}});
  const ArchGraph made = gguf_graph(specs, {{"general.architecture", "gpt2"}, {"gpt2.attention.head_count", "2"}});
  CHECK(made.family == "gpt2");
  CHECK(made.vertices.size() == 3 + 2 * 8 + 2);
  CHECK(input_names(made, "blk.0.attn_norm") == "add");
  CHECK(input_names(made, "blk.1.attn_output") == "blk.1.attn_qkv");
  CHECK(vertex(made, "blk.0.ffn_up").kind == "linear");
  CHECK(input_names(made, "output") == "output_norm");
}

TEST_CASE("a T5 as GGUF") {
  std::vector<Linear> all = {{"token_embd", {100, 8}}};
  for (const std::string block : {"enc.blk.0.", "enc.blk.1.", "dec.blk.0.", "dec.blk.1."}) {
    const bool decoder = block.starts_with("dec");
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_o"}) {
      all.push_back({block + name, {8, 8}});
      if (decoder) all.push_back({block + "cross_" + name, {8, 8}});
    }
    all.push_back({block + "attn_norm", {8}});
    if (decoder) all.push_back({block + "cross_attn_norm", {8}});
    all.push_back({block + "ffn_norm", {8}});
    all.push_back({block + "ffn_up", {32, 8}});
    all.push_back({block + "ffn_down", {8, 32}});
    if (block.ends_with(".0.")) all.push_back({block + "attn_rel_b", {32, 2}});
  }
  for (const char* end : {"enc.output_norm", "dec.output_norm"}) all.push_back({end, {8}});
  all.push_back({"output", {100, 8}});
  const ArchGraph made = gguf_graph(weights(all), {{"general.architecture", "t5"}, {"t5.attention.head_count", "2"}});
  CHECK(made.family == "t5");
  CHECK(made.vertices.size() == 1 + (2 * 10 + 1) + 1 + (2 * 16 + 1) + 2);
  CHECK(input_names(made, "enc.blk.1.attn_o") ==
        "enc.blk.1.attn_q enc.blk.1.attn_k enc.blk.1.attn_v enc.blk.0.attn_rel_b");
  CHECK(input_names(made, "dec.blk.0.cross_attn_k") == "enc.output_norm");
  CHECK(input_names(made, "dec.blk.0.attn_norm") == "token_embd");
  CHECK(input_names(made, "dec.blk.1.ffn_down") == "dec.blk.1.ffn_up");
  CHECK(input_names(made, "output") == "dec.output_norm");
}

TEST_CASE("a changed layer changes the ids of itself and its successors only") {
  Manifest base = with_config({file_of("model.safetensors", bert_tensors("", 3))});
  ArchGraph before = graph(base, kBertConfig);
  for (const char* changed : {"embeddings.position_embeddings", "encoder.layer.1.attention.self.value",
                              "encoder.layer.2.output.dense", "pooler.dense"}) {
    CAPTURE(changed);
    ArchGraph after = before;
    std::size_t at = static_cast<std::size_t>(&vertex(before, changed) - before.vertices.data());
    after.vertices[at].tensors[0].dtype = DType::bf16;
    std::vector<bool> downstream(before.vertices.size());
    downstream[at] = true;
    for (std::size_t i = at + 1; i < before.vertices.size(); ++i)
      downstream[i] =
          std::ranges::any_of(before.vertices[i].inputs, [&](std::uint32_t input) { return downstream[input]; });
    auto a = vertex_ids(before);
    auto b = vertex_ids(after);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK((a[i] == b[i]) == !downstream[i]);
  }
}

TEST_CASE("ids depend only on the parts of the config that affect the layers") {
  ArchGraph base = bert_graph("", 1);
  CHECK(shared(base, bert_graph("", 1, R"({"model_type": "bert", "num_attention_heads": 2, "vocab_size": 1})")) ==
        base.vertices.size());
  ArchGraph heads = bert_graph("", 1, R"({"model_type": "bert", "num_attention_heads": 4})");
  CHECK(shared(base, heads) == 4 + 3);  // all layers before query, key and value
  ArchGraph act = bert_graph("", 1, R"({"model_type": "bert", "num_attention_heads": 2, "hidden_act": "relu"})");
  CHECK(shared(base, act) == 4 + 6);
}

TEST_CASE("ids of vertices are stable") {
  ArchGraph chain{"sequence",
                  {{"linear", "a", {{"act", "relu"}}, {{"weight", "a.weight", DType::f32, {2, 3}}}, {}, false},
                   {"linear", "b", {}, {}, {0}, false}}};
  auto ids = vertex_ids(chain);
  CHECK(to_hex(ids[0]) == "5985781891e1924fd28f85d7db0b113d36e1728aa3b0834c76b7365d57bf2017");
  CHECK(ids[0] != ids[1]);
}

TEST_CASE("without a config, or with another's, layers stand in the order of their numbers") {
  std::vector<Spec> specs = with_bias({{"net.10", {4, 4}}, {"net.9", {4, 4}}, {"net.1", {4, 4}}});
  Manifest manifest = with_config({file_of("model.safetensors", specs)});
  for (const char* config : {"", "no json", "[1]", "{\"model_type\": 3}", "{\"model_type\": \"unheard\"}",
                             "{\"model_type\": \"bert\"}", "{\"model_type\": {\"a\": [[[]]]}}"}) {
    CAPTURE(config);
    ArchGraph made = graph(manifest, config);
    CHECK(made.family == "sequence");
    REQUIRE(made.vertices.size() == 3);
    CHECK(made.vertices[0].name == "net.1");
    CHECK(made.vertices[2].name == "net.10");
    CHECK(made.vertices[2].inputs == std::vector<std::uint32_t>{1});
    CHECK(made.vertices[1].kind == "linear");
  }
  CHECK(graph(manifest, R"({"model_type": "mlp", "hidden_act": "relu"})").family == "mlp");
}

TEST_CASE("a config that is too large is not read") {
  Manifest manifest = with_config({file_of("model.safetensors", bert_tensors("", 1))});
  REQUIRE(manifest.files[0].path == "config.json");
  manifest.files[0] = testing::opaque("config.json", limits::kConfigMax + 1);
  CHECK(graph(manifest, kBertConfig).family == "sequence");
}

TEST_CASE("a layer that the table does not know") {
  auto specs = bert_tensors("", 2);
  specs.push_back({"my_head.weight", DType::f32, {2, 8}});
  ArchGraph head = graph(with_config({file_of("model.safetensors", specs)}), kBertConfig);
  CHECK(head.family == "bert");
  CHECK(shared(head, bert_graph("", 2)) == head.vertices.size() - 1);
  specs.back() = {"encoder.layer.1.attention.self.query.lora_A.weight", DType::f32, {2, 8}};
  CHECK(graph(with_config({file_of("model.safetensors", specs)}), kBertConfig).family == "sequence");
  auto less = bert_tensors("", 2);
  std::erase_if(less, [](const Spec& spec) { return spec.name.starts_with("encoder.layer.1.output.dense"); });
  CHECK(graph(with_config({file_of("model.safetensors", less)}), kBertConfig).family == "sequence");
}

TEST_CASE("shards are one model, several models are several") {
  auto specs = bert_tensors("", 2);
  std::vector<Spec> first(specs.begin(), specs.begin() + 11);
  std::vector<Spec> second(specs.begin() + 11, specs.end());
  ArchGraph whole = bert_graph("", 2);
  ArchGraph sharded = graph(with_config({file_of("model-00001-of-00002.safetensors", first),
                                         file_of("model-00002-of-00002.safetensors", second)}),
                            kBertConfig);
  CHECK(vertex_ids(sharded) == vertex_ids(whole));
  ArchGraph both =
      graph(with_config({file_of("a/model.safetensors", specs), file_of("b/model.safetensors", specs)}), kBertConfig);
  CHECK(both.family == "bert+bert");
  CHECK(both.vertices.size() == 2 * whole.vertices.size());
  CHECK(id_set(both) == id_set(whole));
  CHECK(shared(both, whole) == whole.vertices.size());
}

// Returns the model with two tensors of an optimizer for each of its own.
std::vector<Spec> with_optimizer(std::vector<Spec> model, const std::string& subtree, const std::string& optimizer) {
  std::vector<Spec> all;
  for (const Spec& spec : model) {
    all.push_back({subtree + spec.name, spec.dtype, spec.shape});
    for (const char* moment : {"exp_avg", "exp_avg_sq"})
      all.push_back({optimizer + ".state." + spec.name + "." + moment, spec.dtype, spec.shape});
  }
  return all;
}

TEST_CASE("the architecture of a checkpoint is that of the model, without its optimizer") {
  const ArchGraph whole = bert_graph("", 2);
  for (const auto& row :
       std::initializer_list<std::array<const char*, 3>>{{"state_dict.", "optimizer_states", "torch zip"},
                                                         {"model.", "optim", "dcp"},
                                                         {"module.", "optimizer", "torch legacy"},
                                                         {"model_weights.", "optimizer_weights", "hdf5"},
                                                         {"", "optimizer", "keras"}}) {
    const auto& [subtree, optimizer, format] = row;
    CAPTURE(row[0]);
    const auto specs = with_optimizer(bert_tensors("", 2), subtree, optimizer);
    const ArchGraph made = graph(with_config({file_of("checkpoint", specs, format)}), kBertConfig);
    CHECK(made.family == "bert");
    CHECK(vertex_ids(made) == vertex_ids(whole));
    CHECK(vertex(made, std::string(subtree) + "pooler.dense").tensors.at(1).name ==
          std::string(subtree) + "pooler.dense.weight");
  }
  // Without a table, the layers are those of the model in their order.
  const auto chain = with_optimizer(with_bias({{"b.0", {4, 4}}, {"b.1", {4, 4}}}), "state_dict.", "a");
  const ArchGraph made = graph(with_config({file_of("m.ckpt", chain, "torch zip")}), "");
  REQUIRE(made.vertices.size() == 2);
  CHECK(made.vertices[1].name == "state_dict.b.1");
}

TEST_CASE("the state of a training beside a known model is no part of the architecture") {
  const File model = file_of("model.safetensors", bert_tensors("", 2));
  const File optimizer = file_of("optimizer.pt", {{"state.0.exp_avg", DType::f32, {4, 4}}}, "torch zip");
  const File random = file_of("rng_state.pth", {{"cpu", DType::u8, {5056}}}, "torch zip");
  const ArchGraph made = graph(with_config({model, optimizer, random}), kBertConfig);
  CHECK(made.family == "bert");
  CHECK(vertex_ids(made) == vertex_ids(bert_graph("", 2)));
  // Another directory has a model of its own, and beside unknown models each file counts.
  CHECK(graph(with_config({file_of("2_Dense/model.safetensors", with_bias({{"linear", {4, 4}}})), model}), kBertConfig)
            .family == "bert+sequence");
  CHECK(graph(with_config({file_of("a.pt", with_bias({{"a", {4, 4}}}), "torch zip"), random}), "").vertices.size() ==
        2);
}

TEST_CASE("an output layer that is tied to the embedding") {
  std::vector<Spec> specs = {{"transformer.wte.weight", DType::f32, {50, 4}},
                             {"transformer.wpe.weight", DType::f32, {8, 4}}};
  for (const Spec& spec : with_bias({{"transformer.h.0.ln_1", {4}},
                                     {"transformer.h.0.attn.c_attn", {4, 12}},
                                     {"transformer.h.0.attn.c_proj", {4, 4}},
                                     {"transformer.h.0.ln_2", {4}},
                                     {"transformer.h.0.mlp.c_fc", {4, 16}},
                                     {"transformer.h.0.mlp.c_proj", {16, 4}},
                                     {"transformer.ln_f", {4}}}))
    specs.push_back(spec);
  specs.push_back({"transformer.h.0.attn.bias", DType::u8, {1, 1, 8, 8}});
  Manifest manifest = with_config({file_of("model.safetensors", specs)});
  ArchGraph with_head = graph(manifest, R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]})");
  CHECK(with_head.family == "gpt2");
  CHECK(vertex(with_head, "lm_head").tensors[0].name == "transformer.wte.weight");
  CHECK(input_names(with_head, "lm_head") == "transformer.ln_f");
  CHECK(input_names(with_head, "transformer.h.0.ln_2") == "add");
  CHECK(vertex(with_head, "transformer.h.0.mlp.c_fc").kind == "linear_t");
  ArchGraph without = graph(manifest, R"({"model_type": "gpt2", "architectures": ["GPT2Model"]})");
  CHECK(without.vertices.size() + 1 == with_head.vertices.size());
  CHECK(shared(with_head, without) == without.vertices.size());
}

TEST_CASE("equal siblings count as often as both have them") {
  GraphVertex root{"embedding", "", {}, {}, {}, false};
  GraphVertex twin{"linear", "", {}, {}, {0}, false};
  ArchGraph two{"sequence", {root, twin, twin}};
  ArchGraph three{"sequence", {root, twin, twin, twin}};
  CHECK(shared(two, three) == 3);
  CHECK(shared(three, two) == 3);
  CHECK(shared(three, three) == 4);
  CHECK(graph_id(vertex_ids(two)) != graph_id(vertex_ids(three)));
}

TEST_CASE("the order of inputs matters unless they are summed") {
  GraphVertex a{"a", "", {}, {}, {}, false};
  GraphVertex b{"b", "", {}, {}, {}, false};
  auto joined = [&](std::vector<std::uint32_t> inputs, bool summed) {
    return vertex_ids({"sequence", {a, b, {"join", "", {}, {}, std::move(inputs), summed}}})[2];
  };
  CHECK(joined({0, 1}, false) != joined({1, 0}, false));
  CHECK(joined({0, 1}, true) == joined({1, 0}, true));
  CHECK(joined({0, 1}, true) != joined({0, 1}, false));
}

TEST_CASE("a graph comes back from its JSON") {
  ArchGraph graph = bert_graph("", 2);
  auto again = parse_graph_json("g", graph_json(graph));
  REQUIRE(again.ok());
  CHECK(*again == graph);
  CHECK(graph_dot(graph).starts_with("digraph"));
}

TEST_CASE("invalid graph JSON is refused") {
  for (const char* text :
       {"", "3", "[]", "{\"vertices\": {}}", "{\"vertices\": [1]}", "{\"vertices\": [{}]}",
        R"({"vertices": [{"kind": "a", "inputs": [0]}]})", R"({"vertices": [{"kind": "a", "inputs": [-1]}]})",
        R"({"vertices": [{"kind": "a", "tensors": [{"dtype": "X"}]}]})", R"({"vertices": [{"kind": 1}]})",
        R"({"vertices": [{"kind": "a", "params": {"p": "1", "p": "2"}}]})",
        R"({"vertices": [{"kind": "a", "tensors": [{"role": "w"}, {"role": "w"}]}]})"}) {
    CAPTURE(text);
    auto parsed = parse_graph_json("here", text);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().code == Errc::invalid);
    CHECK(parsed.error().message.starts_with("here: "));
  }
  CHECK(parse_graph_json("g", R"({"x": [{"y": [1.5, null]}], "vertices": [{"kind": "a", "note": {}}]})").ok());
}

TEST_CASE("an architecture that breaks its promises is refused") {
  Manifest manifest = with_config({file_of("model.safetensors", bert_tensors("", 1))});
  manifest.architecture = arch(manifest, kBertConfig);
  auto refused = [&](const std::function<void(Architecture&)>& breaks) {
    Manifest broken = manifest;
    breaks(broken.architecture);
    auto encoded = encode_manifest(broken);
    REQUIRE_FALSE(encoded.ok());
    CHECK(encoded.error().code == Errc::invalid);
  };
  refused([](Architecture& a) { a.layers[0].inputs = {0}; });
  refused([](Architecture& a) { a.layers[5].inputs = {9}; });
  refused([](Architecture& a) { a.layers[0].kind.clear(); });
  refused([](Architecture& a) { a.layers[0].kind.assign(limits::kArchTextMax + 1, 'x'); });
  refused([](Architecture& a) { a.layers[0].tensors[0].second = 10'000; });
  refused([](Architecture& a) { a.layers[0].tensors.push_back(a.layers[0].tensors[0]); });
  refused([](Architecture& a) { a.layers[0].summed = true; });
  refused([](Architecture& a) { a.layers.clear(); });
  refused([](Architecture& a) { a.layers[0].params = {{"b", ""}, {"a", ""}}; });
  refused([](Architecture& a) {
    for (unsigned i = 0; i <= limits::kArchTensorUsesMax; ++i) a.layers.push_back(a.layers[0]);
  });
}

TEST_CASE("numbers in names count as numbers") {
  CHECK(numeric_less("a.9.b", "a.10.b"));
  CHECK_FALSE(numeric_less("a.10.b", "a.9.b"));
  CHECK(numeric_less("a.99999999999999999998", "a.99999999999999999999"));
  CHECK(numeric_less("a.1", "a.01") != numeric_less("a.01", "a.1"));
  CHECK(numeric_less("a", "a.0"));
  CHECK_FALSE(numeric_less("a", "a"));
}

TEST_CASE("a config is flat facts") {
  ArchConfig config = read_config(
      R"({"a": 1, "b": {"c": 1e-5, "d": [1, {"e": 2}]}, "eps": 9.999999974752427e-06, "t": true, "n": null,
          "architectures": ["X", "Y"], "a": 2, "big": 500000.0})");
  CHECK(
      config ==
      ArchConfig{
          {"a", "2"}, {"b.c", "1e-05"}, {"eps", "1e-05"}, {"t", "true"}, {"architectures", "X,Y"}, {"big", "500000"}});
  std::string wide = "{";
  for (std::size_t i = 0; i < limits::kConfigEntriesMax + 10; ++i)
    wide += (i == 0 ? "" : ",") + ("\"" + std::to_string(i) + "\":1");
  CHECK(read_config(wide + "}").size() == limits::kConfigEntriesMax);
}

}  // namespace
}  // namespace weft
