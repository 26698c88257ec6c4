// Publishing, tags and removal of versions.
#include <algorithm>

#include <fmt/core.h>

#include "archindex/index.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "diskformat/pack_names.h"
#include "os/sys.h"
#include "packs/import.h"
#include "store/store_impl.h"

namespace weft {

std::vector<PackId> pack_ids(std::span<const NewBlob> blobs) {
  std::vector<PackId> packs;
  for (const NewBlob& blob : blobs) packs.push_back(blob.place.pack);
  std::sort(packs.begin(), packs.end());
  packs.erase(std::unique(packs.begin(), packs.end()), packs.end());
  return packs;
}

Status check_request(const PublishRequest& request) {
  const std::pair<std::size_t, std::size_t> bounds[] = {
      {request.manifest.size(), limits::kManifestMax}, {request.content.files.size(), limits::kFilesPerVersionMax},
      {request.message.size(), limits::kMessageMax},   {request.metrics.size(), limits::kMetricsMax},
      {request.parents.size(), limits::kParentsMax},   {request.elsewhere.size(), limits::kParentsMax}};
  const std::string_view names[] = {"manifest bytes", "files",   "message bytes",
                                    "metrics",        "parents", "parents that are not stored"};
  for (std::size_t i = 0; i < std::size(bounds); ++i)
    if (bounds[i].first > bounds[i].second)
      return Error{Errc::invalid, fmt::format("{}: {}: expected at most {}, got {}", request.model, names[i],
                                              bounds[i].second, bounds[i].first)};
  return {};
}

namespace {

std::vector<TagWish> wishes_of(const std::vector<std::string>& tags, std::uint64_t number) {
  std::vector<TagWish> wishes;
  wishes.reserve(tags.size());
  for (const std::string& tag : tags) wishes.emplace_back(tag, number);
  std::sort(wishes.begin(), wishes.end());
  wishes.erase(std::unique(wishes.begin(), wishes.end()), wishes.end());
  return wishes;
}

// Applies the tag changes. Returns their event; none if nothing changes.
Result<std::vector<Event>> apply_wishes(Txn& txn, std::string_view model, const std::vector<TagWish>& wishes) {
  WEFT_TRY(TagsEvent event, plan_tags(txn, model, wishes));
  if (event.changes.empty()) return std::vector<Event>();
  WEFT_CHECK(apply_tags(txn, event));
  return std::vector<Event>{std::move(event)};
}

// True if the index knows any of these packs. That happens only after a rebuild.
bool any_indexed(Txn& txn, std::span<const NewBlob> blobs) {
  return std::any_of(blobs.begin(), blobs.end(), [&txn](const NewBlob& blob) {
    auto found = find_blob(txn, blob.id);
    return !found.ok() || (*found && (*found)->row.place.pack == blob.place.pack);
  });
}

class StoreImport final : public Import {
 public:
  StoreImport(StoreImpl& store, std::unique_ptr<Importer> packs) : store_(store), packs_(std::move(packs)) {}

  Result<std::vector<Extent>> add(int fd, std::string_view where, std::span<const Range> ranges, Take take,
                                  Progress& progress, const SeenBytes& seen) override {
    if (!packs_) return Error{Errc::internal, "add after publish"};
    return packs_->add(fd, where, ranges, progress, take, seen);
  }

  Status seal(const GiveManifest& manifest) override {
    if (!packs_ || sealed_) return Error{Errc::internal, "seal after seal or publish"};
    WEFT_TRY(sealed_, store_.seal(manifest, *packs_));
    return {};
  }

  Result<PublishOutcome> publish(const PublishRequest& request) override {
    WEFT_CHECK(seal_if_open(request));
    const std::unique_ptr<Importer> packs = std::move(packs_);
    return store_.publish(request, *std::move(sealed_), *packs);
  }

  Result<std::unique_ptr<PreparedPublish>> prepare(const PublishRequest& request) override {
    WEFT_CHECK(seal_if_open(request));
    return store_.prepare(request, *std::move(sealed_), std::move(packs_));
  }

 private:
  Status seal_if_open(const PublishRequest& request) {
    if (!packs_) return Error{Errc::internal, "publish after publish"};
    return sealed_ ? Status{} : seal([&request](const auto& use) { return use(request.manifest); });
  }

  StoreImpl& store_;
  std::unique_ptr<Importer> packs_;
  std::optional<SealedManifest> sealed_;
};

}  // namespace

Result<std::unique_ptr<Import>> StoreImpl::begin_import(Durability durability) {
  WEFT_CHECK(parts_.check_writable());
  WEFT_TRY(std::unique_ptr<Importer> packs,
           Importer::begin(parts_.path, parts_.blobs,
                           {.patience = parts_.options.patience, .in_memory = durability == Durability::memory}));
  return std::unique_ptr<Import>(std::make_unique<StoreImport>(*this, std::move(packs)));
}

// Packs and manifest share one wait for the disk.
Result<SealedManifest> StoreImpl::seal(const GiveManifest& manifest, Importer& packs) const {
  WEFT_CHECK(packs.begin_seal());
  SealedManifest sealed;
  WEFT_CHECK(manifest([&](std::span<const std::byte> bytes) -> Status {
    if (bytes.size() > limits::kManifestMax)
      return Error{Errc::invalid,
                   fmt::format("manifest bytes: expected at most {}, got {}", limits::kManifestMax, bytes.size())};
    sealed.digest = sha256(bytes);
    WEFT_TRY(sealed.staged, parts_.manifests.stage(sealed.digest, bytes, kept()));
    return {};
  }));
  sealed.staged.begin_sync();
  WEFT_CHECK(packs.seal());
  WEFT_CHECK(sealed.staged.sync());
  return sealed;
}

// All renames come before the first directory sync, because that sync writes the other renames too.
Status StoreImpl::place(SealedManifest manifest, Importer& packs) const {
  WEFT_CHECK(parts_.manifests.place(std::move(manifest.staged), manifest.digest, kept()));
  WEFT_CHECK(packs.place());
  return parts_.manifests.sync();
}

// Takes the writer lock while the store has all content that the import shares with it. If gc has freed shared content
// meanwhile, the import stores it again and retries. Each round leaves less shared content, so the loop ends.
Result<WriterLock> StoreImpl::lock_with_shared(Importer& packs) {
  for (;;) {
    std::vector<ContentId> lost;
    {
      WEFT_TRY(WriterLock lock, parts_.index.lock());
      WEFT_TRY(lost, packs.lost());
      if (lost.empty()) return lock;
    }
    WEFT_CHECK(packs.store_again(lost));
  }
}

Result<PublishOutcome> StoreImpl::publish(const PublishRequest& request, SealedManifest manifest, Importer& packs) {
  auto outcome = try_publish(request, manifest.digest, [&]() -> Result<Placed> {
    WEFT_TRY(WriterLock lock, lock_with_shared(packs));
    WEFT_CHECK(place(std::move(manifest), packs));
    return Placed{std::move(lock), packs.new_blobs(), packs.in_memory()};
  });
  if (!outcome.ok() || !outcome->made) discard(packs.new_blobs());
  return outcome;
}

Result<PublishOutcome> StoreImpl::publish(const PublishRequest& request, std::span<const NewBlob> new_blobs) {
  const Digest manifest = sha256(request.manifest);
  auto outcome = try_publish(request, manifest, [&]() -> Result<Placed> {
    WEFT_TRY(WriterLock lock, parts_.index.lock());
    WEFT_CHECK(parts_.manifests.put(manifest, request.manifest));
    return Placed{std::move(lock), new_blobs};
  });
  if (!outcome.ok() || !outcome->made) discard(new_blobs);
  return outcome;
}

Result<PublishOutcome> StoreImpl::try_publish(const PublishRequest& request, const Digest& manifest,
                                              const std::function<Result<Placed>()>& place) {
  WEFT_CHECK(parts_.cluster.check_alone());
  WEFT_CHECK(check_request(request));
  foresee(request);
  if (!is_large(request.content)) return commit_publish(request, manifest, place);
  WEFT_TRY(const Fd collector, lock_for_taking());
  auto outcome = commit_publish(request, manifest, place);
  if (!outcome.ok() || !outcome->made) static_cast<void>(give_up_taking(no_progress()));
  return outcome;
}

Result<PublishOutcome> StoreImpl::commit_publish(const PublishRequest& request, const Digest& manifest,
                                                 const std::function<Result<Placed>()>& place) {
  WEFT_TRY(Placed placed, place());
  WEFT_CHECK(replace_damaged(*placed.lock, placed.new_blobs));
  std::optional<TakenContent> taken;
  std::uint64_t taken_bytes = 0;
  if (is_large(request.content)) {
    WEFT_TRY(taken, take_content(request, manifest, placed, taken_bytes));
  }
  PublishOutcome outcome;
  WEFT_CHECK(parts_.index.commit(*placed.lock, [&, new_blobs = placed.new_blobs](Txn& txn) -> Result<Events> {
    outcome = {};
    WEFT_TRY(std::optional<VersionRow> same, newest_with(txn, request.model, manifest));
    if (same) {
      outcome.version = *same;
      return apply_wishes(txn, request.model, wishes_of(request.tags, same->number));
    }
    WEFT_TRY(PublishEvent event, plan_publish(txn, request, manifest, pack_ids(new_blobs), taken ? &*taken : nullptr));
    PublishInput input;
    input.content = &request.content;
    input.new_blobs = new_blobs;
    WEFT_TRY(outcome.new_bytes, apply_publish(txn, event, input));
    outcome.new_bytes += taken_bytes;
    outcome.version = event.version;
    outcome.made = true;
    WEFT_TRY(const bool in_memory, placed.in_memory ? Result(true) : relies_on_memory(txn, request));
    Events events;
    if (in_memory) {
      WEFT_TRY(events, set_note(txn, event.version, VersionNote::in_memory, true));
    }
    events.insert(events.begin(), std::move(event));
    return events;
  }));
  outcome.shared_bytes = outcome.version.logical_bytes - std::min(outcome.new_bytes, outcome.version.logical_bytes);
  return outcome;
}

// Preloads index pages for the publish. Best effort: the transaction itself reports errors.
void StoreImpl::foresee(const PublishRequest& request) const {
  auto txn = parts_.index.read();
  if (!txn.ok()) return;
  VersionRow version;
  version.id = UINT64_MAX;
  version.metrics = request.metrics;
  static_cast<void>(foresee_architecture(*txn, version, request.content.architecture));
}

// Points the index to new copies of blobs whose stored copy an import found damaged. The journal does not record that,
// as for a compaction: if a rebuild finds two copies, it takes the one that verifies.
Status StoreImpl::replace_damaged(const WriterLock& lock, std::span<const NewBlob> new_blobs) {
  if (std::ranges::none_of(new_blobs, &NewBlob::replaces)) return {};
  return parts_.index.write(lock, [&](Txn& txn) -> Status {
    for (const NewBlob& blob : new_blobs) {
      if (!blob.replaces) continue;
      WEFT_TRY(const std::optional<FoundBlob> found, find_blob(txn, blob.id));
      if (found) WEFT_CHECK(place_blob(txn, *found, blob.place));
    }
    return bump_sequence(txn);
  });
}

// Removes the packs of a publish that failed or made no version, unless the journal may name them. Best effort: gc
// removes the rest.
void StoreImpl::discard(std::span<const NewBlob> blobs) {
  auto lock = parts_.index.env().lock_writer();  // without a replay of the journal, which may be what failed
  if (!lock.ok()) return;
  auto txn = parts_.index.read();
  if (!txn.ok()) return;
  auto counters = get_counters(*txn);
  auto journal = parts_.index.journal().size();
  if (!counters.ok() || !journal.ok() || counters->journal_end != *journal) return;
  if (!any_indexed(*txn, blobs))
    for (PackId pack : pack_ids(blobs)) {
      static_cast<void>(remove_file(pack_path(parts_.path, pack)));
      static_cast<void>(remove_file(toc_path(parts_.path, pack)));
    }
}

Status StoreImpl::set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number) {
  WEFT_CHECK(parts_.cluster.check_alone());
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  return parts_.index.commit_with_spare(lock, [&](Txn& txn) {
    return apply_wishes(txn, model, {{std::string(tag), number}});
  });
}

// If a version was removed meanwhile, the batch ends before it, and the next batch begins with it.
Result<std::size_t> StoreImpl::remove_versions(std::span<const VersionName> versions) {
  WEFT_CHECK(parts_.cluster.check_alone());
  versions = versions.first(std::min(versions.size(), limits::kBatchItems));
  std::size_t removed = 0;
  WEFT_TRY(const WriterLock lock, parts_.index.lock());
  WEFT_CHECK(parts_.index.commit_with_spare(lock, [&](Txn& txn) -> Result<Events> {
    Events events;
    for (std::size_t rows = 0; events.size() < versions.size() && rows < limits::kBatchRows;) {
      const auto& [model, number] = versions[events.size()];
      auto event = plan_removal(txn, model, number);
      if (!event.ok() && event.error().code == Errc::not_found && !events.empty()) break;
      if (!event.ok()) return std::move(event).error();
      WEFT_TRY(const std::size_t more, parts_.index.remove(txn, *event));
      rows += more;
      events.emplace_back(std::move(*event));
    }
    removed = events.size();
    return events;
  }));
  return removed;
}

}  // namespace weft
