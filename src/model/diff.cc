// Labels of tensors, as in tensors/, and the differences of two manifests by label.
#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "model/tree_scopes.h"
#include "weft/model/relatives.h"

namespace weft {
namespace {

// The tensors of a manifest by label.
struct Side {
  const Manifest& manifest;
  std::vector<std::string> labels;
  std::vector<TensorRef> refs;                              // by ordinal
  std::unordered_map<std::string_view, std::size_t> known;  // label to ordinal

  const Tensor& tensor(TensorRef ref) const { return manifest.files[ref.file].tensors[ref.tensor]; }
  ContentId content(TensorRef ref) const { return tensor_content(manifest, manifest.files[ref.file], tensor(ref)); }
};

Result<Side> side_of(const Manifest& manifest) {
  Side side{manifest, {}, {}, {}};
  WEFT_TRY(side.labels, tensor_labels(manifest));
  for (std::uint32_t file = 0; file < manifest.files.size(); ++file)
    for (std::uint32_t tensor = 0; tensor < manifest.files[file].tensors.size(); ++tensor)
      side.refs.push_back({file, tensor});
  for (std::size_t i = 0; i < side.labels.size(); ++i) side.known.emplace(side.labels[i], i);
  return side;
}

bool equal(const Side& a, TensorRef x, const Side& b, TensorRef y) {
  const Tensor& one = a.tensor(x);
  const Tensor& other = b.tensor(y);
  return one.dtype == other.dtype && one.shape == other.shape && one.descr == other.descr &&
         a.content(x) == b.content(y);
}

void diff_tensors(const Side& before, const Side& after, ManifestDiff& diff) {
  std::unordered_map<ContentId, std::size_t> contents;
  for (std::size_t i = before.refs.size(); i-- > 0;)
    if (ContentId id = before.content(before.refs[i]); id.length > 0) contents[id] = i;
  for (std::size_t i = 0; i < after.refs.size(); ++i) {
    TensorChange& one = diff.tensors.emplace_back();
    one.label = after.labels[i];
    one.after = after.refs[i];
    if (auto found = before.known.find(one.label); found != before.known.end()) {
      one.before = before.refs[found->second];
      one.change = equal(before, *one.before, after, *one.after) ? Change::same : Change::changed;
      continue;
    }
    one.change = Change::added;
    auto also = contents.find(after.content(*one.after));
    if (also != contents.end()) one.also = before.labels[also->second];
  }
  for (std::size_t i = 0; i < before.refs.size(); ++i)
    if (!after.known.contains(before.labels[i]))
      diff.tensors.push_back({Change::removed, before.labels[i], before.refs[i], std::nullopt, ""});
}

constexpr std::string_view kSmallFiles = "@files";  // their name in records/

bool has_small_files(const Manifest& manifest) {
  return !files_of(manifest, FileRole::file_table).empty();
}

bool have_equal_files(const Manifest& a, const Manifest& b, FileRole role) {
  return std::ranges::equal(files_of(a, role), files_of(b, role), {}, &File::extents, &File::extents);
}

// Compares all small files of a data set as one, because the manifests do not name them.
void diff_small_files(const Manifest& before, const Manifest& after, ManifestDiff& diff) {
  const bool was = has_small_files(before), is = has_small_files(after);
  if (!was && !is) return;
  const bool same =
      have_equal_files(before, after, FileRole::bundle) && have_equal_files(before, after, FileRole::file_table);
  const Change change = !was ? Change::added : !is ? Change::removed : same ? Change::same : Change::changed;
  diff.files.push_back({change, std::string(kSmallFiles)});
}

// Lists the empty directories that one side lacks, with a slash.
void diff_directories(const Manifest& before, const Manifest& after, ManifestDiff& diff) {
  const auto add_missing = [&diff](const Manifest& from, const Manifest& to, Change change) {
    for (const std::string& path : from.directories)
      if (!std::ranges::binary_search(to.directories, path)) diff.files.push_back({change, path + "/"});
  };
  add_missing(before, after, Change::removed);
  add_missing(after, before, Change::added);
}

// Files without a digest are compared by their extents, which a release may have cut elsewhere.
bool is_same(const File& a, const File& b) {
  const bool equal = a.sha256 && b.sha256 ? a.sha256 == b.sha256 : a.extents == b.extents;
  return equal && a.execute == b.execute;
}

// Merges both lists: published files are sorted by path.
void diff_files(const Manifest& before, const Manifest& after, ManifestDiff& diff) {
  const std::span<const File> from = published_files(before), to = published_files(after);
  auto a = from.begin();
  auto b = to.begin();
  while (a != from.end() || b != to.end()) {
    int order = a == from.end() ? 1 : b == to.end() ? -1 : a->path.compare(b->path);
    if (order == 0)
      diff.files.push_back({is_same(*a, *b) ? Change::same : Change::changed, a->path});
    else
      diff.files.push_back({order < 0 ? Change::removed : Change::added, order < 0 ? a->path : b->path});
    if (order <= 0) ++a;
    if (order >= 0) ++b;
  }
  diff_small_files(before, after, diff);
  diff_directories(before, after, diff);
}

}  // namespace

Result<std::vector<std::string>> tensor_labels(const Manifest& manifest) {
  WEFT_TRY(const std::vector<Scope> scopes, plan_scopes(manifest));
  std::vector<std::string> prefix(manifest.files.size());
  for (const Scope& scope : scopes)
    for (std::uint32_t file : scope.files) prefix[file] = scope.dir.empty() ? "" : scope.dir + "/";
  std::vector<std::string> labels;
  for (std::size_t file = 0; file < manifest.files.size(); ++file)
    for (const Tensor& tensor : manifest.files[file].tensors)
      labels.push_back(prefix[file] + escape_component(tensor.name));
  return labels;
}

std::string render_owners(const Manifest& manifest, std::span<const std::string> labels,
                          std::span<const std::string> owners) {
  std::string out;
  std::size_t ordinal = 0;
  for (const File& file : manifest.files)
    for (const Tensor& tensor : file.tensors) {
      out += fmt::format("{}\t{}\t{}\n", labels[ordinal], owners[ordinal], stored_bytes(file, tensor));
      ++ordinal;
    }
  return out;
}

Result<ManifestDiff> diff_manifests(const Manifest& before, const Manifest& after) {
  WEFT_TRY(const Side a, side_of(before));
  WEFT_TRY(const Side b, side_of(after));
  ManifestDiff diff;
  diff_tensors(a, b, diff);
  diff_files(before, after, diff);
  return diff;
}

}  // namespace weft
