#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "unit/model/models.h"
#include "weft/model/version_content.h"

namespace weft {
namespace {

using testing::at;
using testing::bert;
using testing::entries_of;
using testing::named;
using testing::opaque;
using testing::path_of;
using testing::tree_of;

std::string_view kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::dir:
      return "dir";
    case NodeKind::file:
      return "file";
    case NodeKind::tensor_view:
      return "view";
    case NodeKind::layer_json:
      return "layer";
    case NodeKind::layer_container:
      return "container";
    case NodeKind::made_container:
      return "made";
    case NodeKind::made_text:
      return "text";
    case NodeKind::view_file:
      return "shown";
  }
  return "?";
}

// Returns one line per node, in the order of their numbers.
std::string listing(const VersionTree& tree) {
  std::string text;
  for (std::uint32_t i = 0; i < tree.size(); ++i)
    text += fmt::format("{} {} {}\n", i, kind_name(tree.node(i).kind), path_of(tree, i));
  return text;
}

TEST_CASE("node numbers are stable") {
  auto tree = tree_of({{opaque("1_Pooling/config.json"), opaque("config.json"),
                        named("model.fp16.safetensors", {"enc.0.w", "enc.0.b", "head", "enc.norm"}),
                        named("model.safetensors", {"enc.0.w", "x.y"})}});
  CHECK(listing(*tree) == R"(0 dir models
1 dir layers
2 dir tensors
3 dir safetensors
4 dir models/1_Pooling
5 file models/1_Pooling/config.json
6 file models/config.json
7 file models/model.fp16.safetensors
8 file models/model.safetensors
9 view tensors/enc.0.w.npy
10 view tensors/enc.0.b.npy
11 view tensors/head.npy
12 view tensors/enc.norm.npy
13 dir tensors/@model.safetensors
14 view tensors/@model.safetensors/enc.0.w.npy
15 view tensors/@model.safetensors/x.y.npy
16 layer layers/layer.json
17 dir layers/enc
18 layer layers/enc/layer.json
19 container layers/enc.safetensors
20 dir layers/enc/0
21 layer layers/enc/0/layer.json
22 container layers/enc/0.safetensors
23 view layers/enc/0/w.npy
24 view layers/enc/0/b.npy
25 view layers/head.npy
26 view layers/enc/norm.npy
27 dir layers/@model.safetensors
28 layer layers/@model.safetensors/layer.json
29 dir layers/@model.safetensors/enc
30 layer layers/@model.safetensors/enc/layer.json
31 container layers/@model.safetensors/enc.safetensors
32 dir layers/@model.safetensors/enc/0
33 layer layers/@model.safetensors/enc/0/layer.json
34 container layers/@model.safetensors/enc/0.safetensors
35 dir layers/@model.safetensors/x
36 layer layers/@model.safetensors/x/layer.json
37 container layers/@model.safetensors/x.safetensors
38 view layers/@model.safetensors/enc/0/w.npy
39 view layers/@model.safetensors/x/y.npy
40 dir safetensors/1_Pooling
41 shown safetensors/1_Pooling/config.json
42 shown safetensors/config.json
43 shown safetensors/model.fp16.safetensors
44 shown safetensors/model.safetensors
)");
}

TEST_CASE("a version without tensors has empty layers/ and tensors/") {
  CHECK(listing(*tree_of({})) == "0 dir models\n1 dir layers\n2 dir tensors\n3 dir safetensors\n");
  CHECK(listing(*tree_of({{opaque("config.json")}})) ==
        "0 dir models\n1 dir layers\n2 dir tensors\n3 dir safetensors\n4 file models/config.json\n"
        "5 shown safetensors/config.json\n");
}

TEST_CASE("published directories and files, in path order") {
  auto tree =
      tree_of({{opaque("a-b/x"), opaque("a.txt"), opaque("a/b/c/d"), opaque("a/b/e"), opaque("a/f"), opaque("ab/g")}});
  CHECK(listing(*tree) ==
        "0 dir models\n1 dir layers\n2 dir tensors\n3 dir safetensors\n4 dir models/a-b\n5 file models/a-b/x\n6 file "
        "models/a.txt\n"
        "7 dir models/a\n8 dir models/a/b\n9 dir models/a/b/c\n10 file models/a/b/c/d\n11 file models/a/b/e\n"
        "12 file models/a/f\n13 dir models/ab\n14 file models/ab/g\n15 dir safetensors/a-b\n"
        "16 shown safetensors/a-b/x\n17 shown safetensors/a.txt\n18 dir safetensors/a\n19 dir safetensors/a/b\n"
        "20 dir safetensors/a/b/c\n21 shown safetensors/a/b/c/d\n22 shown safetensors/a/b/e\n"
        "23 shown safetensors/a/f\n24 dir safetensors/ab\n25 shown safetensors/ab/g\n");
  CHECK(tree->node(at(*tree, "models/a/b/e")).file == 3);
}

TEST_CASE("empty directories stand among the files, in path order") {
  Manifest manifest{{opaque("a-b/x"), opaque("a/b/e"), opaque("a/f")}};
  manifest.directories = {"a-b/0", "a/b/c/d", "a/b/z", "b/1", "b/2"};
  const std::uint64_t count = VersionTree::count(manifest).value();
  auto tree = tree_of(std::move(manifest));
  CHECK(listing(*tree) ==
        "0 dir models\n1 dir layers\n2 dir tensors\n3 dir safetensors\n4 dir models/a-b\n5 dir models/a-b/0\n6 file "
        "models/a-b/x\n"
        "7 dir models/a\n8 dir models/a/b\n9 dir models/a/b/c\n10 dir models/a/b/c/d\n11 file models/a/b/e\n"
        "12 dir models/a/b/z\n13 file models/a/f\n14 dir models/b\n15 dir models/b/1\n16 dir models/b/2\n"
        "17 dir safetensors/a-b\n18 dir safetensors/a-b/0\n19 shown safetensors/a-b/x\n20 dir safetensors/a\n"
        "21 dir safetensors/a/b\n22 dir safetensors/a/b/c\n23 dir safetensors/a/b/c/d\n24 shown safetensors/a/b/e\n"
        "25 dir safetensors/a/b/z\n26 shown safetensors/a/f\n27 dir safetensors/b\n28 dir safetensors/b/1\n"
        "29 dir safetensors/b/2\n");
  CHECK(count == tree->size());
  CHECK(tree->children(at(*tree, "models/a/b/z")).empty());
  CHECK(tree->node_of_file(2) == 13);
}

TEST_CASE("every node is found by its name, and children are sorted") {
  auto tree = tree_of(bert(12));
  std::size_t below = 0;
  for (std::uint32_t root = 0; root < kRootCount; ++root) CHECK(tree->node(root).parent == root);
  for (std::uint32_t dir = 0; dir < tree->size(); ++dir) {
    auto children = tree->children(dir);
    below += children.size();
    if (tree->node(dir).kind != NodeKind::dir) CHECK(children.empty());
    for (std::uint32_t child : children) {
      REQUIRE(tree->node(child).parent == dir);
      REQUIRE(tree->lookup(dir, tree->node(child).name) == child);
    }
    auto name = [&](std::uint32_t i) -> const std::string& { return tree->node(i).name; };
    CHECK(std::ranges::adjacent_find(children, std::greater_equal(), name) == children.end());
  }
  CHECK(below == tree->size() - kRootCount);
  CHECK_FALSE(tree->lookup(0, "nothing").has_value());
  CHECK_FALSE(tree->lookup(0, "").has_value());
  CHECK_FALSE(tree->lookup(at(*tree, "models/config.json"), "x").has_value());
}

TEST_CASE("a BERT's views, layers and containers") {
  auto tree = tree_of(bert(12));
  const Manifest& manifest = tree->manifest();
  for (const char* path : {"tensors/encoder.layer.11.attention.self.query.weight.npy",
                           "layers/encoder/layer/11/attention/self/query/weight.npy"}) {
    const Node& view = tree->node(at(*tree, path));
    CHECK(view.kind == NodeKind::tensor_view);
    CHECK(manifest.files[view.file].tensors[view.tensor].name == "encoder.layer.11.attention.self.query.weight");
  }
  const Node& container = tree->node(at(*tree, "layers/encoder/layer/3/attention.safetensors"));
  CHECK(container.kind == NodeKind::layer_container);
  CHECK(tree->layers()[container.layer].name == "encoder.layer.3.attention");
  CHECK(tree->layers()[container.layer].subtree.size() == 6);
  CHECK(tree->layers()[container.layer].direct.empty());
  const Node& inside = tree->node(at(*tree, "layers/encoder/layer/3/attention/layer.json"));
  CHECK(inside.layer == container.layer);
  CHECK(tree->layers()[container.layer].dir == at(*tree, "layers/encoder/layer/3/attention"));
  const Layer& query = tree->layers()[tree->node(at(*tree, "layers/encoder/layer/3/attention/self/query")).layer];
  CHECK(query.direct.size() == 2);
  for (const char* root : {"models", "layers", "tensors"})
    CHECK_FALSE(testing::has(*tree, std::string(root) + "/layers.safetensors"));
  CHECK(tree->layers()[0].name.empty());
  CHECK(tree->layers()[0].subtree.size() == tensor_count(manifest));
}

TEST_CASE("subtrees are in manifest order") {
  auto tree = tree_of({{named("1", {"b.x", "a.x.y", "b.a"}), named("2", {"a.b", "b.c.d"})}});
  std::string text;
  for (const Layer& layer : tree->layers()) {
    text += layer.name + ":";
    for (TensorRef ref : layer.subtree) text += " " + tree->manifest().files[ref.file].tensors[ref.tensor].name;
    text += "\n";
  }
  CHECK(text == ": b.x a.x.y b.a a.b b.c.d\nb: b.x b.a b.c.d\na: a.x.y a.b\na.x: a.x.y\nb.c: b.c.d\n");
}

TEST_CASE("ordinals and links") {
  auto tree = tree_of({{named("1", {"a", "b"}), opaque("2"), named("3", {"c.d"})}});
  CHECK(tree->tensor_ordinal(0, 0) == 0);
  CHECK(tree->tensor_ordinal(0, 1) == 1);
  CHECK(tree->tensor_ordinal(2, 0) == 2);
  CHECK(std::ranges::all_of(entries_of(*tree), [](auto entries) { return entries == kLinksOfView; }));
  auto aside = tree_of({{named("1", {"a"}), named("2", {"a"})}});
  CHECK(std::ranges::all_of(entries_of(*aside), [](auto entries) { return entries == kLinksOfView; }));
}

TEST_CASE("a tree is a function of its manifest, content aside") {
  Manifest other = bert(4);
  for (File& file : other.files)
    for (Extent& extent : file.extents) extent.id = {};
  CHECK(listing(*tree_of(bert(4))) == listing(*tree_of(other)));
}

TEST_CASE("memory is told about") {
  std::size_t small = tree_of(bert(1))->memory_bytes(), large = tree_of(bert(100))->memory_bytes();
  CHECK(small > sizeof(VersionTree));
  CHECK(large > 30 * small);
  CHECK(large < 300 * small);
}

}  // namespace
}  // namespace weft
