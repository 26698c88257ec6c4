#include "store/publishing/publisher.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "catalog/apply.h"
#include "catalog/mirroring.h"
#include "catalog/plan.h"
#include "packs/import.h"
#include "store/publishing/memory_versions.h"
#include "store/publishing/prepared_publishes.h"
#include "store/publishing/publish_steps.h"

namespace weft {
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
Result<std::vector<Event>> apply_wishes(Txn& txn, std::string_view model, const std::vector<TagWish>& wishes,
                                        const Author& by) {
  WEFT_TRY(TagsEvent event, plan_tags(txn, model, wishes, by));
  if (event.changes.empty()) return std::vector<Event>();
  WEFT_CHECK(apply_tags(txn, event));
  return std::vector<Event>{std::move(event)};
}

Result<PublishOutcome> commit_publish(StoreParts& parts, const PublishRequest& request, const Digest& manifest,
                                      const PlaceBlobs& place) {
  WEFT_TRY(Placed placed, place());
  WEFT_CHECK(replace_damaged(parts, *placed.lock, placed.new_blobs));
  std::optional<TakenContent> taken;
  std::uint64_t taken_bytes = 0;
  if (is_large(request.content)) {
    WEFT_TRY(taken, take_content(parts, request, manifest, placed, taken_bytes));
  }
  PublishOutcome outcome;
  WEFT_CHECK(parts.index.commit(*placed.lock, [&, new_blobs = placed.new_blobs](Txn& txn) -> Result<Events> {
    outcome = {};
    WEFT_TRY(std::optional<VersionRow> same, same_as(txn, request, manifest));
    if (same) {
      outcome.version = *same;
      WEFT_TRY(outcome.in_memory, has_note(txn, kInMemory, same->id));
      return apply_wishes(txn, request.model, wishes_of(request.tags, same->number), request.by);
    }
    WEFT_TRY(PublishEvent event, plan_publish(txn, request, manifest, pack_ids(new_blobs), taken ? &*taken : nullptr));
    PublishInput input;
    input.content = &request.content;
    input.new_blobs = new_blobs;
    WEFT_TRY(outcome.new_bytes, apply_publish(txn, event, input));
    outcome.new_bytes += taken_bytes;
    outcome.version = event.version;
    outcome.made = true;
    WEFT_TRY(outcome.in_memory, placed.in_memory ? Result(true) : relies_on_memory(parts, txn, request));
    Events events;
    if (outcome.in_memory) {
      WEFT_TRY(events, set_note(txn, event.version, VersionNote::in_memory, true));
    }
    events.insert(events.begin(), std::move(event));
    return events;
  }));
  outcome.shared_bytes = outcome.version.logical_bytes - std::min(outcome.new_bytes, outcome.version.logical_bytes);
  return outcome;
}

// Commits a sealed import. Removes its packs if it makes no version.
Result<PublishOutcome> publish_sealed(StoreParts& parts, const PublishRequest& request, SealedManifest manifest,
                                      Importer& packs) {
  auto outcome = publish(parts, request, manifest.digest, [&]() -> Result<Placed> {
    WEFT_TRY(WriterLock lock, lock_with_shared(parts, packs));
    WEFT_CHECK(place(parts, std::move(manifest), packs));
    return Placed{std::move(lock), packs.new_blobs(), packs.in_memory()};
  });
  if (!outcome.ok() || !outcome->made) discard(parts, packs.new_blobs());
  return outcome;
}

// Keeps the record of a version that another store has removed, so that its number is not used again.
Result<PublishOutcome> publish_removed(StoreParts& parts, const VersionRow& given) {
  WEFT_CHECK(parts.cluster.check_alone());
  WEFT_TRY(const WriterLock lock, parts.index.lock());
  MirrorSources sources;
  sources.restores = true;
  MirroredVersion removed;
  removed.version = given;
  removed.tags = given.removed_tags;
  const MirrorChange change = std::move(removed);
  MirrorOutcome outcome;
  const auto make = [&](Txn& txn) -> Result<Events> {
    outcome = {};
    Mirroring mirroring(txn, sources, outcome);
    WEFT_CHECK(mirroring.take(change));
    return mirroring.take_events();
  };
  WEFT_CHECK(parts.index.commit_with_spare(lock, make));
  if (!outcome.problems.empty()) return Error{Errc::exists, outcome.problems.front()};
  PublishOutcome published;
  published.version = given;
  published.made = outcome.applied > 0;
  return published;
}

class StoreImport final : public Import {
 public:
  StoreImport(StoreParts& parts, std::unique_ptr<Importer> packs) : parts_(parts), packs_(std::move(packs)) {}

  Result<std::vector<Extent>> add(int fd, std::string_view where, std::span<const Range> ranges, Take take,
                                  Progress& progress, const ByteUses& uses) override {
    if (!packs_) return Error{Errc::internal, "add after publish"};
    return packs_->add(fd, where, ranges, progress, take, uses);
  }

  void finish_sums() override {
    if (packs_) packs_->finish_sums();
  }

  Result<std::vector<std::optional<Digest>>> sums_of(std::span<const std::span<const Extent>> files,
                                                     Progress& progress) override {
    if (!packs_) return Error{Errc::internal, "sums after publish"};
    return packs_->sums_of(files, progress);
  }

  Status seal(const GiveManifest& manifest) override {
    if (!packs_ || sealed_) return Error{Errc::internal, "seal after seal or publish"};
    WEFT_TRY(sealed_, weft::seal(parts_, manifest, *packs_));
    return {};
  }

  Result<PublishOutcome> publish(const PublishRequest& request) override {
    if (request.given && request.given->removed) return publish_removed(parts_, *request.given);
    WEFT_CHECK(seal_if_open(request));
    const std::unique_ptr<Importer> packs = std::move(packs_);
    return publish_sealed(parts_, request, *std::move(sealed_), *packs);
  }

  Result<std::unique_ptr<PreparedPublish>> prepare(const PublishRequest& request) override {
    WEFT_CHECK(seal_if_open(request));
    return prepare_publish(parts_, request, *std::move(sealed_), std::move(packs_));
  }

 private:
  Status seal_if_open(const PublishRequest& request) {
    if (!packs_) return Error{Errc::internal, "publish after publish"};
    return sealed_ ? Status{} : seal([&request](const auto& use) { return use(request.manifest); });
  }

  StoreParts& parts_;
  std::unique_ptr<Importer> packs_;
  std::optional<SealedManifest> sealed_;
};

}  // namespace

Result<std::unique_ptr<Import>> begin_import(StoreParts& parts, Durability durability) {
  WEFT_CHECK(parts.check_writable());
  WEFT_TRY(std::unique_ptr<Importer> packs,
           Importer::begin(parts.path, parts.blobs,
                           {.patience = parts.options.patience, .in_memory = durability == Durability::memory}));
  return std::unique_ptr<Import>(std::make_unique<StoreImport>(parts, std::move(packs)));
}

Result<PublishOutcome> publish(StoreParts& parts, const PublishRequest& request, const Digest& manifest,
                               const PlaceBlobs& place) {
  WEFT_CHECK(parts.cluster.check_alone());
  WEFT_CHECK(check_request(request));
  foresee(parts, request);
  if (!is_large(request.content)) return commit_publish(parts, request, manifest, place);
  WEFT_TRY(const Fd collector, lock_for_attaching(parts));
  auto outcome = commit_publish(parts, request, manifest, place);
  if (!outcome.ok() || !outcome->made) static_cast<void>(abandon_attach(parts, no_progress()));
  return outcome;
}

Status set_tag(StoreParts& parts, std::string_view model, std::string_view tag, std::optional<std::uint64_t> number,
               const Author& by) {
  WEFT_CHECK(parts.cluster.check_alone());
  WEFT_TRY(WriterLock lock, parts.index.lock());
  return parts.index.commit_with_spare(lock, [&](Txn& txn) {
    return apply_wishes(txn, model, {{std::string(tag), number}}, by);
  });
}

Status describe(StoreParts& parts, std::string_view model, std::uint64_t number, const DescriptionChange& change) {
  WEFT_CHECK(parts.cluster.check_alone());
  WEFT_TRY(WriterLock lock, parts.index.lock());
  return parts.index.commit_with_spare(lock, [&](Txn& txn) -> Result<Events> {
    WEFT_TRY(std::optional<DescriptionEvent> event, plan_description(txn, model, number, change));
    if (!event) return Events();
    WEFT_CHECK(apply_description(txn, *event));
    return Events{std::move(*event)};
  });
}

Status protect_tag(StoreParts& parts, std::string_view model, std::string_view tag, bool on, const Author& by) {
  WEFT_CHECK(parts.cluster.check_alone());
  WEFT_TRY(WriterLock lock, parts.index.lock());
  return parts.index.commit_with_spare(lock, [&](Txn& txn) -> Result<Events> {
    WEFT_TRY(std::optional<TagsEvent> event, plan_protection(txn, model, tag, on, by));
    if (!event) return Events();
    WEFT_CHECK(apply_tags(txn, *event));
    return Events{*std::move(event)};
  });
}

Status rename_model(StoreParts& parts, std::string_view model, std::string_view to, const Author& by) {
  WEFT_CHECK(parts.cluster.check_alone());
  WEFT_TRY(WriterLock lock, parts.index.lock());
  return parts.index.commit_with_spare(lock, [&](Txn& txn) -> Result<Events> {
    WEFT_TRY(RenameEvent event, plan_rename(txn, model, to, by));
    WEFT_CHECK(apply_rename(txn, event));
    return Events{std::move(event)};
  });
}

// If a version was removed or got a tag meanwhile, the batch ends before it, and the next batch begins with it.
Result<std::size_t> remove_versions(StoreParts& parts, std::span<const VersionName> versions, Tagged tagged,
                                    const Author& by) {
  WEFT_CHECK(parts.cluster.check_alone());
  versions = versions.first(std::min(versions.size(), limits::kBatchItems));
  std::size_t removed = 0;
  WEFT_TRY(const WriterLock lock, parts.index.lock());
  WEFT_CHECK(parts.index.commit_with_spare(lock, [&](Txn& txn) -> Result<Events> {
    Events events;
    for (std::size_t rows = 0; events.size() < versions.size() && rows < limits::kBatchRows;) {
      const auto& [model, number] = versions[events.size()];
      auto event = plan_removal(txn, model, number, by);
      if (event.ok() && tagged == Tagged::refused && !event->tags.empty()) event = has_tags(model, number, event->tags);
      const bool other = !event.ok() && (event.error().code == Errc::not_found || event.error().code == Errc::exists);
      if (other && !events.empty()) break;
      if (!event.ok()) return std::move(event).error();
      WEFT_TRY(const std::size_t more, parts.index.remove(txn, *event));
      rows += more;
      events.emplace_back(std::move(*event));
    }
    removed = events.size();
    return events;
  }));
  return removed;
}

Status pin(StoreParts& parts, std::string_view model, std::uint64_t number, bool pinned) {
  WEFT_TRY(WriterLock lock, parts.index.lock());
  return parts.index.commit_with_spare(lock, [&](Txn& txn) -> Result<Events> {
    WEFT_TRY(VersionRow version, live_version(txn, model, number));
    return set_note(txn, version, VersionNote::pinned, pinned);
  });
}

}  // namespace weft
