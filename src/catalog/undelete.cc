#include "catalog/undelete.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "archindex/index.h"
#include "catalog/apply_names.h"
#include "catalog/content.h"
#include "catalog/plan.h"
#include "catalog/release.h"
#include "index/tables.h"
#include "index/version_life.h"

namespace weft {
namespace {

// The rows that this node still has of a removed version.
struct Remains {
  VersionState state = VersionState::absent;
  LocalRow local;              // unless absent
  std::uint64_t released = 0;  // releasing: the steps that gc has taken
};

Result<Remains> remains_of(Txn& txn, VersionId version) {
  Remains remains;
  WEFT_TRY(remains.state, state_of(txn, version));
  if (remains.state == VersionState::absent) return remains;
  WEFT_TRY(remains.local, need_row<LocalRow>(txn, Table::locals, key_of(version)));
  WEFT_TRY(const auto released, note_value(txn, kReleasing, version));
  remains.released = released.value_or(0);
  return remains;
}

// True if the version had this content at its removal. False if the version was bare.
bool had(const LocalRow& local, const VersionContent& content) {
  return local.view_inos.size() == content.views.size() && local.ino_count == content.tree_nodes &&
         numbers_in(local.blobs).size() == ContentReferences(content).blob_count();
}

// The state that a version can return to. absent: gc has released its content, or a part of its inodes.
Result<VersionState> returns_to(Txn& txn, VersionId version, const Remains& remains, const VersionContent* content) {
  if (remains.state == VersionState::unreaped) {
    if (content != nullptr && had(remains.local, *content)) return VersionState::whole;
    const bool was_bare = remains.local.view_inos.empty() && remains.local.blobs.empty();
    return was_bare ? VersionState::bare : VersionState::absent;
  }
  if (remains.state != VersionState::releasing) return VersionState::absent;
  if (content == nullptr) return damaged(txn, fmt::format("the manifest of version {} cannot be read", version));
  WEFT_CHECK(check_shape(txn, remains.local, *content));
  const bool held = remains.released <= ContentRelease(version, remains.local, *content).held_steps();
  return held ? VersionState::whole : VersionState::absent;
}

Status release_views(Txn& txn, const LocalRow& local) {
  for (const Ino ino : std::set<Ino>(local.view_inos.begin(), local.view_inos.end()))
    WEFT_CHECK(release_view(txn, ino));
  return {};
}

// Releases what gc has left.
Status release_rest(Txn& txn, const VersionRow& version, const Remains& remains, const VersionContent* content) {
  if (remains.state == VersionState::absent) return {};
  if (remains.state == VersionState::releasing) {
    if (content == nullptr) return damaged(txn, fmt::format("the manifest of version {} cannot be read", version.id));
    WEFT_CHECK(check_shape(txn, remains.local, *content));
    const ContentRelease release(version.id, remains.local, *content);
    WEFT_CHECK(release.release(txn, remains.released, release.steps()));
  } else {
    WEFT_CHECK(release_views(txn, remains.local));
  }
  auto forgotten = forget_version(txn, version, remains.local);
  return forgotten.ok() ? Status{} : Status{std::move(forgotten).error()};
}

// Returns the version's content to it.
Status take_back(Txn& txn, const VersionRow& version, const LocalRow& local, const Remains& remains,
                 const PublishInput& input) {
  WEFT_CHECK(enter(txn, version.id, VersionState::whole));
  WEFT_CHECK(check_shape(txn, local, *input.content));
  const ContentRelease release(version.id, local, *input.content);
  const bool all = remains.state == VersionState::unreaped;
  const std::uint64_t end = all ? release.held_steps() : std::min(remains.released, release.held_steps());
  WEFT_CHECK(release.take_back(txn, end, numbers_in(local.blobs), input));
  WEFT_CHECK(put(txn, Table::locals, key_of(version.id), local));
  return add_architecture(txn, version, input.content->architecture);
}

// Gives the version the rows of this node that the event says.
Status bring_back(Txn& txn, const VersionRow& version, const UndeleteEvent& event, const PublishInput& input) {
  WEFT_TRY(const Remains remains, remains_of(txn, version.id));
  if (event.reaped || input.reaped) WEFT_CHECK(release_rest(txn, version, remains, input.content));
  if (input.reaped) return {};
  const bool left = remains.state != VersionState::absent && !event.reaped;
  LocalRow local = event.local;
  if (event.bare || input.content == nullptr || !left) {
    WEFT_CHECK(enter(txn, version.id, VersionState::bare));
    if (!left) return put_local(txn, version, local);
    WEFT_CHECK(release_views(txn, remains.local));
    return put(txn, Table::locals, key_of(version.id), local);
  }
  local.outline = input.content->outline;
  return take_back(txn, version, local, remains, input);
}

}  // namespace

Result<UndeleteEvent> plan_undelete(Txn& txn, const VersionRow& version, const VersionContent* content,
                                    std::uint64_t tree_nodes, std::uint64_t time_ns) {
  WEFT_TRY(Remains remains, remains_of(txn, version.id));
  WEFT_TRY(const VersionState state, returns_to(txn, version.id, remains, content));
  WEFT_TRY(const Counters counters, get_counters(txn));
  UndeleteEvent event;
  event.sequence = counters.sequence + 1;
  event.model = version.model_name;
  event.number = version.number;
  event.uid = version.uid;
  event.time_ns = std::max(time_ns, version.removed_ns + 1);
  event.bare = state != VersionState::whole;
  event.reaped = state == VersionState::absent;
  if (event.reaped) {
    Allocator inos(counters);
    event.local.ino_count = tree_nodes;
    event.local.ino_base = inos.range(tree_nodes);
    WEFT_CHECK(inos.check_room());
    return event;
  }
  event.local = std::move(remains.local);
  if (event.bare) return event;
  WEFT_TRY(event.local.blobs, plan_blobs(txn, *content, counters.next_blob, event.local.blobs));
  return event;
}

Status apply_undelete(Txn& txn, const UndeleteEvent& event, const PublishInput& input) {
  WEFT_CHECK(count_sequence(txn, event.sequence, event.revision));
  WEFT_CHECK(count_local(txn, event.local));
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn, event.model));
  if (!model) return damaged(txn, fmt::format("the journal undeletes of model {}, which is not there", event.model));
  WEFT_TRY(std::optional<VersionRow> version, find_version(txn, model->id, event.number));
  const bool again = version && !version->removed && version->undeleted_ns < event.time_ns;
  if (!version || (!version->removed && !again) || version->uid != event.uid)
    return damaged(txn, fmt::format("the journal undeletes {}@{}, which is not removed", event.model, event.number));
  if (again) {
    version->undeleted_ns = event.time_ns;
    return put(txn, Table::versions, key_of(version->id), *version);
  }
  WEFT_CHECK(clear_purged(txn, version->id));
  version->removed = false;
  version->removed_ns = version->died = 0;
  version->lost.clear();
  version->removed_tags.clear();
  version->undeleted_ns = event.time_ns;
  WEFT_TRY(version->undeleted, tick(txn));
  WEFT_CHECK(bring_back(txn, *version, event, input));
  if (input.own) WEFT_CHECK(set_mark(txn, version->id, kUnsaved));
  WEFT_CHECK(put_revisions(txn, *version));
  WEFT_CHECK(put(txn, Table::versions, key_of(version->id), *version));
  return add_live(txn, *model, version->number, version->kind, event.time_ns);
}

}  // namespace weft
