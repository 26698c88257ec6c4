#include "store/publishing/undeletes.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "catalog/apply.h"
#include "catalog/plan.h"
#include "catalog/undelete.h"
#include "index/tables.h"
#include "index/version_life.h"
#include "os/file_ops.h"
#include "store/publishing/memory_versions.h"
#include "store/publishing/promotions.h"
#include "weft/store/publish.h"

namespace weft {
namespace {

Error not_removed(const VersionRow& row) {
  return Error{Errc::exists, fmt::format("{}: it is not removed", spec_of(row))};
}

Error freed(const VersionRow& row) {
  return Error{Errc::absent, fmt::format("{}: gc has freed its content", spec_of(row))};
}

Error lost(const VersionRow& row, std::string_view why) {
  return Error{Errc::absent, fmt::format("{}: bytes of it are lost: {}", spec_of(row), why)};
}

Error renamed(const std::string& model, std::uint64_t number, const std::string& to) {
  return Error{Errc::not_found, fmt::format("{} was renamed to {}", spec_of(model, number), spec_of(to, number))};
}

// A removed version, held, with its content.
struct Undeletable {
  VersionRow row;
  VersionHold hold;
  VersionContent content;
};

Result<VersionRow> removed_version(StoreParts& parts, std::string_view model_name, std::uint64_t number) {
  WEFT_TRY(Txn txn, parts.index.read());
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, model_name));
  if (!model) return no_model(txn, model_name);
  WEFT_TRY(std::optional<VersionRow> version, find_version(txn, model->id, number));
  if (!version && number < model->first_number) {
    WEFT_TRY(const std::optional<ModelRow> before, find_renamed(txn, model_name));
    if (before) return renamed(model->name, number, before->name);
  }
  if (!version)
    return Error{Errc::not_found, fmt::format("{}: there was no such version", spec_of(model->name, number))};
  if (!version->removed) return not_removed(*version);
  if (!version->lost.empty()) return lost(*version, version->lost);
  return *std::move(version);
}

// Holds the version before it reads the state: gc claims a version before it frees it.
Result<Undeletable> hold_removed(StoreParts& parts, std::string_view model, std::uint64_t number) {
  WEFT_TRY(VersionRow row, removed_version(parts, model, number));
  auto hold = parts.open_versions->hold(row.id);
  if (!hold.ok() && hold.error().code == Errc::busy) return freed(row);
  if (!hold.ok()) return std::move(hold).error();
  {
    WEFT_TRY(Txn txn, parts.index.read());
    WEFT_TRY(const VersionState state, state_of(txn, row.id));
    if (state == VersionState::absent) return freed(row);
  }
  auto content = parts.contents.of(row.manifest);
  if (content.ok()) return Undeletable{std::move(row), *std::move(hold), *std::move(content)};
  const Errc code = content.error().code;
  if (code == Errc::not_found || code == Errc::corrupt) return lost(row, content.error().message);
  return std::move(content).error();
}

// Checks that the packs are there, and were not only in memory when the machine stopped.
Status check_packs(const StoreParts& parts, const VersionRow& row, const std::set<PackId>& packs) {
  for (const PackId pack : packs) {
    const auto toc = parts.packs.toc(pack);
    if (!toc.ok()) return lost(row, toc.error().message);
    if (const auto st = stat_file(parts.packs.pack_file(pack)); !st.ok()) return lost(row, st.error().message);
    if (!toc->boot.empty() && toc->boot != boot_id())
      return lost(row, "they were only in the memory of this machine when that stopped");
  }
  return {};
}

// Plans the undelete, and finds what the content relies on. Reads the row again: the model may have another name by
// now. Errc::absent: a part of the content is gone.
Result<UndeleteEvent> plan_whole(StoreParts& parts, Txn& txn, Undeletable& found, Reliance& reliance) {
  WEFT_TRY(found.row, need_row<VersionRow>(txn, Table::versions, key_of(found.row.id)));
  const VersionRow& row = found.row;
  if (!row.removed) return not_removed(row);
  WEFT_TRY(UndeleteEvent event, plan_undelete(txn, row, &found.content, found.content.tree_nodes, now_ns()));
  if (event.reaped) return freed(row);
  if (event.bare) return lost(row, "this node never had its content");
  auto relies = reliance_of(txn, blobs_of(found.content), [](PackId) { return true; });
  if (!relies.ok() && relies.error().code == Errc::invalid) return lost(row, relies.error().message);
  if (!relies.ok()) return std::move(relies).error();
  WEFT_CHECK(check_packs(parts, row, relies->held));
  reliance = *std::move(relies);
  return event;
}

Result<bool> is_in_memory(StoreParts& parts, Txn& txn, const Undeletable& found) {
  PublishRequest request;
  request.parents = found.row.parents;
  request.content = found.content;
  return relies_on_memory(parts, txn, request);
}

// Sets the tags of before the removal, unless they lead to another version by now. Returns their event if there is any.
Result<std::optional<TagsEvent>> set_tags_again(Txn& txn, const VersionRow& removed, const Author& by,
                                                UndeletedVersion& done) {
  std::vector<TagWish> wishes;
  for (const std::string& tag : removed.removed_tags) {
    WEFT_TRY(const auto known, find_row<TagRow>(txn, Table::tags, tag_key(removed.model, tag)));
    if (known)
      done.moved.push_back({tag, known->number});
    else
      wishes.emplace_back(tag, removed.number);
    if (!known) done.tags.push_back(tag);
  }
  if (wishes.empty()) return std::optional<TagsEvent>();
  WEFT_TRY(TagsEvent event, plan_tags(txn, removed.model_name, wishes, by));
  WEFT_CHECK(apply_tags(txn, event));
  return std::optional(std::move(event));
}

class StorePreparedUndelete final : public PreparedUndelete {
 public:
  StorePreparedUndelete(StoreParts& parts, Undeletable found) : parts_(parts), found_(std::move(found)) {}
  ~StorePreparedUndelete() override {
    if (promotion_.number == 0) return;
    kept_ ? end_promotion(parts_, promotion_) : undo_promotion(parts_, promotion_);
  }

  // Makes cached packs that the version needs packs of this node, as a publish does.
  Status prepare() {
    WEFT_TRY(const WriterLock lock, parts_.index.lock());
    Reliance reliance;
    {
      WEFT_TRY(Txn txn, parts_.index.read());
      WEFT_CHECK(plan_whole(parts_, txn, found_, reliance));
      WEFT_TRY(in_memory_, is_in_memory(parts_, txn, found_));
    }
    relies_on_ = std::move(reliance.versions);
    promotion_ = {std::move(reliance.held), std::move(reliance.cached), {}, found_.row.manifest, 0};
    promotion_.number = parts_.reliances.add(promotion_);
    return promote(parts_, lock, promotion_);
  }

  const std::vector<VersionName>& relies_on() const override { return relies_on_; }
  bool in_memory() const override { return in_memory_; }
  void keep() override { kept_ = true; }

 private:
  StoreParts& parts_;
  Undeletable found_;
  std::vector<VersionName> relies_on_;
  Promotion promotion_;
  bool in_memory_ = false;
  bool kept_ = false;
};

}  // namespace

Result<UndeletedVersion> undelete(StoreParts& parts, std::string_view model, std::uint64_t number, const Author& by) {
  WEFT_CHECK(parts.cluster.check_alone());
  WEFT_TRY(Undeletable found, hold_removed(parts, model, number));
  WEFT_TRY(const WriterLock lock, parts.index.lock());
  UndeletedVersion done;
  Status committed = parts.index.commit_with_spare(lock, [&](Txn& txn) -> Result<Events> {
    Reliance reliance;
    WEFT_TRY(UndeleteEvent event, plan_whole(parts, txn, found, reliance));
    done = {found.row.model_name, number, {}, {}};
    if (!reliance.versions.empty()) return lost(found.row, "damage was found in them");
    WEFT_CHECK(check_hides_none(txn, found.row.model_name));
    WEFT_CHECK(check_kind(txn, found.row.model_name, found.row.kind));
    PublishInput input;
    input.content = &found.content;
    WEFT_CHECK(apply_undelete(txn, event, input));
    Events events;
    events.emplace_back(std::move(event));
    WEFT_TRY(std::optional<TagsEvent> tags, set_tags_again(txn, found.row, by, done));
    if (tags) events.emplace_back(*std::move(tags));
    WEFT_TRY(const bool in_memory, is_in_memory(parts, txn, found));
    if (!in_memory) return events;
    WEFT_TRY(Events noted, set_note(txn, found.row, VersionNote::in_memory, true));
    events.insert(events.end(), std::move_iterator(noted.begin()), std::move_iterator(noted.end()));
    return events;
  });
  WEFT_CHECK(std::move(committed));
  return done;
}

Result<std::unique_ptr<PreparedUndelete>> prepare_undelete(StoreParts& parts, std::string_view model,
                                                           std::uint64_t number) {
  WEFT_CHECK(parts.cluster.check_clustered());
  WEFT_TRY(Undeletable found, hold_removed(parts, model, number));
  auto prepared = std::make_unique<StorePreparedUndelete>(parts, std::move(found));
  WEFT_CHECK(prepared->prepare());
  return std::unique_ptr<PreparedUndelete>(std::move(prepared));
}

}  // namespace weft
