#include "pull/known_files.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "weft/model/manifest.h"
#include "weft/programs/operations.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

template <class T>
Result<std::optional<T>> if_found(Result<T> result) {
  if (result.ok()) return std::optional<T>(std::move(result).value());
  if (result.error().code == Errc::not_found) return std::optional<T>();
  return std::move(result).error();
}

Result<std::optional<VersionRow>> row_of_commit(Store& store, const std::string& name, const std::string& commit) {
  WEFT_TRY(const auto snapshot, store.snapshot());
  WEFT_TRY(const auto model, if_found(snapshot->model(name)));
  if (!model) return std::optional<VersionRow>();
  WEFT_TRY(const auto id, snapshot->with_revision(model->id, commit));
  if (!id) return std::optional<VersionRow>();
  WEFT_TRY(VersionRow row, snapshot->version(*id));
  return row.source_commit == commit ? std::optional(std::move(row)) : std::nullopt;
}

// Calls visit(path, size, sha256) for each published file, small files of data sets too, which have no SHA-256 here.
template <class Visit>
Status each_file(Store& store, const Manifest& manifest, const Visit& visit) {
  for (const File& file : published_files(manifest)) visit(file.path, file.size, file.sha256);
  return each_small_file(store, manifest, [&](const SmallFile& file) -> Status {
    visit(file.path, file.bytes.length, std::optional<Digest>());
    return {};
  });
}

}  // namespace

Result<std::optional<VersionRow>> version_of_commit(Store& store, ManifestResolver& resolver, const std::string& name,
                                                    const std::string& commit, std::span<const HubFile> files) {
  WEFT_TRY(auto row, row_of_commit(store, name, commit));
  if (!row) return row;
  WEFT_TRY(const Manifest manifest, load_manifest(store, resolver, *row));
  std::size_t same = 0;
  std::size_t all = 0;
  WEFT_CHECK(each_file(store, manifest, [&](const std::string& path, std::uint64_t size, const auto& sha256) {
    ++all;
    const auto file = std::ranges::lower_bound(files, path, {}, &HubFile::path);
    if (file == files.end() || file->path != path || file->size != size) return;
    if (!file->sha256 || !sha256 || *file->sha256 == *sha256) ++same;
  }));
  return all == files.size() && same == files.size() ? std::move(row) : std::optional<VersionRow>();
}

}  // namespace weft
