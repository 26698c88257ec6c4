#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "base/json.h"
#include "base/limits.h"
#include "unit/model/models.h"
#include "weft/model/coverage.h"

namespace weft {
namespace {

using testing::file_of;
using testing::opaque;
using testing::tree_of;

class Accept final : public JsonHandler {
  Status begin_object() override { return {}; }
  Status end_object() override { return {}; }
  Status begin_array() override { return {}; }
  Status end_array() override { return {}; }
  Status key(std::string_view) override { return {}; }
  Status text(std::string_view) override { return {}; }
  Status number(std::uint64_t) override { return {}; }
  Status negative(std::int64_t) override { return {}; }
  Status real(double) override { return {}; }
  Status boolean(bool) override { return {}; }
  Status null() override { return {}; }
};

void check_json(const std::string& text) {
  Accept accept;
  CHECK(parse_json(text, limits::kJsonDepthMax, accept).ok());
  CHECK(text.ends_with("}\n"));
}

Manifest sample() {
  Manifest manifest{{opaque("config.json"), file_of("m.safetensors", {{"a.b.x"}, {"a.y", DType::bf16, {4}}, {"top"}})}};
  manifest.files[1].tensors.push_back({"a.none", DType::f32, {0}, kNoExtent, ""});
  manifest.files[1].metadata = {{"format", "pt"}};
  manifest.files[1].sha256 = Digest{{0xfe}};
  for (Extent& extent : manifest.files[1].extents) extent.id.root = Digest{{0x0c}};
  manifest.files[1].extents[1].id.root.bytes[0] = 0xab;
  return manifest;
}

TEST_CASE("info.json") {
  VersionRow version;
  version.model_name = "org/m";
  version.number = 3;
  version.time_ns = 1'700'000'000'123'456'789;
  version.message = "say \"hi\"\n";
  version.metrics = {{"loss", "-1.5e-3"}, {"note", "01"}, {"bad", "1."}};
  version.parents = {{"base", 2}, {"org/other", 1, false, 3, 400}};
  version.elsewhere = {"far/away"};
  version.publisher = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
  version.by = {"alice", "node1"};
  version.source.endpoint = "https://hub.example";
  version.source.commit = std::string(kCommitDigits, 'e');
  version.source.listed_ns = version.time_ns;
  std::string text = render_info_json(version, sample());
  check_json(text);
  CHECK(text == R"({
  "model": "org/m",
  "version": 3,
  "time": "2023-11-14T22:13:20Z",
  "time_ns": 1700000000123456789,
  "manifest": "0000000000000000000000000000000000000000000000000000000000000000",
  "message": "say \"hi\"\n",
  "publisher": "6fa459ea-ee8a-4ca4-894e-db77e160355e",
  "user": "alice",
  "node": "node1",
  "source": {"endpoint":"https://hub.example","commit":"eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee","time":"2023-11-14T22:13:20Z"},
  "metrics": {
    "loss": -1.5e-3,
    "note": "01",
    "bad": "1."
  },
  "parents": [
    {"model":"base","version":2,"declared":true,"same_tensors":0,"same_bytes":0},
    {"model":"org/other","version":1,"declared":false,"same_tensors":3,"same_bytes":400}
  ],
  "parents_elsewhere": [
    "far/away"
  ],
  "bytes": 130,
  "tensor_bytes": 56,
  "parameters": 16,
  "architecture": null,
  "graph": [],
  "files": [
    {"path":"config.json","bytes":10,"sha256":null,"format":"","extents":1,"tensors":0},
    {"path":"m.safetensors","bytes":120,"sha256":"fe00000000000000000000000000000000000000000000000000000000000000","format":"safetensors","extents":4,"tensors":4,"in_tensors":56,"coverage":1,"metadata":{"format":"pt"}}
  ],
  "tensors": [
    {"name":"a.b.x","file":"m.safetensors","dtype":"F32","shape":[2,3],"offset":64,"bytes":24,"sha256_tree":"ab00000000000000000000000000000000000000000000000000000000000000"},
    {"name":"a.y","file":"m.safetensors","dtype":"BF16","shape":[4],"offset":88,"bytes":8,"sha256_tree":"0c00000000000000000000000000000000000000000000000000000000000000"},
    {"name":"top","file":"m.safetensors","dtype":"F32","shape":[2,3],"offset":96,"bytes":24,"sha256_tree":"0c00000000000000000000000000000000000000000000000000000000000000"},
    {"name":"a.none","file":"m.safetensors","dtype":"F32","shape":[0],"bytes":0}
  ]
}
)");
}

TEST_CASE("info.json lists the tensors that a file hides") {
  Manifest manifest{{opaque("m.npz")}};
  manifest.files[0].hidden = {{"w", 7, "compressed", {}, {}}, {"c", 0, "no data", DType::f32, {2, 3}}};
  manifest.files[0].hidden_more = 5;
  const std::string text = render_info_json({}, manifest);
  check_json(text);
  CHECK(text.find(R"("tensors":0,"in_tensors":0,"coverage":0,"hidden":[{"name":"w","bytes":7,"why":"compressed"},)"
                  R"({"name":"c","dtype":"F32","shape":[2,3],"bytes":0,"why":"no data"}],"hidden_more":5})") !=
        std::string::npos);
}

TEST_CASE("coverage counts the bytes of shown and of hidden tensors") {
  Manifest manifest{{opaque("a.pt"), opaque("b.bin"), opaque("config.json")}};
  File& file = manifest.files[0];
  file.extents = {{0, {40, {}}}, {40, {60, {}}}};
  manifest.files[1].extents = {{0, {50, {}}}};
  file.tensors = {{"tied", DType::u8, {60}, 1, ""},
                  {"tied too", DType::u8, {60}, 1, ""},
                  {"view", DType::u8, {10}, kNoExtent, "", {{0, 1, 5, 10}}},
                  {"beside", DType::u8, {20}, kNoExtent, "", {{1, 0, 30, 20}}}};
  file.hidden = {{"h", 50, "compressed", {}, {}}};
  const std::vector<Coverage> coverage = coverage_of(manifest);
  CHECK(coverage[0].in_tensors == 60);
  CHECK(coverage[0].shown == 150);
  CHECK(coverage[0].hidden == 50);
  CHECK(coverage[0].share() == 0.75);
  CHECK(coverage[1].in_tensors == 20);
  CHECK(coverage[2].share() == 1);
  file.hidden[0].bytes = UINT64_MAX;
  file.hidden.push_back(file.hidden[0]);
  CHECK(coverage_of(manifest)[0].hidden == UINT64_MAX);
}

TEST_CASE("info.json of nothing") {
  check_json(render_info_json({}, {}));
}

TEST_CASE("layer.json") {
  auto tree = tree_of(sample());
  std::string text = render_layer_json(*tree, tree->node(testing::at(*tree, "layers/a/layer.json")).layer);
  check_json(text);
  CHECK(text == R"({
  "layer": "a",
  "tensor_count": 3,
  "parameters": 10,
  "bytes": 32,
  "tensors": [
    {"name":"a.y","file":"m.safetensors","dtype":"BF16","shape":[4],"offset":88,"bytes":8,"sha256_tree":"0c00000000000000000000000000000000000000000000000000000000000000"},
    {"name":"a.none","file":"m.safetensors","dtype":"F32","shape":[0],"bytes":0}
  ],
  "layers": [
    "a.b"
  ]
}
)");
}

TEST_CASE("layer.json tells what a layer is") {
  Manifest manifest{{file_of("m.safetensors", {{"a.weight"}, {"b.weight"}, {"b.bias", DType::f32, {2}}})}};
  manifest.architecture = {"sequence",
                           {{"linear", "a", {}, {{"weight", 0}}, {}, false},
                            {"linear", "b", {{"act", "relu"}}, {{"bias", 2}, {"weight", 1}}, {0}, false}}};
  auto tree = tree_of(manifest);
  std::string text = render_layer_json(*tree, tree->node(testing::at(*tree, "layers/b")).layer);
  check_json(text);
  auto ids = vertex_ids(graph_of(manifest));
  CHECK(text.find("  \"kind\": \"linear\",\n  \"params\": {\n    \"act\": \"relu\"\n  },\n  \"vertex\": {\"id\":\"" +
                  to_hex(ids[1]) + "\",\"position\":1,\"inputs\":[0],\"summed\":false}") != std::string::npos);
  CHECK(render_layer_json(*tree, 0).find("\"kind\"") == std::string::npos);
  std::string info = render_info_json({}, manifest);
  check_json(info);
  CHECK(info.find("  \"architecture\": {\"family\":\"sequence\",\"id\":\"" + to_hex(graph_id(ids)) +
                  "\",\"layers\":2,\"kinds\":{\"linear\":2}},\n  \"graph\": [\n    "
                  "{\"layer\":\"a\",\"kind\":\"linear\",\"id\":\"" +
                  to_hex(ids[0]) +
                  "\",\"inputs\":[],\"summed\":false},\n    {\"layer\":\"b\",\"kind\":\"linear\",\"id\":\"" +
                  to_hex(ids[1]) + "\",\"inputs\":[0],\"summed\":false}\n  ],") != std::string::npos);
}

TEST_CASE("info.json lists no graph of very many vertices") {
  Manifest manifest;
  manifest.architecture.family = "sequence";
  manifest.architecture.layers.resize(limits::kInfoVerticesMax, {"linear", "a", {}, {}, {}, false});
  CHECK(render_info_json({}, manifest).find("\"graph\": [\n    {") != std::string::npos);
  manifest.architecture.layers.push_back(manifest.architecture.layers[0]);
  const std::string info = render_info_json({}, manifest);
  check_json(info);
  CHECK(info.find("\"graph\": null,") != std::string::npos);
}

TEST_CASE("layer.json lists inner layers in manifest order, not those of files set aside") {
  auto tree = tree_of({{testing::named("a", {"l.10.x", "l.9.x", "k"}), testing::named("b", {"k"})}});
  std::string root = render_layer_json(*tree, 0);
  CHECK(root.find("\"tensor_count\": 3,") != std::string::npos);
  CHECK(root.find("[\n    \"l\"\n  ]") != std::string::npos);
  std::string inner = render_layer_json(*tree, tree->node(testing::at(*tree, "layers/l")).layer);
  CHECK(inner.find("[\n    \"l.10\",\n    \"l.9\"\n  ]") != std::string::npos);
}

TEST_CASE("the README names each directory of the root, and three commands to try") {
  const std::string text = render_readme();
  for (const char* word : {"models/MODEL/", "latest", "tensors/MODEL/", "layers/MODEL/", "safetensors/MODEL/",
                           "lineage/MODEL/", "hub/", "info.json", "layer.json", "versions.tsv", ".weft/status"})
    CHECK(text.find(word) != std::string::npos);
  const auto attempts = std::string_view(text).substr(text.find("Try:\n"));
  CHECK(attempts.find("\n  ls ") != std::string::npos);
  CHECK(attempts.find("\n  cat ") != std::string::npos);
}

}  // namespace
}  // namespace weft
