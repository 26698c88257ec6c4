// The history of commits, as the journal has it: for who follows it here, and for who keeps it elsewhere.
#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "base/sha256.h"
#include "index/commit_watch.h"
#include "store/store_impl.h"

namespace weft {
namespace {

Commit commit_of(PublishEvent event) {
  Commit commit;
  commit.kind = Commit::Kind::publish;
  commit.model = std::move(event.version.model_name);
  commit.number = event.version.number;
  commit.local = std::move(event.local);
  commit.bare = event.bare;
  for (const NamedInode& tag : event.tags) commit.tags.push_back(tag.ino);
  return commit;
}

Commit commit_of(TagsEvent event) {
  Commit commit;
  commit.kind = Commit::Kind::tags;
  commit.model = std::move(event.model);
  for (const TagChange& change : event.changes) commit.tags.push_back(change.ino);
  return commit;
}

Commit commit_of(AdoptionEvent event) {
  Commit commit;
  commit.kind = Commit::Kind::adoption;
  commit.model = std::move(event.model);
  commit.number = event.number;
  commit.local.view_inos = std::move(event.view_inos);
  return commit;
}

Commit commit_of(RemovalEvent event) {
  Commit commit;
  commit.kind = Commit::Kind::removal;
  commit.model = std::move(event.model);
  commit.number = event.number;
  return commit;
}

// Collects what events mean for readers. One without a place in the history of commits says so here.
struct Commits {
  std::vector<Commit> list;
  bool repaired = false;

  void operator()(NoteEvent& /*event*/) {}
  void operator()(RepairEvent& /*event*/) { repaired = true; }
  template <class Told>
  void operator()(Told& event) {
    list.push_back(commit_of(std::move(event)));
  }
};

constexpr std::uint64_t kBatchBytes = 1U << 20U;  // of the journal; more where a record is larger

// By the origin's id, which a file says.
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
  said.emplace_back(MirroredRemoval{std::move(event.model), event.number, event.time_ns});
}

// Of this node alone: an origin has no use for them.
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

Result<std::vector<Commit>> StoreImpl::commits(std::uint64_t from, std::uint64_t to) {
  if (from > to) return Error{Errc::invalid, fmt::format("{}: no commits from {} to {}", journal_.path(), from, to)};
  WEFT_TRY(JournalTail tail, journal_.read(from, to));
  Commits commits;
  for (JournaledEvent& journaled : tail.events) std::visit(commits, journaled.event);
  if (tail.end != to || !tail.gaps.empty() || commits.repaired)
    return Error{Errc::invalid,
                 fmt::format("{}: expected whole records from {} to {}, got them to {}{}", journal_.path(), from, to,
                             tail.end, commits.repaired ? ", with a repair" : "")};
  return std::move(commits.list);
}

Result<std::unique_ptr<CommitWatch>> StoreImpl::watch_commits() {
  return watch_index(path_ / "index");
}

Result<SaidBatch> StoreImpl::said(std::uint64_t from) {
  std::uint64_t end = 0;
  {
    WEFT_TRY(Txn txn, env_->read());
    WEFT_TRY(Counters counters, get_counters(txn));
    end = counters.journal_end;
  }
  if (from > end) from = 0;  // of a journal that was cut since
  for (std::uint64_t bytes = kBatchBytes; from < end; bytes *= 2) {
    const bool all = end - from <= bytes;
    WEFT_TRY(JournalTail tail, journal_.read(from, all ? end : from + bytes));
    if (!all && tail.events.empty()) continue;
    const std::uint64_t next = all ? end : tail.events.back().end;
    return SaidBatch{said_by(std::move(tail.events)), next};
  }
  return SaidBatch{{}, end};
}

Result<std::uint64_t> StoreImpl::told(std::string_view origin) {
  WEFT_TRY(Txn txn, env_->read());
  WEFT_TRY(std::optional<NumberRow> row, find_row<NumberRow>(txn, Table::meta, told_key(origin)));
  return row ? row->value : 0;
}

Status StoreImpl::set_told(std::string_view origin, std::uint64_t end) {
  WEFT_TRY(WriterLock lock, lock_writer());
  return env_->write(lock, [&](Txn& txn) -> Status {
    WEFT_CHECK(put(txn, Table::meta, told_key(origin), NumberRow{end}));
    return bump_sequence(txn);
  });
}

}  // namespace weft
