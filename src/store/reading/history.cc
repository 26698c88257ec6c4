// The history of commits in the journal, for followers of this store.
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "index/commit_watch.h"
#include "store/reading/queries.h"

namespace weft {
namespace {

// Collects the commits that followers see. Each event type has an overload, also those that are not commits.
class Commits {
 public:
  explicit Commits(std::uint64_t position) : position_(position) {}

  // `journaled.end` becomes the position of the commits.
  void add(JournaledEvent journaled) {
    position_ = journaled.end;
    std::visit([this](auto& event) { take(event); }, journaled.event);
  }
  std::vector<Commit> list;
  bool repaired = false;

 private:
  Commit& append(Commit::Kind kind, std::string model, std::uint64_t number, std::uint64_t time_ns) {
    return list.emplace_back(Commit{kind, std::move(model), number, {}, 0, time_ns, position_});
  }
  void take(PublishEvent& event) {
    if (event.was_removed()) return;
    VersionRow& version = event.version;
    Commit& commit = append(Commit::Kind::publish, std::move(version.model_name), version.number, version.time_ns);
    commit.bytes = version.logical_bytes;
    commit.publisher = std::move(version.publisher);
    commit.by = std::move(version.by);
    for (NamedInode& tag : event.tags) commit.tags.push_back({std::move(tag.name), version.number});
  }
  void take(TagsEvent& event) {
    Commit& commit = append(Commit::Kind::tags, std::move(event.model), 0, event.time_ns);
    commit.by = std::move(event.by);
    for (TagChange& change : event.changes) commit.tags.push_back({std::move(change.name), change.number});
  }
  void take(RemovalEvent& event) {
    Commit& commit = append(Commit::Kind::removal, std::move(event.model), event.number, event.time_ns);
    commit.lost = std::move(event.lost);
    commit.by = std::move(event.by);
    for (std::string& tag : event.tags) commit.tags.push_back({std::move(tag), 0});
  }
  void take(AdoptionEvent& /*event*/) {}
  void take(NoteEvent& event) {
    if (event.note != VersionNote::in_memory) return;
    const auto kind = event.set ? Commit::Kind::in_memory : Commit::Kind::on_disk;
    append(kind, std::move(event.model), event.number, event.time_ns);
  }
  void take(DescriptionEvent& event) {
    append(Commit::Kind::description, std::move(event.model), event.number, event.time_ns);
  }
  void take(RenameEvent& event) {
    append(Commit::Kind::rename, std::move(event.model), 0, event.time_ns).to = std::move(event.to);
  }
  void take(UndeleteEvent& event) {
    append(Commit::Kind::undelete, std::move(event.model), event.number, event.time_ns);
  }
  // A renumbered version is a removal of one name and an undelete of another.
  void take(RenumberEvent& event) {
    append(Commit::Kind::removal, event.model, event.number, event.time_ns);
    append(Commit::Kind::undelete, std::move(event.model), event.to, event.time_ns);
  }
  void take(PurgeEvent& event) {
    append(Commit::Kind::purge, std::move(event.model), event.number, event.time_ns).by = std::move(event.by);
  }
  void take(RepairEvent& /*event*/) { repaired = true; }

  std::uint64_t position_;
};

}  // namespace

Result<CommitBatch> commits_from(StoreParts& parts, std::uint64_t from) {
  WEFT_TRY(const std::uint64_t end, parts.index.journal_end());
  if (from > end)
    return Error{Errc::invalid,
                 fmt::format("{}: no commits from {}: it ends at {}", parts.index.journal().path(), from, end)};
  if (from == end) return CommitBatch{{}, end};
  WEFT_TRY(JournalTail tail, parts.index.some_events(from, end));
  const bool stops = tail.end != end && tail.events.empty();
  const bool gaps = !tail.gaps.empty();
  Commits commits(from);
  for (JournaledEvent& journaled : tail.events) commits.add(std::move(journaled));
  if (stops || gaps || commits.repaired)
    return Error{Errc::invalid,
                 fmt::format("{}: expected whole records from {} on, got {}", parts.index.journal().path(), from,
                             commits.repaired ? "a repair" : "bytes that are none")};
  return CommitBatch{std::move(commits.list), tail.end};
}

Result<std::unique_ptr<CommitWatch>> watch_commits(StoreParts& parts) {
  return watch_index(parts.path / "index");
}

}  // namespace weft
