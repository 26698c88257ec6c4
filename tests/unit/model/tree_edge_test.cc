// Names that collide, need escapes, or are too long.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "unit/model/models.h"
#include "weft/model/version_content.h"

namespace weft {
namespace {

using testing::at;
using testing::entries_of;
using testing::file_of;
using testing::has;
using testing::named;
using testing::opaque;
using testing::tree_of;

std::string refusal(Manifest manifest) {
  const auto count = VersionTree::count(manifest);
  auto tree = VersionTree::build(std::make_shared<const Manifest>(std::move(manifest)));
  CHECK(count.ok() == tree.ok());
  if (tree.ok()) return "";
  CHECK(tree.error().code == Errc::invalid);
  CHECK(count.error().message == tree.error().message);
  return tree.error().message;
}

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("published names that the trees also have clash with nothing") {
  const char* const names[] = {"info.json",  "tensors",      "layers", "lineage",
                               "layer.json", "versions.tsv", "latest", "2"};
  for (const char* name : names) {
    CAPTURE(name);
    const std::string published = "models/" + std::string(name);
    auto file = tree_of({{opaque(name), named("m", {"a.b"})}});
    CHECK(file->node(at(*file, published)).kind == NodeKind::file);
    auto dir = tree_of({{opaque(std::string(name) + "/mine"), named("m", {"a.b"})}});
    CHECK(dir->children(at(*dir, published)).size() == 1);
    for (const auto& tree : {file, dir}) {
      CHECK(tree->children(kPublishedRoot).size() == 2);
      for (const char* view : {"tensors/a.b.npy", "layers/a/b.npy", "layers/layer.json", "layers/a.safetensors"})
        CHECK(has(*tree, view));
      CHECK(std::ranges::all_of(entries_of(*tree), [](auto entries) { return entries == kLinksOfView; }));
    }
  }
}

TEST_CASE("a tensor and a layer can share a name") {
  auto tree = tree_of({{named("m", {"a", "a.b", "a.b.c"})}});
  for (const char* path : {"layers/a.npy", "layers/a/b.npy", "layers/a/b/c.npy", "layers/a/b.safetensors",
                           "tensors/a.npy", "tensors/a.b.npy", "tensors/a.b.c.npy"})
    CHECK(has(*tree, path));
}

TEST_CASE("tensors and layers that are called like what is generated clash with nothing") {
  auto tree = tree_of({{named("m", {"layer.json", "layer", "a.layer.json", "a.safetensors.x", "a.npy", "a.npy.npy"})}});
  for (const char* path : {"layers/layer.npy", "layers/layer.json", "layers/layer/json.npy", "layers/layer/layer.json",
                           "layers/a/layer/json.npy", "layers/a/layer.json", "layers/a.safetensors",
                           "layers/a/safetensors/x.npy", "layers/a/npy.npy", "layers/a/npy/npy.npy"})
    CHECK(has(*tree, path));
  CHECK(tree->node(at(*tree, "layers/layer.json")).kind == NodeKind::layer_json);
}

TEST_CASE("a later file that has a taken name is set aside as a whole, and takes no name") {
  auto tree = tree_of({{named("a", {"x", "y"}), named("b", {"y", "z"}), named("c", {"z"}), named("d/e", {"x"})}});
  for (const char* path : {"tensors/x.npy", "tensors/y.npy", "tensors/@b/y.npy", "tensors/@b/z.npy", "tensors/z.npy",
                           "tensors/@d%2Fe/x.npy", "layers/x.npy", "layers/@b/z.npy", "layers/@d%2Fe/x.npy"})
    CHECK(has(*tree, path));
  CHECK_FALSE(has(*tree, "tensors/@c"));
  CHECK(tree->node(at(*tree, "tensors/z.npy")).file == 2);
  CHECK(tree->node(at(*tree, "tensors/@b/y.npy")).file == 1);
  CHECK(std::ranges::all_of(entries_of(*tree), [](auto entries) { return entries == kLinksOfView; }));
}

TEST_CASE("shards of one model are plain, whatever their order") {
  auto tree = tree_of({{named("m-1", {"a.x", "b.x"}), named("m-2", {"a.y"})}});
  CHECK(tree->layers()[tree->node(at(*tree, "layers/a")).layer].subtree.size() == 2);
}

TEST_CASE("names that need escapes") {
  std::string nul("n\0l", 3);
  auto tree =
      tree_of({{file_of("m", {{""}, {"."}, {".."}, {"a/b.c"}, {nul}, {"@x"}, {"..x"}, {"100%"}, {"@m.@m"}, {"b."}})}});
  for (const char* path : {"tensors/%-.npy", "tensors/%2E.npy", "tensors/%2E%2E.npy", "tensors/a%2Fb.c.npy",
                           "tensors/n%00l.npy", "tensors/%40x.npy", "tensors/..x.npy", "tensors/100%25.npy",
                           "layers/%-.npy", "layers/%-/%-.npy", "layers/%-/%-/%-.npy", "layers/%-/%-/x.npy",
                           "layers/a%2Fb/c.npy", "layers/%40m/%40m.npy", "layers/%40m.safetensors", "layers/b/%-.npy"})
    CHECK(has(*tree, path));
}

TEST_CASE("names that do not fit are refused by name") {
  CHECK(refusal({{named("m", {std::string(251, 'a').c_str()})}}).empty());
  std::string message = refusal({{named("m", {std::string(252, 'a').c_str()})}});
  CHECK(mentions(message, "aaaa"));
  CHECK(mentions(message, "at most 255 bytes, got 256"));
  CHECK(mentions(refusal({{file_of("m", {{std::string(84, '/')}})}}), "got 256"));
  CHECK(mentions(refusal({{named("m", {(std::string(248, 'l') + ".x").c_str()})}}), "container"));
  CHECK(refusal({{file_of("m", {{std::string(248, 'l') + ".x", DType::q4_0, {32}}}, "gguf")}}).empty());
  std::string path = std::string(200, 'd') + "/" + std::string(60, 'f');
  CHECK(refusal({{named(path, {"x"})}}).empty());
  CHECK(mentions(refusal({{named("a", {"x"}), named(path, {"x"})}}), "ffff: a name of its tensors is taken"));
}

TEST_CASE("two tensors of one name in one file are refused") {
  CHECK(mentions(refusal({{file_of("m", {{"x"}, {"y"}, {"x"}})}}), "m: tensor \"x\" is there twice"));
}

TEST_CASE("a layer whose tensors safetensors cannot hold has no container") {
  auto tree = tree_of(
      {{file_of("m.gguf", {{"a.b.q", DType::q4_0, {32}}, {"a.c.w", DType::f32, {4}}, {"d.w", DType::c128, {1}}})}});
  CHECK(has(*tree, "layers/a.safetensors"));
  CHECK(has(*tree, "layers/a/c.safetensors"));
  CHECK_FALSE(has(*tree, "layers/a/b.safetensors"));
  CHECK_FALSE(has(*tree, "layers/d.safetensors"));
  CHECK(has(*tree, "layers/a/b/layer.json"));
}

TEST_CASE("tensors of no bytes have views") {
  auto tree = tree_of({{file_of("m", {{"a.none", DType::f32, {0}}})}});
  CHECK(has(*tree, "tensors/a.none.npy"));
  CHECK(has(*tree, "layers/a/none.npy"));
  CHECK(has(*tree, "layers/a.safetensors"));
}

std::string deep_name(int first) {
  std::string name = std::to_string(first);
  while (name.size() < 240) name += ".x";
  return name;
}

TEST_CASE("names so deep that a small file makes a huge tree are refused") {
  CHECK(refusal({{named("m", {deep_name(0).c_str()})}}).empty());
  std::vector<testing::Spec> specs(1000);
  for (int i = 0; i < 1000; ++i) specs[static_cast<std::size_t>(i)].name = deep_name(i);
  CHECK(mentions(refusal({{file_of("m", specs)}}), "too many layers"));
}

}  // namespace
}  // namespace weft
