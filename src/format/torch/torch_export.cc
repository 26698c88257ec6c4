#include "format/torch/torch_export.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "format/layout.h"
#include "format/parse_errors.h"
#include "format/tensor_list.h"
#include "format/torch/torch_members.h"
#include "format/torch/torch_tensors.h"

namespace weft {
namespace {

// A folder of members, and the end of the name of the text that describes them.
struct ExportFolder {
  std::string_view folder, config, prefix;
};
constexpr std::array<ExportFolder, 2> kExportFolders = {
    {{"data/weights/", "_weights_config.json", ""}, {"data/constants/", "_constants_config.json", "constants."}}};

// By the numbers of ScalarType in torch/_export/serde/schema.py.
std::optional<DType> export_type(std::uint64_t number) {
  constexpr std::array<std::pair<std::uint64_t, DType>, 20> kTypes = {
      {{1, DType::u8},           {2, DType::i8},       {3, DType::i16},      {4, DType::i32},
       {5, DType::i64},          {6, DType::f16},      {7, DType::f32},      {8, DType::f64},
       {10, DType::c64},         {11, DType::c128},    {12, DType::boolean}, {13, DType::bf16},
       {28, DType::u16},         {29, DType::f8_e4m3}, {30, DType::f8_e5m2}, {31, DType::f8_e4m3fnuz},
       {32, DType::f8_e5m2fnuz}, {33, DType::f8_e8m0}, {34, DType::u32},     {35, DType::u64}}};
  const auto found = std::ranges::find(kTypes, number, &std::pair<std::uint64_t, DType>::first);
  return found == kTypes.end() ? std::nullopt : std::optional<DType>(found->second);
}

constexpr std::uint64_t kStridedLayout = 7;

// As the text has it, unchecked.
struct ExportedWeight {
  std::string name, path;
  std::uint64_t type = 0, layout = kStridedLayout;
  TorchElements elements;
  bool pickled = false;
  bool known = true;  // false: a number is an expression, or negative
};

// Reads {"config": {NAME: {"path_name", "use_pickle", "tensor_meta": {"dtype", "sizes": [{"as_int"}], …}}}}. Other keys
// are skipped.
class ExportConfig final : public JsonHandler {
 public:
  using Visit = std::function<Status(ExportedWeight&)>;
  explicit ExportConfig(const Visit& visit) : visit_(visit) {}

  Status begin_object() override {
    keys_.emplace_back();
    if (keys_.size() == kOfWeight && keys_[0] == "config") {
      weight_ = {};
      weight_.name = keys_[1];
    }
    return {};
  }
  Status end_object() override {
    const bool of_weight = keys_.size() == kOfWeight && keys_[0] == "config";
    keys_.pop_back();
    return of_weight ? visit_(weight_) : Status{};
  }
  Status begin_array() override { return {}; }
  Status end_array() override { return {}; }
  Status key(std::string_view name) override {
    keys_.back() = name.substr(0, limits::kTensorNameMax + 1);
    return {};
  }
  Status text(std::string_view value) override {
    if (is_at(kOfWeight, "path_name")) weight_.path = value.substr(0, limits::kPathMax);
    return odd();
  }
  Status number(std::uint64_t value) override;
  Status negative(std::int64_t /*value*/) override { return odd(); }
  Status real(double /*value*/) override { return odd(); }
  Status boolean(bool value) override {
    if (is_at(kOfWeight, "use_pickle")) weight_.pickled = value;
    return {};
  }
  Status null() override { return {}; }

 private:
  // How many objects are open.
  static constexpr std::size_t kOfWeight = 3, kOfMeta = 4, kOfNumber = 5;

  bool is_at(std::size_t depth, std::string_view key) const {
    return keys_.size() == depth && keys_[0] == "config" && keys_[depth - 1] == key;
  }
  bool is_in_meta() const { return keys_.size() >= kOfMeta && keys_[0] == "config" && keys_[2] == "tensor_meta"; }
  // A value that is no number, where one belongs.
  Status odd() {
    if (is_in_meta() && keys_.size() == kOfNumber && keys_[3] != "device") weight_.known = false;
    return {};
  }

  const Visit& visit_;
  std::vector<std::string> keys_;  // of the open objects
  ExportedWeight weight_;
};

Status ExportConfig::number(std::uint64_t value) {
  if (!is_in_meta()) return {};
  if (is_at(kOfMeta, "dtype")) weight_.type = value;
  if (is_at(kOfMeta, "layout")) weight_.layout = value;
  if (!is_at(kOfNumber, "as_int")) return {};
  if (keys_[3] == "storage_offset") weight_.elements.offset = value;
  for (auto& [key, list] :
       {std::pair("sizes", &weight_.elements.shape), std::pair("strides", &weight_.elements.strides)})
    if (keys_[3] == key && list->size() <= limits::kDimensionsMax) list->push_back(value);
  return {};
}

Error export_hides(std::string why) {
  return Error{Errc::unsupported, std::move(why)};
}

Result<FoundTensor> exported_tensor(const ExportedWeight& weight, const ZipMember* member) {
  if (member == nullptr) return export_hides("its bytes are not in the file");
  if (!member->stored) return export_hides("compressed");
  if (weight.pickled) return export_hides("a pickled value");
  if (!weight.known || weight.layout != kStridedLayout ||
      weight.elements.strides.size() != weight.elements.shape.size())
    return export_hides("a description that weft does not know");
  const auto type = export_type(weight.type);
  if (!type) return export_hides(fmt::format("a type that weft lacks, of number {}", weight.type));
  return torch_placed(member->data, 0, *type, weight.elements);
}

bool is_config(const ZipMember& member, const ExportFolder& of) {
  const std::string_view name = member.name;
  if (!name.ends_with(of.config)) return false;
  return name.substr(0, name.rfind('/') + 1).ends_with(of.folder);
}

Status read_config(ByteSource& archive, const ZipDirectory& members, const ZipMember& config, std::string_view prefix,
                   TensorList& tensors) {
  WEFT_TRY(const std::string text, torch_member_text(archive, config, limits::kIndexJsonMax));
  const std::string folder = config.name.substr(0, config.name.rfind('/') + 1);
  const ExportConfig::Visit visit = [&](ExportedWeight& weight) {
    const ZipMember* member = members.find(folder + weight.path);
    return tensors.add(
        exported_tensor(weight, member),
        {fmt::format("{}{}", prefix, weight.name), member == nullptr ? 0 : member->data.length, "", {}, {}});
  };
  ExportConfig reader(visit);
  Status read = parse_json(text, limits::kJsonDepthMax, reader);
  if (!read.ok() && is_malformed(read.error()))
    return Error{Errc::unsupported, fmt::format("{}: {}", printable(config.name), read.error().message)};
  return read;
}

}  // namespace

bool is_torch_export(const ZipDirectory& members) {
  return std::ranges::any_of(members.members(),
                             [](const ZipMember& member) { return is_config(member, kExportFolders[0]); });
}

Result<Layout> read_torch_export(ByteSource& archive, const ZipDirectory& members) {
  Layout layout;
  layout.format = "torch export";
  TensorList tensors(layout);
  for (const ExportFolder& of : kExportFolders)
    for (const ZipMember& member : members.members()) {
      if (!is_config(member, of)) continue;
      const std::string root = member.name.substr(0, member.name.rfind('/') + 1 - of.folder.size());
      WEFT_CHECK(check_torch_byte_order(archive, members, root));
      WEFT_CHECK(read_config(archive, members, member, of.prefix, tensors));
    }
  tensors.finish();
  return layout;
}

}  // namespace weft
