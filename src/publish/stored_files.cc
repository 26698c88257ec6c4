#include "publish/stored_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/text.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

bool has_parts(const File& file) {
  return std::ranges::any_of(file.tensors, &Tensor::scattered);
}

}  // namespace

Status StoredFiles::take(const Manifest& manifest, const SourceFile& source) {
  const auto refused = [&](Errc code, std::string_view why) {
    return Error{code, fmt::format("{}: {}: {}", source.stored, printable(source.stored_path), why)};
  };
  const File* file = find_file(manifest, FileRole::published, source.stored_path);
  if (file == nullptr) return refused(Errc::not_found, "there is no such file");
  if (file->size != source.size)
    return refused(Errc::changed, fmt::format("expected {} bytes, got {}", source.size, file->size));
  const bool has_records = find_file(manifest, FileRole::record_table, source.stored_path) != nullptr;
  if (has_parts(*file) || has_records)
    return refused(Errc::unsupported, "expected a file without records, whose tensors each are one run of its bytes");
  files_.push_back(*file);
  files_.back().path = source.path;
  return {};
}

// Loads one version after another, because their manifests may be large.
Result<StoredFiles> StoredFiles::load(Store& store, ManifestResolver& resolver, std::span<const SourceFile> sources,
                                      VersionKind kind) {
  StoredFiles out;
  std::map<std::string_view, std::vector<const SourceFile*>> by_version;
  for (const SourceFile& source : sources) by_version[source.stored].push_back(&source);
  for (const auto& [spec, wanted] : by_version) {
    WEFT_TRY(const VersionRow row, version_of(store, spec));
    if (row.kind != kind)
      return Error{Errc::unsupported, fmt::format("{}: expected a version of a {}, got one of a {}", spec,
                                                  kind_name(kind), kind_name(row.kind))};
    WEFT_TRY(VersionHold hold, store.hold_version(row.id));
    out.holds_.push_back(std::move(hold));
    WEFT_TRY(const Manifest manifest, load_manifest(store, resolver, row));
    for (const SourceFile* source : wanted) WEFT_CHECK(out.take(manifest, *source));
  }
  std::ranges::sort(out.files_, {}, &File::path);
  return out;
}

// The tensors of the other files may have runs in files by number, and the numbers change.
Manifest StoredFiles::added_to(Manifest manifest) const {
  const std::size_t published = published_files(manifest).size();
  std::vector<std::uint32_t> numbers;  // the new number of each file
  std::vector<File> files;
  files.reserve(manifest.files.size() + files_.size());
  auto next = files_.begin();
  for (std::size_t i = 0; i < manifest.files.size(); ++i) {
    while (next != files_.end() && (i >= published || next->path < manifest.files[i].path)) files.push_back(*next++);
    numbers.push_back(static_cast<std::uint32_t>(files.size()));
    files.push_back(std::move(manifest.files[i]));
  }
  std::copy(next, files_.end(), std::back_inserter(files));
  for (const std::uint32_t number : numbers)
    for (Tensor& tensor : files[number].tensors)
      for (TensorRun& run : tensor.runs) run.file = numbers[run.file];
  manifest.files = std::move(files);
  return manifest;
}

}  // namespace weft
