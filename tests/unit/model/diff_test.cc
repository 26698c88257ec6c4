#include <doctest/doctest.h>

#include <string>

#include "unit/model/models.h"
#include "weft/model/lineage.h"
#include "weft/model/relatives.h"

namespace weft {
namespace {

using testing::content;
using testing::file_of;
using testing::opaque;

// A manifest. A number determines the content of each tensor.
Manifest of(std::vector<std::pair<testing::Spec, std::uint64_t>> tensors, std::uint64_t config = 1) {
  std::vector<testing::Spec> specs;
  for (auto& [spec, seed] : tensors) specs.push_back(spec);
  Manifest manifest{{opaque("config.json"), file_of("model.safetensors", specs)}};
  manifest.files[0].extents[0].id = content(10, config);
  File& file = manifest.files[1];
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (file.tensors[i].extent == kNoExtent) continue;
    ContentId& id = file.extents[file.tensors[i].extent].id;
    id = content(id.length, tensors[i].second);
  }
  return manifest;
}

ManifestDiff diff(const Manifest& a, const Manifest& b) {
  auto made = diff_manifests(a, b);
  REQUIRE(made.ok());
  return *made;
}

}  // namespace

TEST_CASE("a diff tells tensors that are the same, changed, added and removed") {
  Manifest a = of({{{"x"}, 1}, {{"y"}, 2}, {{"old"}, 3}, {{"z"}, 4}});
  Manifest b = of({{{"x"}, 1}, {{"y"}, 9}, {{"z", DType::bf16}, 5}, {{"new"}, 6}, {{"renamed"}, 3}}, 2);
  ManifestDiff d = diff(a, b);
  std::string text = render_diff({"m@1", "m@2", a, b}, d);
  CHECK(text ==
        "m@1 → m@2\n"
        "  changed        2 tensors       36 B\n"
        "  added          2 tensors       48 B\n"
        "  removed        1 tensor        24 B\n"
        "  same           1 tensor        24 B\n"
        "\nfiles\n~ config.json\n~ model.safetensors\n"
        "\ntensors\n"
        "~ y        F32 [2, 3]  24 B\n"
        "~ z        F32 [2, 3] → BF16 [2, 3]  12 B\n"
        "+ new      F32 [2, 3]  24 B\n"
        "+ renamed  F32 [2, 3]  24 B  was old\n"
        "- old      F32 [2, 3]  24 B\n"
        "= x        F32 [2, 3]  24 B\n");
  CHECK(shared_tensors(b, a).tensors == 2);
  CHECK(shared_tensors(b, a).bytes == 48);
  std::string json = diff_json({"m@1", "m@2", a, b}, d, {std::nullopt, ChangeNorms{2, 1, 0.5, 3}});
  CHECK(json.find("\"changed\":{\"tensors\":2,\"bytes\":36}") != std::string::npos);
  CHECK(json.find("\"norms\":{\"before\":2,\"difference\":1,\"largest\":0.5,\"not_finite\":3}") != std::string::npos);
  std::string measured = render_diff({"m@1", "m@2", a, b}, d, {std::nullopt, ChangeNorms{2, 1, 0.5, 3}});
  CHECK(measured.find("24 B  ‖Δ‖ 1  ‖Δ‖/‖a‖ 0.5  max|Δ| 0.5  3 not finite\n") != std::string::npos);
}

TEST_CASE("a diff of equal versions has only unchanged tensors") {
  Manifest a = of({{{"x"}, 1}, {{"y"}, 2}});
  ManifestDiff d = diff(a, a);
  for (const TensorChange& one : d.tensors) CHECK(one.change == Change::same);
  CHECK(render_diff({"m@1", "m@1", a, a}, d).find("files") == std::string::npos);
  CHECK(diff({}, {}).tensors.empty());
}

TEST_CASE("tensors of files set aside are compared with those of the same file") {
  Manifest a{{testing::named("a.safetensors", {"w"}), testing::named("b.safetensors", {"w"})}};
  Manifest b = a;
  b.files[1].extents[1].id = content(24, 77);
  ManifestDiff d = diff(a, b);
  REQUIRE(d.tensors.size() == 2);
  CHECK(d.tensors[0].change == Change::same);
  CHECK(d.tensors[1].change == Change::changed);
  CHECK(d.tensors[1].label == "@b.safetensors/w");
}

TEST_CASE("a diff of data sets has their published files, and the small ones as one") {
  const auto set_of = [](std::uint64_t large, std::uint64_t small) {
    Manifest manifest{{opaque("a.bin"), opaque("b.tar")}, {}, VersionKind::dataset};
    manifest.files[0].extents[0].id = content(10, large);
    const auto hidden = [&](FileRole role, const char* path) {
      manifest.files.push_back(opaque(path));
      manifest.files.back().role = role;
      manifest.files.back().extents[0].id = content(10, small);
    };
    if (small != 0) hidden(FileRole::bundle, "");
    if (small != 0) hidden(FileRole::file_table, "");
    hidden(FileRole::record_table, "b.tar");
    return manifest;
  };
  const auto lines = [](const ManifestDiff& made) {
    std::string text;
    for (const FileChange& file : made.files) text += std::to_string(static_cast<int>(file.change)) + file.path + " ";
    return text;
  };
  const auto number = [](Change change) { return std::to_string(static_cast<int>(change)); };
  const std::string same = number(Change::same), changed = number(Change::changed);
  CHECK(lines(diff(set_of(1, 1), set_of(1, 1))) == same + "a.bin " + same + "b.tar " + same + "@files ");
  CHECK(lines(diff(set_of(1, 1), set_of(2, 3))) == changed + "a.bin " + same + "b.tar " + changed + "@files ");
  CHECK(lines(diff(set_of(1, 0), set_of(1, 3))) ==
        same + "a.bin " + same + "b.tar " + number(Change::added) + "@files ");
  CHECK(lines(diff(set_of(1, 0), set_of(1, 0))) == same + "a.bin " + same + "b.tar ");
}

TEST_CASE("owners.tsv has a line for each tensor, named as in tensors/") {
  Manifest a = of({{{"x/y"}, 1}, {{"z", DType::f32, {0}}, 0}});
  auto labels = tensor_labels(a);
  REQUIRE(labels.ok());
  std::vector<std::string> owners = {"m@1", "m@2"};
  CHECK(render_owners(a, *labels, owners) == "x%2Fy\tm@1\t24\nz\tm@2\t0\n");
}

}  // namespace weft
