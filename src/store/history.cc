// The history of commits in the journal, for followers of this store and for the origin.
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "base/sha256.h"
#include "index/commit_watch.h"
#include "store/store_impl.h"

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
    return list.emplace_back(Commit{kind, std::move(model), number, {}, 0, time_ns, position_, {}});
  }
  void take(PublishEvent& event) {
    if (event.was_removed()) return;
    VersionRow& version = event.version;
    Commit& commit = append(Commit::Kind::publish, std::move(version.model_name), version.number, version.time_ns);
    commit.bytes = version.logical_bytes;
    for (NamedInode& tag : event.tags) commit.tags.push_back({std::move(tag.name), version.number});
  }
  void take(TagsEvent& event) {
    Commit& commit = append(Commit::Kind::tags, std::move(event.model), 0, event.time_ns);
    for (TagChange& change : event.changes) commit.tags.push_back({std::move(change.name), change.number});
  }
  void take(RemovalEvent& event) {
    Commit& commit = append(Commit::Kind::removal, std::move(event.model), event.number, event.time_ns);
    commit.lost = std::move(event.lost);
    for (std::string& tag : event.tags) commit.tags.push_back({std::move(tag), 0});
  }
  void take(AdoptionEvent& /*event*/) {}
  void take(NoteEvent& event) {
    if (event.note != VersionNote::in_memory) return;
    const auto kind = event.set ? Commit::Kind::in_memory : Commit::Kind::on_disk;
    append(kind, std::move(event.model), event.number, event.time_ns);
  }
  void take(RepairEvent& /*event*/) { repaired = true; }

  std::uint64_t position_;
};

// The key has a hash of the origin's id: a file contains that id, so it may have any length.
constexpr std::string_view kTold = "told";
std::string told_key(std::string_view origin) {
  return std::string(kTold) + digest_key(sha256(std::as_bytes(std::span(origin))));
}

void add(std::vector<Said>& said, PublishEvent event) {
  VersionRow& version = event.version;
  for (NamedInode& tag : event.tags)
    said.emplace_back(MirroredTag{version.model_name, std::move(tag.name), version.number, version.time_ns, 0});
  said.emplace_back(std::move(version));
}

void add(std::vector<Said>& said, TagsEvent event) {
  for (TagChange& change : event.changes)
    said.emplace_back(MirroredTag{event.model, std::move(change.name), change.number, event.time_ns, event.changed_at});
}

void add(std::vector<Said>& said, RemovalEvent event) {
  said.emplace_back(MirroredRemoval{std::move(event.model), event.number, event.time_ns, std::move(event.lost)});
}

// The origin does not need events that concern only this node.
void add(std::vector<Said>& /*said*/, const RepairEvent& /*event*/) {}
void add(std::vector<Said>& /*said*/, const AdoptionEvent& /*event*/) {}
void add(std::vector<Said>& /*said*/, const NoteEvent& /*event*/) {}

std::vector<Said> said_by(std::vector<JournaledEvent> events) {
  std::vector<Said> said;
  for (JournaledEvent& journaled : events)
    std::visit([&said](auto& event) { add(said, std::move(event)); }, journaled.event);
  return said;
}

}  // namespace

Result<CommitBatch> StoreImpl::commits(std::uint64_t from) {
  WEFT_TRY(const std::uint64_t end, parts_.index.journal_end());
  if (from > end)
    return Error{Errc::invalid,
                 fmt::format("{}: no commits from {}: it ends at {}", parts_.index.journal().path(), from, end)};
  if (from == end) return CommitBatch{{}, end};
  WEFT_TRY(JournalTail tail, parts_.index.some_events(from, end));
  const bool stops = tail.end != end && tail.events.empty();
  const bool gaps = !tail.gaps.empty();
  Commits commits(from);
  for (JournaledEvent& journaled : tail.events) commits.add(std::move(journaled));
  if (stops || gaps || commits.repaired)
    return Error{Errc::invalid,
                 fmt::format("{}: expected whole records from {} on, got {}", parts_.index.journal().path(), from,
                             commits.repaired ? "a repair" : "bytes that are none")};
  return CommitBatch{std::move(commits.list), tail.end};
}

Result<std::unique_ptr<CommitWatch>> StoreImpl::watch_commits() {
  return watch_index(parts_.path / "index");
}

Result<SaidBatch> StoreImpl::said(std::uint64_t from) {
  WEFT_TRY(const std::uint64_t end, parts_.index.journal_end());
  if (from > end) from = 0;  // the journal was cut since
  if (from == end) return SaidBatch{{}, end};
  WEFT_TRY(JournalTail tail, parts_.index.some_events(from, end));
  const std::uint64_t next = tail.events.empty() ? end : tail.events.back().end;
  return SaidBatch{said_by(std::move(tail.events)), next};
}

Result<std::uint64_t> StoreImpl::told(std::string_view origin) {
  WEFT_TRY(Txn txn, parts_.index.read());
  WEFT_TRY(std::optional<NumberRow> row, find_row<NumberRow>(txn, Table::meta, told_key(origin)));
  return row ? row->value : 0;
}

Status StoreImpl::set_told(std::string_view origin, std::uint64_t end) {
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  return parts_.index.write(lock, [&](Txn& txn) -> Status {
    WEFT_CHECK(put(txn, Table::meta, told_key(origin), NumberRow{end}));
    return bump_sequence(txn);
  });
}

}  // namespace weft
