#include "catalog/mirroring.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/plain_text.h"
#include "base/text.h"
#include "catalog/apply_names.h"
#include "catalog/plan.h"
#include "catalog/renumber.h"
#include "catalog/undelete.h"
#include "diskformat/uuid.h"
#include "weft/names.h"

namespace weft {
namespace {

std::string name_of(const std::string& model, std::uint64_t number) {
  return fmt::format("{}@{}", printable(model), number);
}

struct Bound {
  std::string_view what;
  std::uint64_t got;
  std::uint64_t max;
};

Status check_bounds(const MirroredVersion& change) {
  const VersionRow& version = change.version;
  const Bound bounds[] = {{"a number", version.number, limits::kVersionNumberMax},
                          {"parents", version.parents.size(), limits::kParentsMax},
                          {"parents that are not stored", version.elsewhere.size(), limits::kParentsMax},
                          {"inode numbers", change.tree_nodes, limits::kTreeNodesMax},
                          {"bytes", version.logical_bytes, limits::kVersionBytesMax},
                          {"ns at its removal", version.removed_ns, limits::kTimeNsMax},
                          {"ns at its undelete", version.undeleted_ns, limits::kTimeNsMax}};
  for (const Bound& bound : bounds)
    if (bound.got > bound.max)
      return Error{Errc::invalid, fmt::format("{}: expected at most {}, got {}", bound.what, bound.max, bound.got)};
  return check_description(version.message, version.metrics, version.described_ns);
}

// True if the record agrees with the manifest. If not, the version stays bare.
bool agrees(const MirroredVersion& change, const VersionContent& content) {
  return content.tree_nodes == change.tree_nodes && content.logical_bytes == change.version.logical_bytes &&
         content.views.size() == change.version.tensors && content.kind == change.version.kind;
}

// Without tags.
RemovalEvent removal_of(const VersionRow& known, const MirroredVersion& change, std::uint64_t sequence) {
  RemovalEvent event;
  event.sequence = sequence;
  event.model = known.model_name;
  event.number = known.number;
  event.time_ns = change.version.removed_ns;
  event.lost = change.version.lost;
  event.by = change.removed_by;
  event.uid = known.uid;
  event.at = change.at;
  return event;
}

}  // namespace

Status Mirroring::take(const MirrorChange& change) {
  return std::visit([this](const auto& it) { return take(it); }, change);
}

Status Mirroring::refuse(std::string_view what, std::string_view why) {
  outcome_.problems.push_back(fmt::format("{}: {}", what, why));
  return {};
}

Status Mirroring::add(Event event) {
  events_.push_back(std::move(event));
  ++outcome_.applied;
  return {};
}

Status Mirroring::check_version(const MirroredVersion& change) const {
  const VersionRow& version = change.version;
  WEFT_CHECK(check_key_name(version.model_name));
  WEFT_CHECK(check_bounds(change));
  if (version.number == 0) return Error{Errc::invalid, "expected a number from 1 on, got 0"};
  if (!sources_.restores && !parse_uuid(version.publisher))
    return Error{Errc::invalid, fmt::format("a publisher: expected a uuid, got \"{}\"", printable(version.publisher))};
  if (change.tree_nodes == 0 && !version.removed)
    return Error{Errc::invalid, "inode numbers: expected at least 1, got 0"};
  WEFT_CHECK(check_source(version.source));
  for (const std::string& tag : change.tags) WEFT_CHECK(check_key_tag(tag));
  return {};
}

Status Mirroring::take(const MirroredVersion& change) {
  const VersionRow& version = change.version;
  const std::string name = name_of(version.model_name, version.number);
  if (Status status = check_version(change); !status.ok()) return refuse(name, status.error().message);
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn_, version.model_name));
  std::optional<VersionRow> known;
  if (model) {
    WEFT_TRY(known, find_version(txn_, model->id, version.number));
    if (!known && !change.former.empty()) {
      WEFT_TRY(known, renumber(*model, change));
    }
  }
  if (known && known->uid != version.uid)
    return refuse(name, fmt::format("expected the version {}, as it is known here, got {}", uuid_text(known->uid),
                                    uuid_text(version.uid)));
  if (known && known->manifest != version.manifest)
    return refuse(name, fmt::format("expected the manifest {}, as it is known here, got {}", to_hex(known->manifest),
                                    to_hex(version.manifest)));
  if (known && known->removed) return version.removed ? remove_later(*known, change) : undelete(*known, change);
  if (known) {
    WEFT_CHECK(describe(*known, version));  // also of a tombstone, which keeps its last message and metrics
    return version.removed ? remove(*known, change) : undelete_later(*known, version.undeleted_ns);
  }
  Status shows = version.removed ? Status{} : check_hides_none(txn_, version.model_name);
  if (!shows.ok() && shows.error().code != Errc::exists) return shows;
  if (!shows.ok()) return refuse(name, shows.error().message);
  return publish(change);
}

// If this store has the version under a former number, gives it the new one. Returns it then.
Result<std::optional<VersionRow>> Mirroring::renumber(const ModelRow& model, const MirroredVersion& change) {
  for (const std::uint64_t former : change.former) {
    WEFT_TRY(const std::optional<VersionRow> known, find_version(txn_, model.id, former));
    if (!known || known->uid != change.version.uid) continue;
    WEFT_TRY(const Counters counters, get_counters(txn_));
    const std::uint64_t time_ns = std::max(change.returned, known->time_ns + 1);  // the same on all nodes
    RenumberEvent event{counters.sequence + 1, model.name, former, change.version.number, time_ns, 0, known->uid};
    WEFT_CHECK(apply_renumber(txn_, event));
    WEFT_CHECK(add(std::move(event)));
    return find_version(txn_, model.id, change.version.number);
  }
  return std::optional<VersionRow>();
}

// The state with the larger time is true: removed or live. If gc of this node has released the content, other nodes
// hold it.
Status Mirroring::undelete(const VersionRow& known, const MirroredVersion& change) {
  const VersionRow& version = change.version;
  if (version.undeleted_ns <= known.removed_ns) return {};
  const std::string name = name_of(version.model_name, version.number);
  Status shows = check_hides_none(txn_, version.model_name);
  if (!shows.ok() && shows.error().code != Errc::exists) return shows;
  if (!shows.ok()) return refuse(name, shows.error().message);
  const VersionContent* content = sources_.content(version.manifest);
  auto event = plan_undelete(txn_, known, content, change.tree_nodes, version.undeleted_ns);
  if (!event.ok() && (event.error().code == Errc::unsupported || event.error().code == Errc::corrupt))
    return refuse(name, event.error().message);
  if (!event.ok()) return std::move(event).error();
  PublishInput input;
  input.content = content;
  input.absent = true;
  input.own = !sources_.restores && version.publisher == sources_.node;
  WEFT_CHECK(apply_undelete(txn_, *event, input));
  WEFT_CHECK(add(*std::move(event)));
  return describe(known, version);
}

// A version was removed again, or undeleted again, while this store received no changes. The later time has to be
// known: if the registry loses history once more, it decides against the states of other nodes.
Status Mirroring::remove_later(const VersionRow& known, const MirroredVersion& change) {
  if (change.version.removed_ns <= known.removed_ns) return {};
  WEFT_TRY(const Counters counters, get_counters(txn_));
  RemovalEvent event = removal_of(known, change, counters.sequence + 1);
  event.tags = change.tags;
  WEFT_CHECK(apply_removal(txn_, event, nullptr));
  return add(std::move(event));
}

Status Mirroring::undelete_later(const VersionRow& known, std::uint64_t undeleted_ns) {
  if (undeleted_ns <= known.undeleted_ns) return {};
  WEFT_TRY(const Counters counters, get_counters(txn_));
  WEFT_TRY(const LocalRow local, need_row<LocalRow>(txn_, Table::locals, key_of(known.id)));
  UndeleteEvent event;
  event.sequence = counters.sequence + 1;
  event.model = known.model_name;
  event.number = known.number;
  event.uid = known.uid;
  event.time_ns = undeleted_ns;
  event.local.ino_base = local.ino_base;
  event.local.ino_count = local.ino_count;
  WEFT_TRY(event.bare, is_incomplete(txn_, known.id));
  WEFT_CHECK(apply_undelete(txn_, event, {}));
  return add(std::move(event));
}

// The registry has one state of message and metrics, and the later of two states is true.
Status Mirroring::describe(const VersionRow& known, const VersionRow& change) {
  if (change.described_ns <= known.described_ns) return {};
  WEFT_TRY(const Counters counters, get_counters(txn_));
  DescriptionEvent event{counters.sequence + 1,
                         known.model_name,
                         known.number,
                         change.message,
                         change.metrics,
                         change.described_ns,
                         0,
                         known.uid};
  WEFT_CHECK(apply_description(txn_, event));
  return add(std::move(event));
}

Result<PublishEvent> Mirroring::plan(const MirroredVersion& change, const VersionContent* content) {
  WEFT_TRY(Counters counters, get_counters(txn_));
  Allocator inos(counters);
  PublishEvent event;
  event.sequence = counters.sequence + 1;
  event.version = change.version;
  event.version.id = counters.next_version;
  event.version.removed = false;
  event.version.removed_ns = 0;
  event.version.lost.clear();
  event.version.described = event.version.undeleted = 0;
  event.bare = content == nullptr;
  WEFT_CHECK(plan_model(txn_, event, counters, inos));
  event.version.number = change.version.number;
  WEFT_CHECK(check_ids(event.version));
  WEFT_TRY(event.directories, plan_directories(txn_, event.version.model_name, inos));
  if (change.version.removed) return event;
  WEFT_CHECK(plan_tags_of(txn_, event, change.tags, inos));
  event.local.ino_count = change.tree_nodes;
  event.local.ino_base = inos.range(event.local.ino_count);
  WEFT_CHECK(inos.check_room());
  if (content == nullptr) return event;
  WEFT_TRY(event.local.view_inos, plan_views(txn_, *content, inos));
  WEFT_TRY(event.local.blobs, plan_blobs(txn_, *content, counters.next_blob));
  WEFT_CHECK(inos.check_room());
  return event;
}

// Returns the blobs of the change's packs. If a pack of this node is damaged, reports it and returns none: its blobs
// become absent.
std::vector<NewBlob> Mirroring::brought_by(const MirroredVersion& change) {
  auto blobs = sources_.blobs(change.packs);
  if (blobs.ok()) return std::move(blobs).value();
  static_cast<void>(refuse(name_of(change.version.model_name, change.version.number), blobs.error().message));
  return {};
}

Status Mirroring::publish(const MirroredVersion& change) {
  const bool own = !sources_.restores && change.version.publisher == sources_.node;
  const VersionContent* content = change.version.removed ? nullptr : sources_.content(change.version.manifest);
  if (content != nullptr && !agrees(change, *content)) {
    WEFT_CHECK(refuse(name_of(change.version.model_name, change.version.number), "its record is not as its manifest"));
    content = nullptr;
  }
  auto planned = plan(change, content);
  if (!planned.ok() && planned.error().code == Errc::unsupported)  // the store has no numbers left for it
    return refuse(name_of(change.version.model_name, change.version.number), planned.error().message);
  if (!planned.ok()) return std::move(planned).error();
  PublishEvent event = *std::move(planned);
  std::vector<NewBlob> blobs;
  if ((own || sources_.restores) && !change.version.removed) blobs = brought_by(change);
  if (!blobs.empty()) event.packs = change.packs;
  PublishInput input;
  input.content = content;
  input.new_blobs = blobs;
  input.absent = !sources_.restores;
  input.own = own;
  WEFT_CHECK(apply_publish(txn_, event, input));
  const VersionRow version = event.version;
  WEFT_CHECK(add(std::move(event)));
  if (!change.version.removed) return {};
  --outcome_.applied;  // publish and removal count as one change
  return remove(version, change);
}

// Returns the live version that a change refers to; nothing if the version is unknown or its name invalid. Such changes
// have no effect.
Result<std::optional<VersionRow>> Mirroring::live(const std::string& model_name, std::uint64_t number) {
  std::optional<VersionRow> none;
  if (Status status = check_key_name(model_name); !status.ok()) {
    WEFT_CHECK(refuse(name_of(model_name, number), status.error().message));
    return none;
  }
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn_, model_name));
  if (!model) return none;
  WEFT_TRY(std::optional<VersionRow> version, find_version(txn_, model->id, number));
  return version && !version->removed ? std::move(version) : none;
}

// Does not count as a change of its own: a publish or a removal accompanies it.
Status Mirroring::note_memory(const VersionRow& version, bool in_memory) {
  WEFT_TRY(std::optional<NoteEvent> event, plan_note(txn_, version, VersionNote::in_memory, in_memory));
  if (!event) return {};
  WEFT_CHECK(apply_note(txn_, *event));
  events_.emplace_back(*std::move(event));
  return {};
}

Status Mirroring::take(const MirroredMemory& change) {
  WEFT_TRY(const std::optional<VersionRow> version, live(change.model, change.number));
  const bool is_it = version && (change.uid.empty() || change.uid == version->uid);
  return is_it ? note_memory(*version, change.in_memory) : Status{};
}

Status Mirroring::take(const MirroredPurge& change) {
  if (Status status = check_key_name(change.model); !status.ok())
    return refuse(name_of(change.model, change.number), status.error().message);
  WEFT_TRY(const std::optional<ModelRow> model, find_model(txn_, change.model));
  if (!model) return {};
  WEFT_TRY(const std::optional<VersionRow> version, find_version(txn_, model->id, change.number));
  if (!version || !version->removed || version->uid != change.uid) return {};
  WEFT_TRY(const bool known, has_note(txn_, kPurged, version->id));
  if (known) return {};
  WEFT_TRY(const Counters counters, get_counters(txn_));
  PurgeEvent event{counters.sequence + 1, model->name, change.number, change.time_ns, 0, change.by, change.uid};
  WEFT_CHECK(apply_purge(txn_, event));
  return add(std::move(event));
}

// A removal before the last undelete was received again.
Status Mirroring::remove(const VersionRow& known, const MirroredVersion& change) {
  if (change.version.removed_ns < known.undeleted_ns) return {};
  WEFT_TRY(bool incomplete, is_incomplete(txn_, known.id));
  WEFT_TRY(std::optional<Bytes> local, txn_.get(Table::locals, key_of(known.id)));
  const VersionContent* content = incomplete || !local ? nullptr : sources_.content(known.manifest);
  if (!incomplete && local && content == nullptr)
    return refuse(name_of(known.model_name, known.number),
                  "it is removed, but its manifest cannot be read, so its content is unknown; run `weft fsck`");
  WEFT_TRY(Counters counters, get_counters(txn_));
  RemovalEvent event = removal_of(known, change, counters.sequence + 1);
  WEFT_TRY(const std::vector<std::string> tags, tags_of(txn_, known.model, known.number));
  std::set<std::string> all(tags.begin(), tags.end());
  all.insert(change.tags.begin(), change.tags.end());
  event.tags.assign(all.begin(), all.end());
  WEFT_CHECK(apply_removal(txn_, event, content));
  return add(std::move(event));
}

// If the registry does not say when a tag was deleted, the deletion gets the time of the tag's last state plus a
// nanosecond, which is the same on every node.
Status Mirroring::take(const MirroredTag& change) {
  Status named = check_key_name(change.model);
  if (named.ok()) named = check_key_tag(change.name);
  if (!named.ok()) return refuse(name_of(change.model, change.number), named.error().message);
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn_, change.model));
  if (!model) return {};
  WEFT_TRY(std::optional<TagRow> tag, find_row<TagRow>(txn_, Table::tags, tag_key(model->id, change.name)));
  Uuid uid = change.uid;
  if (change.number != 0) {
    WEFT_TRY(const std::optional<VersionRow> version, find_version(txn_, model->id, change.number));
    if (!version || version->removed || (!uid.empty() && version->uid != uid)) return {};
    uid = version->uid;
  }
  const bool same = change.number == (tag ? tag->number : 0);
  if (same && (!tag || (change.stamp() <= tag->stamp && change.owner == tag->owner))) return {};
  if (tag && change.revision != 0) {  // a registry that lost history may send an earlier setting
    WEFT_TRY(const std::optional<VersionRow> version, find_version(txn_, model->id, tag->number));
    const TagOrder known{tag->stamp, tag->time_ns, version ? version->uid : Uuid{}};
    if (TagOrder{change.stamp(), change.time_ns, uid} < known) return {};
  }
  WEFT_TRY(Counters counters, get_counters(txn_));
  Allocator inos(counters);
  TagsEvent event;
  event.sequence = counters.sequence + 1;
  event.model = change.model;
  event.time_ns = change.time_ns == 0 && tag ? tag->time_ns + 1 : change.time_ns;
  event.at = change.stamp();
  event.by = change.by;
  event.changes.push_back({change.name, change.number, tag ? tag->ino : inos.one(), uid, change.owner});
  WEFT_CHECK(apply_tags(txn_, event));
  return add(std::move(event));
}

}  // namespace weft
