// What this store has heard, for who keeps it elsewhere, and how far they have it.
#include <algorithm>
#include <utility>
#include <variant>

#include "base/sha256.h"
#include "store/store_impl.h"

namespace weft {
namespace {

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
void add(std::vector<Said>& /*said*/, const PinEvent& /*event*/) {}

std::vector<Said> said_by(std::vector<JournaledEvent> events) {
  std::vector<Said> said;
  for (JournaledEvent& journaled : events)
    std::visit([&said](auto& event) { add(said, std::move(event)); }, journaled.event);
  return said;
}

}  // namespace

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
