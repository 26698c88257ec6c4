#include "fetch/requests/version.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "base/glob.h"
#include "base/limits.h"
#include "base/text.h"
#include "weft/bytes/run_list.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::uint64_t kStep = 32U << 20U;
constexpr std::uint64_t kHeldStep = 4U << 20U;  // while a rate holds the fetch back, so that its progress is seen

// True if the pattern matches the name of a tensor, or of a layer above it.
bool matches(std::string_view pattern, std::string_view name) {
  if (glob_matches(pattern, name)) return true;
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1))
    if (glob_matches(pattern, name.substr(0, dot))) return true;
  return false;
}

using Extents = std::set<std::uint32_t>;

// Returns, by file, the extents that only unwanted tensors have.
std::vector<Extents> unwanted_extents(const Manifest& manifest, const std::string& layers) {
  std::vector<Extents> all(manifest.files.size());
  std::vector<Extents> wanted(manifest.files.size());
  for (std::size_t i = 0; i < manifest.files.size(); ++i)
    for (const Tensor& tensor : manifest.files[i].tensors) {
      const bool is_wanted = matches(layers, tensor.name);
      const auto add = [&](std::size_t file, std::uint32_t extent) {
        all[file].insert(extent);
        if (is_wanted) wanted[file].insert(extent);
      };
      if (tensor.extent != kNoExtent) add(i, tensor.extent);
      for (const TensorRun& run : tensor.runs) add(run.file, run.extent);
    }
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const std::uint32_t extent : wanted[i]) all[i].erase(extent);
  return all;
}

bool is_config(const File& file) {
  const std::string_view path = file.path;
  return path.substr(path.rfind('/') + 1) == "config.json" && file.size > 0 && file.size <= limits::kConfigMax;
}

bool names_any(const Manifest& manifest, const std::string& layers) {
  return std::ranges::any_of(manifest.files, [&](const File& file) {
    return std::ranges::any_of(file.tensors, [&](const Tensor& tensor) { return matches(layers, tensor.name); });
  });
}

// `ranges` have whole extents.
bool is_in(const Extent& extent, const std::vector<Range>& ranges) {
  return std::ranges::any_of(ranges, [&](const Range& range) {
    return range.offset <= extent.offset && extent.offset < range.offset + range.length;
  });
}

Result<std::uint64_t> absent_bytes(Store& store, const File& file, const std::vector<Range>& ranges) {
  std::uint64_t bytes = 0;
  std::set<ContentId> seen;
  Renewed renewed(store);
  for (const Extent& extent : file.extents) {
    if (!is_in(extent, ranges) || !seen.insert(extent.id).second) continue;
    WEFT_TRY(Snapshot * now, renewed.get());
    const auto place = now->find_blob(extent.id);
    if (!place.ok() && place.error().code == Errc::absent) bytes += extent.id.length;
  }
  return bytes;
}

std::vector<ContentId> blobs_in(const Manifest& manifest, const std::vector<std::vector<Range>>& ranges) {
  std::vector<ContentId> blobs;
  for (std::size_t i = 0; i < ranges.size(); ++i)
    for (const Extent& extent : manifest.files[i].extents)
      if (is_in(extent, ranges[i])) blobs.push_back(extent.id);
  return blobs;
}

Error interrupted() {
  return Error{Errc::cancelled, "interrupted; what has come stays"};
}

}  // namespace

std::vector<std::vector<Range>> wanted_ranges(const Manifest& manifest, const std::string& layers) {
  const std::vector<Extents> unwanted =
      layers.empty() ? std::vector<Extents>(manifest.files.size()) : unwanted_extents(manifest, layers);
  std::vector<std::vector<Range>> ranges(manifest.files.size());
  for (std::size_t file = 0; file < ranges.size(); ++file) {
    const std::vector<Extent>& extents = manifest.files[file].extents;
    for (std::uint32_t i = 0; i < extents.size(); ++i)
      if (!unwanted[file].contains(i)) append_run(ranges[file], {extents[i].offset, extents[i].id.length});
  }
  return ranges;
}

Result<FetchReport> fetch_version(Store& store, Fetcher& fetcher, const VersionRow& row, const std::string& layers,
                                  Progress& progress, Traffic traffic) {
  const std::string where = fmt::format("{}@{}", row.model_name, row.number);
  WEFT_CHECK(fetcher.resolve(row.id));
  WEFT_TRY(const VersionHold hold, store.hold_version(row.id));
  WEFT_TRY(const auto bytes, store.open_manifest(row.manifest));
  WEFT_TRY(const Manifest manifest, decode_manifest(bytes->bytes()));
  if (!layers.empty() && !names_any(manifest, layers))
    return Error{Errc::not_found, fmt::format("{}: no tensor or layer is named {}", where, printable(layers))};
  FetchReport report;
  const std::vector<std::vector<Range>> wanted = wanted_ranges(manifest, layers);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    for (const Range& range : wanted[i]) report.bytes += range.length;
    WEFT_TRY(const std::uint64_t absent, absent_bytes(store, manifest.files[i], wanted[i]));
    report.moved_bytes += absent;
  }
  progress.total(report.bytes);
  const ColdWait wait([&progress] { return !progress.cancelled(); });
  for (std::uint32_t i = 0; i < manifest.files.size(); ++i) {
    progress.phase(fmt::format("fetching {}", manifest.files[i].path));
    for (const Range& range : wanted[i])
      for (std::uint64_t at = 0, part = 0; at < range.length; at += part) {
        if (progress.cancelled()) return interrupted();
        part = std::min(fetcher.is_held(traffic) ? kHeldStep : kStep, range.length - at);
        const std::uint64_t ahead = range.length - at - part;
        const auto brought = fetcher.bring({.version = row.id,
                                            .file = i,
                                            .range = {range.offset + at, part},
                                            .ahead = ahead,
                                            .all = true,
                                            .background = traffic});
        if (progress.cancelled()) return interrupted();
        WEFT_CHECK(brought);
        progress.advance(part);
      }
    if (!wanted[i].empty()) ++report.files;
  }
  progress.phase("making it durable");
  WEFT_CHECK(fetcher.wait_indexed(row.id, blobs_in(manifest, wanted)));
  return report;
}

Status fetch_configs(Store& store, Fetcher& fetcher, const VersionRow& row) {
  WEFT_TRY(const auto bytes, manifest_of(store, fetcher, row));
  WEFT_TRY(const Manifest manifest, decode_manifest(bytes->bytes()));
  for (std::uint32_t i = 0; i < manifest.files.size(); ++i) {
    const File& file = manifest.files[i];
    if (!is_config(file)) continue;
    WEFT_TRY(const std::uint64_t absent, absent_bytes(store, file, {{0, file.size}}));
    if (absent > 0) WEFT_CHECK(fetcher.bring({row.id, i, {0, file.size}, 0}));
  }
  return fetcher.wait_indexed(row.id);
}

}  // namespace weft
