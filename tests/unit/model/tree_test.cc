#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "unit/model/models.h"

namespace weft {
namespace {

using testing::at;
using testing::bert;
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
    case NodeKind::info_json:
      return "info";
    case NodeKind::tensor_view:
      return "view";
    case NodeKind::layer_json:
      return "layer";
    case NodeKind::layer_container:
      return "container";
    case NodeKind::lineage_dir:
      return "lineage";
  }
  return "?";
}

// One line for each node in the order of their numbers.
std::string listing(const VersionTree& tree) {
  std::string text;
  for (std::uint32_t i = 0; i < tree.size(); ++i)
    text +=
        fmt::format("{} {}{} {}\n", i, kind_name(tree.node(i).kind), tree.node(i).view ? "*" : "", path_of(tree, i));
  return text;
}

TEST_CASE("the numbers of nodes, for ever") {
  auto tree = tree_of({{opaque("1_Pooling/config.json"), opaque("config.json"),
                        named("model.fp16.safetensors", {"enc.0.w", "enc.0.b", "head", "enc.norm"}),
                        named("model.safetensors", {"enc.0.w", "x.y"})}});
  CHECK(listing(*tree) == R"(0 dir 
1 dir 1_Pooling
2 file 1_Pooling/config.json
3 file config.json
4 file model.fp16.safetensors
5 file model.safetensors
6 info* info.json
7 dir* tensors
8 view* tensors/enc.0.w.npy
9 view* tensors/enc.0.b.npy
10 view* tensors/head.npy
11 view* tensors/enc.norm.npy
12 dir* tensors/@model.safetensors
13 view* tensors/@model.safetensors/enc.0.w.npy
14 view* tensors/@model.safetensors/x.y.npy
15 dir* layers
16 layer* layers/layer.json
17 dir* layers/enc
18 layer* layers/enc/layer.json
19 container* layers/enc.safetensors
20 dir* layers/enc/0
21 layer* layers/enc/0/layer.json
22 container* layers/enc/0.safetensors
23 view* layers/enc/0/w.npy
24 view* layers/enc/0/b.npy
25 view* layers/head.npy
26 view* layers/enc/norm.npy
27 dir* layers/@model.safetensors
28 layer* layers/@model.safetensors/layer.json
29 dir* layers/@model.safetensors/enc
30 layer* layers/@model.safetensors/enc/layer.json
31 container* layers/@model.safetensors/enc.safetensors
32 dir* layers/@model.safetensors/enc/0
33 layer* layers/@model.safetensors/enc/0/layer.json
34 container* layers/@model.safetensors/enc/0.safetensors
35 dir* layers/@model.safetensors/x
36 layer* layers/@model.safetensors/x/layer.json
37 container* layers/@model.safetensors/x.safetensors
38 view* layers/@model.safetensors/enc/0/w.npy
39 view* layers/@model.safetensors/x/y.npy
40 dir* lineage
41 lineage* lineage/parents
42 lineage* lineage/children
)");
}

TEST_CASE("the smallest tree") {
  CHECK(listing(*tree_of({})) ==
        "0 dir \n1 info* info.json\n2 dir* tensors\n3 dir* layers\n4 layer* layers/layer.json\n"
        "5 dir* lineage\n6 lineage* lineage/parents\n7 lineage* lineage/children\n");
}

TEST_CASE("published directories and files, in path order") {
  auto tree =
      tree_of({{opaque("a-b/x"), opaque("a.txt"), opaque("a/b/c/d"), opaque("a/b/e"), opaque("a/f"), opaque("ab/g")}});
  std::string text = listing(*tree);
  CHECK(
      text.starts_with("0 dir \n1 dir a-b\n2 file a-b/x\n3 file a.txt\n4 dir a\n5 dir a/b\n6 dir a/b/c\n"
                       "7 file a/b/c/d\n8 file a/b/e\n9 file a/f\n10 dir ab\n11 file ab/g\n12 info* info.json\n"));
  CHECK(tree->node(at(*tree, "a/b/e")).file == 3);
}

TEST_CASE("every node is found by its name, and children are sorted") {
  auto tree = tree_of(bert(12));
  std::size_t below = 0;
  CHECK(tree->node(0).parent == 0);
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
  CHECK(below == tree->size() - 1);
  CHECK_FALSE(tree->lookup(0, "nothing").has_value());
  CHECK_FALSE(tree->lookup(0, "").has_value());
  CHECK_FALSE(tree->lookup(at(*tree, "config.json"), "x").has_value());
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
  CHECK_FALSE(testing::has(*tree, "layers.safetensors"));
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
  CHECK(tree->view_links() == std::vector<std::uint32_t>{2, 2, 2});
  auto hidden = tree_of({{named("1", {"a"}), opaque("tensors")}});
  CHECK(hidden->view_links() == std::vector<std::uint32_t>{1});
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
