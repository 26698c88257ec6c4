#include "weft/model/safetensors_view.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "unit/model/models.h"

namespace weft {
namespace {

using testing::at;
using testing::file_of;
using testing::opaque;
using testing::Spec;
using testing::tree_of;
using Names = std::vector<std::string>;

File torch(std::string path, const std::vector<Spec>& tensors = {{"w"}}, std::string format = "torch zip") {
  return file_of(std::move(path), tensors, std::move(format));
}

File weights(std::string path) {
  return file_of(std::move(path), {{"w"}});
}

// Sorts the files as a manifest has them.
Manifest of(std::vector<File> files) {
  std::ranges::sort(files, {}, &File::path);
  return {std::move(files)};
}

// Returns the paths of the view. A made file has its kind after its path: '+', '#' for an index, '!' for left_out.txt.
Names shown(const Manifest& manifest) {
  const SafetensorsView view = plan_safetensors_view(manifest);
  tree_of(manifest);  // throws if count() and build() differ
  Names out;
  for (const ViewEntry& entry : view_entries(manifest, view)) {
    out.emplace_back(entry.path);
    if (entry.kind == ViewEntry::Kind::made) out.back() += "+#!"[static_cast<int>(view.made[entry.index].kind)];
    if (entry.kind == ViewEntry::Kind::directory) out.back() += '/';
  }
  return out;
}

const ViewFile& made(const SafetensorsView& view, std::string_view path) {
  const auto found = std::ranges::find(view.made, path, &ViewFile::path);
  REQUIRE(found != view.made.end());
  return *found;
}

std::string text(const Manifest& manifest, std::string_view path) {
  const SafetensorsView view = plan_safetensors_view(manifest);
  return render_view_text(manifest, view, made(view, path));
}

// Returns the text of the container's header.
std::string header(const Manifest& manifest, std::string_view path) {
  const std::string all = view_container(manifest, made(plan_safetensors_view(manifest), path)).header;
  CHECK(all.size() % 8 == 0);
  return all.substr(8, all.find_last_not_of(' ') - 7);
}

// A tensor of the first file with one run in each of these files.
void scatter(Manifest& manifest, std::uint32_t main, const std::vector<std::uint32_t>& over) {
  Tensor& tensor = manifest.files[main].tensors[0];
  tensor.extent = kNoExtent;
  for (const std::uint32_t file : over) tensor.runs.push_back({file, 0, 0, 24 / over.size()});
}

TEST_CASE("weights get the names of safetensors, and other files stay") {
  CHECK(shown(of({opaque("config.json"), torch("pytorch_model.bin")})) == Names{"config.json", "model.safetensors+"});
  CHECK(shown(of({torch("a/pytorch_model.fp16.bin"), torch("adapter_model.bin"), torch("pytorch_models.bin")})) ==
        Names{"a/model.fp16.safetensors+", "adapter_model.safetensors+", "pytorch_models.safetensors+"});
  for (const char* format :
       {"dcp", "flax", "hdf5", "keras", "npz", "onnx", "pickle", "torch export", "torch legacy", "torch zip"})
    CHECK(shown(of({torch("x.y.z", {{"w"}}, format)})) ==
          Names{std::string(format) == "dcp" ? "model.safetensors+" : "x.y.safetensors+"});
  CHECK(shown(of({torch(".hidden"), torch("plain")})) == Names{".hidden.safetensors+", "plain.safetensors+"});
  CHECK(shown(of({file_of("a.gguf", {{"w"}}, "gguf"), file_of("b.npy", {{"w"}}, "npy"), weights("c.safetensors"),
                  file_of("d.tflite", {{"w"}}, "tflite"), torch("training_args.bin", {})})) ==
        Names{"a.gguf", "b.npy", "c.safetensors", "d.tflite", "training_args.bin"});
}

TEST_CASE("an empty directory stays, and one whose files all leave goes") {
  Manifest manifest = of({opaque("x"), torch("old/model.pt"), weights("old/model.safetensors")});
  manifest.directories = {"logs/empty"};
  CHECK(shown(manifest) == Names{"logs/empty/", "old/model.safetensors", "x"});
}

TEST_CASE("published safetensors of the same name win") {
  CHECK(shown(of({weights("model.safetensors"), torch("pytorch_model.bin")})) == Names{"model.safetensors"});
  CHECK(shown(of({weights("model-00001-of-00002.safetensors"), weights("model-00002-of-00002.safetensors"),
                  opaque("model.safetensors.index.json"), torch("pytorch_model-00001-of-00003.bin"),
                  torch("pytorch_model-00002-of-00003.bin"), torch("pytorch_model-00003-of-00003.bin"),
                  opaque("pytorch_model.bin.index.json")})) ==
        Names{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"});
  CHECK(shown(of({weights("a/model.safetensors"), torch("pytorch_model.bin")})) ==
        Names{"a/model.safetensors", "model.safetensors+"});
}

TEST_CASE("two weights of one stem have two containers") {
  CHECK(shown(of({torch("model.h5", {{"w"}}, "hdf5"), torch("model.pt"), torch("pytorch_model.bin")})) ==
        Names{"model.h5.safetensors+", "model.pt.safetensors+", "model.safetensors+"});
  // The published files take both names of the container: the second one is a directory.
  const Manifest manifest = of({opaque("m.pt.safetensors/x"), torch("m.bin"), torch("m.pt")});
  CHECK(shown(manifest) == Names{"left_out.txt!", "m.pt", "m.pt.safetensors/x", "m.safetensors+"});
  CHECK(text(manifest, "left_out.txt") ==
        "file\ttensor\tbytes\treason\nm.pt\t-\t88\tits name as a container is taken, or too long\n");
  // 251 bytes and .safetensors are more than NAME_MAX.
  CHECK(shown(of({torch(std::string(251, 'n') + ".pt")})) == Names{"left_out.txt!", std::string(251, 'n') + ".pt"});
}

TEST_CASE("shards and their index") {
  Manifest manifest = of({torch("pytorch_model-00001-of-00002.bin", {{"a"}, {"b"}}),
                          torch("pytorch_model-00002-of-00002.bin", {{"c"}}), opaque("pytorch_model.bin.index.json")});
  CHECK(shown(manifest) == Names{"model-00001-of-00002.safetensors+", "model-00002-of-00002.safetensors+",
                                 "model.safetensors.index.json#"});
  CHECK(text(manifest, "model.safetensors.index.json") == R"({
  "metadata": {
    "total_size": 72
  },
  "weight_map": {
    "a": "model-00001-of-00002.safetensors",
    "b": "model-00001-of-00002.safetensors",
    "c": "model-00002-of-00002.safetensors"
  }
}
)");
  // A variant, in the newer and the older spelling.
  CHECK(shown(of({torch("m.fp16-00001-of-00001.bin"), opaque("m.bin.index.fp16.json")})) ==
        Names{"m.fp16-00001-of-00001.safetensors+", "m.safetensors.index.fp16.json#"});
  CHECK(shown(of({torch("m-00001-of-00001.fp16.bin"), opaque("m.bin.index.fp16.json")})) ==
        Names{"m-00001-of-00001.fp16.safetensors+", "m.safetensors.index.fp16.json#"});
}

TEST_CASE("a model with a shard that cannot be read stays as it is") {
  File broken = opaque("pytorch_model-00002-of-00002.bin");
  broken.metadata.emplace_back(kNoTensors, "torch: cut off");
  const Manifest manifest =
      of({torch("pytorch_model-00001-of-00002.bin"), broken, opaque("pytorch_model.bin.index.json")});
  CHECK(shown(manifest) == Names{"left_out.txt!", "pytorch_model-00001-of-00002.bin",
                                 "pytorch_model-00002-of-00002.bin", "pytorch_model.bin.index.json"});
  CHECK(text(manifest, "left_out.txt") ==
        "file\ttensor\tbytes\treason\n"
        "pytorch_model-00001-of-00002.bin\t-\t88\tanother shard of the model has no "
        "container\npytorch_model-00002-of-00002.bin\t-\t10\ttorch: cut off\n");
}

TEST_CASE("an index never lists a part of the shards: a directory has the name of one") {
  const Manifest manifest = of({torch("pytorch_model-00001-of-00002.bin"), torch("pytorch_model-00002-of-00002.bin"),
                                opaque("model-00002-of-00002.safetensors/x"), opaque("pytorch_model.bin.index.json")});
  CHECK(shown(manifest) == Names{"left_out.txt!", "model-00002-of-00002.safetensors/x",
                                 "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin",
                                 "pytorch_model.bin.index.json"});
}

TEST_CASE("a distributed checkpoint and a bundle leave with the files that hold their bytes") {
  Manifest checkpoint = of({torch("step/.metadata", {{"w"}}, "dcp"), opaque("step/__0_0.distcp"),
                            opaque("step/__1_0.distcp"), opaque("step/notes.txt")});
  scatter(checkpoint, 0, {1});
  CHECK(shown(checkpoint) == Names{"step/model.safetensors+", "step/notes.txt"});
  Manifest bundle =
      of({torch("variables/variables.index", {{"w"}}, "tf bundle"), opaque("variables/variables.data-00000-of-00002"),
          opaque("variables/variables.data-00001-of-00002"), opaque("saved_model.pb")});
  CHECK(shown(bundle) == Names{"saved_model.pb", "variables/variables.safetensors+"});
  Manifest onnx = of({torch("m.onnx", {{"w"}}, "onnx"), opaque("m.onnx_data"), weights("n.safetensors"), opaque("z")});
  scatter(onnx, 0, {1, 2});
  CHECK(shown(onnx) == Names{"m.safetensors+", "n.safetensors", "z"});
}

TEST_CASE("shards of safetensors are one container") {
  Manifest manifest = of({weights("s/shard-00001.safetensors"), weights("s/shard-00002.safetensors"),
                          weights("t.safetensors"), opaque("s/x.json")});
  manifest.files[1].tensors.clear();
  scatter(manifest, 0, {0, 1});
  CHECK(shown(manifest) == Names{"s/model.safetensors+", "s/x.json", "t.safetensors"});
  const ViewFile container = made(plan_safetensors_view(manifest), "s/model.safetensors");
  CHECK(container.parts == std::vector<std::uint32_t>{0, 1});
  // A published model beside them wins, and the shards stay.
  manifest.files[3].path = "s/model.safetensors";
  std::ranges::sort(manifest.files, {}, &File::path);
  for (Tensor& tensor : manifest.files[1].tensors) tensor.runs = {{1, 0, 0, 12}, {2, 0, 0, 12}};
  CHECK(shown(manifest) ==
        Names{"s/model.safetensors", "s/shard-00001.safetensors", "s/shard-00002.safetensors", "s/x.json"});
}

TEST_CASE("files that claim to be shards and have equal names stay as they are") {
  Manifest manifest = of({weights("a.safetensors"), weights("b.safetensors"), file_of("c.safetensors", {{"v"}})});
  for (File& file : manifest.files) file.metadata = {{"DCP_SHARDING_INFO", "{}"}};
  CHECK(shown(manifest) == Names{"a.safetensors", "b.safetensors", "c.safetensors", "left_out.txt!"});
  CHECK(text(manifest, "left_out.txt") ==
        "file\ttensor\tbytes\treason\n"
        "a.safetensors\t-\t88\ttwo files have a tensor of the same name\n"
        "b.safetensors\t-\t88\ttwo files have a tensor of the same name\n"
        "c.safetensors\t-\t88\ttwo files have a tensor of the same name\n");
  manifest.files[1].tensors[0].name = "u";
  CHECK(shown(manifest) == Names{"model.safetensors+"});
}

TEST_CASE("a hundred thousand checkpoints of one directory take no more steps than their files") {
  Manifest manifest;
  for (int i = 0; i < 100'000; ++i) manifest.files.push_back(torch(fmt::format("d/{:06}.x", i), {{"w"}}, "dcp"));
  const SafetensorsView view = plan_safetensors_view(manifest);
  CHECK(view.made.size() == 100'000);
  CHECK(std::ranges::find(view.shown, true) == view.shown.end());
}

TEST_CASE("a container has larger elements first, then names, and the format that transformers asks for") {
  const Manifest manifest = of({torch(
      "m.pt", {{"b", DType::f16, {2}}, {"z", DType::i64, {}}, {"a", DType::bf16, {1}}, {"e", DType::f32, {0}}})});
  CHECK(
      header(manifest, "m.safetensors") ==
      R"({"__metadata__":{"format":"pt"},"z":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("e":{"dtype":"F32","shape":[0],"data_offsets":[8,8]},"a":{"dtype":"BF16","shape":[1],"data_offsets":[8,10]},)"
      R"("b":{"dtype":"F16","shape":[2],"data_offsets":[10,14]}})");
  const ViewContainer container = view_container(manifest, made(plan_safetensors_view(manifest), "m.safetensors"));
  CHECK(container.size == container.header.size() + 14);
  CHECK(container.tensors.front() == TensorRef{0, 1});
}

Names scope(const std::vector<Spec>& tensors) {
  const Manifest manifest = of({torch("m.pt", tensors)});
  const ModelScope scope = ModelScope::of(manifest, {0});
  Names names;
  for (const Spec& one : tensors)
    if (scope.has(one.name)) names.push_back(one.name.substr(scope.prefix_bytes()));
  return names;
}

TEST_CASE("the model of a nested checkpoint") {
  CHECK(scope({{"a.weight"}, {"b"}}) == Names{"a.weight", "b"});
  CHECK(scope({{"state_dict.a.weight"}}) == Names{"a.weight"});
  CHECK(scope({{"state_dict.a"}, {"optimizer_states.0.state.0.exp_avg"}, {"anything.x"}}) == Names{"a"});
  CHECK(scope({{"model_state_dict.a"}, {"optimizer_state_dict.b"}}) == Names{"a"});
  CHECK(scope({{"model.a"}, {"optimizer.state.0.exp_avg"}, {"epoch"}}) == Names{"a"});
  CHECK(scope({{"module.a"}, {"optimizer.b"}}) == Names{"a"});
  // These names are those of a flat state dict, or another subtree is part of the model.
  CHECK(scope({{"model.a"}, {"model.b"}}) == Names{"model.a", "model.b"});
  CHECK(scope({{"model.layers.0.w"}, {"lm_head.weight"}}) == Names{"model.layers.0.w", "lm_head.weight"});
  CHECK(scope({{"model.a"}, {"logit_scale"}}).size() == 2);
  CHECK(scope({{"model.a"}, {"module.a"}, {"other.b"}}).size() == 3);
  CHECK(scope({{"state_dict"}, {"w"}}).size() == 2);
}

TEST_CASE("an optimizer beside the model is no part of it, whatever the model is called") {
  CHECK(scope({{"layers.dense.vars.0"}, {"optimizer.vars.0"}, {"vars.0"}}) == Names{"layers.dense.vars.0", "vars.0"});
  CHECK(scope({{"model_weights.a.kernel:0"}, {"optimizer_weights.adam.iteration"}}) == Names{"a.kernel:0"});
  CHECK(scope({{"encoder.a"}, {"optimizer.state.0.exp_avg"}, {"step"}}) == Names{"encoder.a", "step"});
  CHECK(scope({{"model.a"}, {"module.a"}, {"optimizer.b"}}) == Names{"model.a", "module.a"});
  CHECK(scope({{"optimizer"}, {"optimizers"}, {"w"}}).size() == 3);
  CHECK(scope({{"optimizer.b"}, {"epoch"}}).size() == 2);
}

TEST_CASE("what no container has is listed with the reason") {
  File nested = torch("m.pt", {{"state_dict.a/b"},
                               {"state_dict.c", DType::c128, {1}},
                               {"state_dict.big", DType::f32, {2}, "{'descr': '>f4'}"},
                               {"state_dict.__metadata__"},
                               {"optimizer.c", DType::c128, {1}}});
  nested.hidden = {{"state_dict.h\n", 7, "compressed", {}, {}},
                   {"optimizer.h", 7, "compressed", {}, {}},
                   {"state_dict.u", 0, "text", {}, {}}};
  nested.hidden_more = 2;
  const Manifest manifest = of({nested, torch("z.npz", {{"c", DType::c128, {1}}}, "npz"), torch("good.pt")});
  CHECK(shown(manifest) == Names{"good.safetensors+", "left_out.txt!", "m.safetensors+", "z.npz"});
  CHECK(text(manifest, "left_out.txt") ==
        "file\ttensor\tbytes\treason\n"
        "m.pt\tstate_dict.c\t16\tsafetensors has no such type\n"
        "m.pt\tstate_dict.big\t8\tbig-endian\n"
        "m.pt\tstate_dict.__metadata__\t24\tsafetensors reserves its name\n"
        "m.pt\tstate_dict.h%0A\t7\tcompressed\n"
        "m.pt\tstate_dict.u\t-\ttext\n"
        "m.pt\t-\t-\t2 more tensors\n"
        "z.npz\tc\t16\tsafetensors has no such type\n");
  CHECK(header(manifest, "m.safetensors").find("a/b") != std::string::npos);
  CHECK(header(manifest, "m.safetensors").find("__metadata__\":{\"dtype") == std::string::npos);
  // The publisher's own file of that name stays.
  Manifest own = manifest;
  own.files.push_back(opaque("left_out.txt", 3));
  CHECK(shown(of(own.files)) == Names{"good.safetensors+", "left_out.txt", "m.safetensors+", "z.npz"});
}

TEST_CASE("a header larger than safetensors reads is one line, and the file stays") {
  std::vector<Spec> tensors;
  const std::string long_name(limits::kTensorNameMax - 8, '\x7f');
  for (int i = 0; i < 25'000; ++i) tensors.push_back({fmt::format("{:08}", i) + long_name, DType::u8, {1}});
  const Manifest manifest = of({torch("m.pt", tensors)});
  const SafetensorsView view = plan_safetensors_view(manifest);
  REQUIRE(view.kept.size() == 1);
  CHECK(view.kept[0].second.find("safetensors reads at most 100000000") != std::string::npos);
  CHECK(view.shown[0]);
  CHECK(view.made.size() == 1);
  CHECK_FALSE(view.replaces());
}

TEST_CASE("tensors that repeat one element cannot make a file without end") {
  Manifest manifest = of({torch("m.pt", {{"a", DType::u8, {1}}, {"b", DType::u8, {1}}})});
  for (Tensor& tensor : manifest.files[0].tensors) {
    tensor.shape = {limits::kVersionBytesMax - 1};
    tensor.runs = {{0, 1, 0, 1}};
    tensor.strides = {0};
    tensor.extent = kNoExtent;
  }
  const SafetensorsView view = plan_safetensors_view(manifest);
  REQUIRE(view.kept.size() == 1);
  CHECK(view.kept[0].second == "its tensors together are larger than a file may be");
}

TEST_CASE("safetensors/ has nodes of its own for published files and directories") {
  auto tree = tree_of(of({opaque("a/config.json"), torch("a/m.pt")}));
  const Node& shown = tree->node(at(*tree, "safetensors/a/config.json"));
  CHECK(shown.kind == NodeKind::view_file);
  CHECK(shown.file == tree->node(at(*tree, "models/a/config.json")).file);
  CHECK(at(*tree, "safetensors/a") != at(*tree, "models/a"));
  CHECK(tree->node(at(*tree, "safetensors/a/m.safetensors")).kind == NodeKind::made_container);
  CHECK_FALSE(testing::has(*tree, "safetensors/a/m.pt"));
  Manifest dataset{{opaque("a/x")}};
  dataset.kind = VersionKind::dataset;
  CHECK(tree_of(dataset)->children(kSafetensorsRoot).empty());
}

}  // namespace
}  // namespace weft
