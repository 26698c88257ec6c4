// Renders a ManifestDiff as text and as JSON.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "weft/model/relatives.h"

namespace weft {
namespace {

constexpr Change kOrder[] = {Change::changed, Change::added, Change::removed, Change::same};
constexpr std::size_t kLabelWidthMax = 72;

std::string_view word(Change change) {
  switch (change) {
    case Change::same:
      return "same";
    case Change::changed:
      return "changed";
    case Change::added:
      return "added";
    case Change::removed:
      return "removed";
  }
  return "";
}

char mark(Change change) {
  return change == Change::changed ? '~' : change == Change::added ? '+' : change == Change::removed ? '-' : '=';
}

struct Of {
  const File& file;
  const Tensor& tensor;
};
Of of(const Manifest& manifest, TensorRef ref) {
  const File& file = manifest.files[ref.file];
  return {file, file.tensors[ref.tensor]};
}

std::string type_and_shape(const Tensor& tensor) {
  const DTypeInfo* info = dtype_info(tensor.dtype);
  return fmt::format("{} {}", info == nullptr ? "?" : info->name, shape_text(tensor.shape));
}

// Returns the tensor after the change, or before it if the tensor was removed.
Of shown(const DiffSides& sides, const TensorChange& one) {
  return one.after ? of(sides.after, *one.after) : of(sides.before, *one.before);
}

struct Total {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};
Total total_of(const DiffSides& sides, const ManifestDiff& diff, Change change) {
  Total total;
  for (const TensorChange& one : diff.tensors) {
    if (one.change != change) continue;
    const Of which = shown(sides, one);
    ++total.count;
    total.bytes += stored_bytes(which.file, which.tensor);
  }
  return total;
}

std::string norms_text(const ChangeNorms& norms) {
  std::string out = fmt::format("‖Δ‖ {:.6g}  ‖Δ‖/‖a‖ {:.4g}  max|Δ| {:.4g}", norms.difference,
                                norms.before > 0 ? norms.difference / norms.before : INFINITY, norms.largest);
  if (norms.not_finite > 0) out += fmt::format("  {} not finite", norms.not_finite);
  return out;
}

std::string change_line(const DiffSides& sides, const TensorChange& one, std::size_t width) {
  const Of which = shown(sides, one);
  std::string type = type_and_shape(which.tensor);
  if (one.change == Change::changed)
    if (std::string was = type_and_shape(of(sides.before, *one.before).tensor); was != type) type = was + " → " + type;
  std::string line = fmt::format("{} {:<{}}  {}  {}", mark(one.change), one.label, width, type,
                                 human_bytes(stored_bytes(which.file, which.tensor)));
  if (!one.also.empty()) line += "  was " + one.also;
  return line;
}

void write_type(JsonWriter& json, std::string_view key, Of which) {
  const DTypeInfo* info = dtype_info(which.tensor.dtype);
  json.key(key).begin_object().member("file", std::string_view(which.file.path));
  json.member("dtype", info == nullptr ? "?" : info->name).key("shape").begin_array();
  for (std::uint64_t dimension : which.tensor.shape) json.value(dimension);
  json.end_array().member("bytes", stored_bytes(which.file, which.tensor)).end_object();
}

void write_norms(JsonWriter& json, const ChangeNorms& norms) {
  json.key("norms").begin_object();
  json.member("before", norms.before).member("difference", norms.difference);
  json.member("largest", norms.largest).member("not_finite", norms.not_finite).end_object();
}

const std::optional<ChangeNorms>* norms_of(const Norms& norms, std::size_t index) {
  return index < norms.size() && norms[index] ? &norms[index] : nullptr;
}

}  // namespace

std::string render_diff(const DiffSides& sides, const ManifestDiff& diff, const Norms& norms) {
  std::string out = fmt::format("{} → {}\n", sides.before_name, sides.after_name);
  for (Change change : kOrder) {
    Total total = total_of(sides, diff, change);
    out += fmt::format("  {:<8} {:>7} tensor{}  {:>9}\n", word(change), total.count, total.count == 1 ? " " : "s",
                       human_bytes(total.bytes));
  }
  std::size_t width = 0;
  for (const TensorChange& one : diff.tensors)
    if (one.label.size() <= kLabelWidthMax) width = std::max(width, one.label.size());
  bool titled = false;
  for (const FileChange& file : diff.files) {
    if (file.change == Change::same) continue;
    if (!titled) out += "\nfiles\n";
    titled = true;
    out += fmt::format("{} {}\n", mark(file.change), file.path);
  }
  if (!diff.tensors.empty()) out += "\ntensors\n";
  for (Change change : kOrder)
    for (std::size_t i = 0; i < diff.tensors.size(); ++i) {
      if (diff.tensors[i].change != change) continue;
      out += change_line(sides, diff.tensors[i], width);
      if (const auto* measured = norms_of(norms, i)) out += "  " + norms_text(**measured);
      out += '\n';
    }
  return printable_lines(out);
}

std::string diff_json(const DiffSides& sides, const ManifestDiff& diff, const Norms& norms) {
  JsonWriter json;
  json.begin_object().member("before", std::string_view(sides.before_name));
  json.member("after", std::string_view(sides.after_name));
  for (Change change : kOrder) {
    Total total = total_of(sides, diff, change);
    json.key(word(change)).begin_object().member("tensors", total.count).member("bytes", total.bytes).end_object();
  }
  json.key("files").begin_array();
  for (const FileChange& file : diff.files)
    json.begin_object().member("change", word(file.change)).member("path", std::string_view(file.path)).end_object();
  json.end_array().key("tensors").begin_array();
  for (std::size_t i = 0; i < diff.tensors.size(); ++i) {
    const TensorChange& one = diff.tensors[i];
    json.begin_object().member("change", word(one.change)).member("name", std::string_view(one.label));
    if (one.before) write_type(json, "before", of(sides.before, *one.before));
    if (one.after) write_type(json, "after", of(sides.after, *one.after));
    if (!one.also.empty()) json.member("was", std::string_view(one.also));
    if (const auto* measured = norms_of(norms, i)) write_norms(json, **measured);
    json.end_object();
  }
  return json.end_array().end_object().take();
}

}  // namespace weft
