#include "fetch/manifest_fetch.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

constexpr auto kAgainMin = std::chrono::milliseconds(10);  // before a missing manifest is requested again
constexpr auto kAgainMax = std::chrono::milliseconds(640);
constexpr std::size_t kFailuresMax = 4096;  // failed resolutions to remember

// Returns the record of a bare version; nothing if its manifest is local.
Result<std::optional<VersionRow>> bare_version(Store& store, VersionId version) {
  WEFT_TRY(const auto snapshot, store.snapshot());
  WEFT_TRY(const bool bare, snapshot->is_bare(version));
  if (!bare) return std::optional<VersionRow>();
  WEFT_TRY(VersionRow row, snapshot->version(version));
  return std::optional(std::move(row));
}

std::size_t memory_bytes(const Manifest& manifest) {
  std::size_t bytes = sizeof manifest;
  for (const File& file : manifest.files)
    bytes += sizeof file + file.extents.size() * sizeof(Extent) + file.tensors.size() * (sizeof(Tensor) + 64);
  return bytes;
}

}  // namespace

Status ManifestFetch::resolve(VersionId version) {
  if (auto failure = failed_before(version)) return std::move(*failure);
  std::promise<Status> mine;
  std::shared_future<Status> others;
  {
    const MutexLock lock(mutex_);
    auto [at, made] = resolving_.try_emplace(version);
    if (made)
      at->second = mine.get_future().share();
    else
      others = at->second;
  }
  if (others.valid()) return others.get();
  const auto begun = Clock::now();
  auto bare = bare_version(store_, version);
  Status resolved = !bare.ok() ? Status(bare.error()) : *bare ? fetch(**bare) : Status();
  if (bare.ok() && !resolved.ok()) remember(version, (*bare)->publisher, resolved.error(), Clock::now() - begun);
  mine.set_value(resolved);
  const MutexLock lock(mutex_);
  resolving_.erase(version);
  return resolved;
}

// Returns the error of a recent resolution, if its publisher has neither joined nor left the cluster since.
std::optional<Error> ManifestFetch::failed_before(VersionId version) {
  std::optional<Failure> failed;
  {
    const MutexLock lock(mutex_);
    if (const auto at = failures_.find(version); at != failures_.end()) failed = at->second;
  }
  if (!failed) return {};
  const auto bare = bare_version(store_, version);
  const bool holds = Clock::now() < failed->until && bare.ok() && *bare;
  if (holds && options_.has_member(failed->publisher) == failed->was_there) return std::move(failed->error);
  const MutexLock lock(mutex_);
  failures_.erase(version);
  return {};
}

// Records a failed resolution, for as long as it took if that is longer than `refused`. So a caller that repeats it
// spends at most half of its time waiting.
void ManifestFetch::remember(VersionId version, const std::string& publisher, const Error& error,
                             Clock::duration took) {
  const bool there = options_.has_member(publisher);
  const auto now = Clock::now();
  const MutexLock lock(mutex_);
  std::erase_if(failures_, [now](const auto& one) { return one.second.until <= now; });
  if (failures_.size() >= kFailuresMax) failures_.clear();
  failures_[version] = {error, publisher, there, now + std::max<Clock::duration>(options_.refused, took)};
}

// Fetches a manifest. Nodes hear of a version before its publisher has given the manifest to the sources. An early
// request waits for that, but not if the publisher is away.
Result<std::vector<std::byte>> ManifestFetch::await(const VersionRow& row) {
  const auto until = Clock::now() + options_.patience;
  for (auto pause = kAgainMin;; pause = std::min(2 * pause, kAgainMax)) {
    const bool there = options_.has_member(row.publisher);
    const bool last = Clock::now() + pause >= until;
    auto bytes = sources_.manifest(row, there && !last);
    if (!bytes.ok() && was_silent(bytes.error()))
      return Error{bytes.error().code, fmt::format("its manifest is not on this node: {}", bytes.error().message)};
    if (bytes.ok() || bytes.error().code != Errc::not_found) return bytes;
    if (!there)
      return Error{Errc::absent, fmt::format("its manifest is not on this node, no node that answers has it, and the "
                                             "node that published it ({}) is away",
                                             row.publisher)};
    if (last)
      return Error{Errc::absent,
                   fmt::format("its manifest is not on this node, and no node has it yet: {}", bytes.error().message)};
    UniqueLock lock(mutex_);
    if (ending_) return bytes;
    ends_.wait_for(lock, pause);
  }
}

Status ManifestFetch::fetch(const VersionRow& row) {
  sources_.expect(row, {});
  WEFT_TRY(auto bytes, await(row));
  const Adoption adoption{row.model_name, row.number, std::move(bytes)};
  WEFT_CHECK(cache_.adopt(std::span(&adoption, 1)));
  log_debug(LogCategory::fetch, "manifest of {}@{}: {} bytes fetched", row.model_name, row.number,
            adoption.manifest.size());
  const MutexLock lock(mutex_);
  ++fetched_;
  return {};
}

Result<std::shared_ptr<const DecodedVersion>> ManifestFetch::content(VersionId version) {
  if (auto known = contents_.find(version)) return known;
  auto made = std::make_shared<DecodedVersion>();
  WEFT_CHECK(resolve(version));
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(made->row, snapshot->version(version));
  }
  WEFT_TRY(const auto bytes, store_.open_manifest(made->row.manifest));
  WEFT_TRY(made->manifest, decode_manifest(bytes->bytes()));
  made->groups = group_files(made->manifest);
  for (const File& file : made->manifest.files) made->bytes += file.size;
  contents_.put(version, made, memory_bytes(made->manifest));
  return std::shared_ptr<const DecodedVersion>(std::move(made));
}

void ManifestFetch::end() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  ends_.notify_all();
}

std::uint64_t ManifestFetch::fetched() const {
  const MutexLock lock(mutex_);
  return fetched_;
}

}  // namespace weft
