#include "store/parts/journaled_index.h"

#include <algorithm>
#include <variant>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/log.h"
#include "catalog/layout.h"
#include "catalog/plan.h"
#include "catalog/undelete.h"
#include "diskformat/events.h"
#include "index/tables.h"

namespace weft {
namespace {

constexpr std::uint64_t kEventBytes = 1U << 20U;  // of the journal that some_events() reads; one record may be larger

void call(const std::function<void()>& hook) {
  if (hook) hook();
}

}  // namespace

Result<WriterLock> JournaledIndex::lock() {
  WEFT_TRY(WriterLock lock, env_->lock_writer());
  WEFT_CHECK(flush());
  WEFT_CHECK(catch_up(lock));
  return lock;
}

Status JournaledIndex::commit(const WriterLock& lock, const MakeEvents& make, Durable durable) {
  for (;;) {
    WEFT_TRY(Txn txn, env_->write(lock));
    auto events = make(txn);
    if (events.ok() && events->empty()) return flush();
    Status status = events.ok() ? commit_once(txn, *events, durable) : Status{std::move(events).error()};
    if (status.ok() || !txn.map_full()) return status;
    txn.abort();
    WEFT_CHECK(env_->grow(lock));
  }
}

Status JournaledIndex::commit_with_spare(const WriterLock& lock, const MakeEvents& make, Durable durable) {
  Status status = commit(lock, make, durable);
  const bool full = !status.ok() && status.error().code == Errc::no_space;
  if (!full || !release_spare(path_)) return status;
  status = commit(lock, make, durable);
  make_spare(path_);
  return status;
}

Status JournaledIndex::commit_once(Txn& txn, const Events& events, Durable durable) {
  WEFT_TRY(Counters counters, get_counters(txn));
  std::uint64_t begin = counters.journal_end;
  std::vector<std::byte> records;
  for (const Event& event : events) {
    std::vector<std::byte> record = encode_event(event, begin + records.size());
    records.insert(records.end(), record.begin(), record.end());
  }
  counters.journal_end += records.size();
  WEFT_CHECK(put_counters(txn, counters));
  call(hooks_.before_journal);
  const bool first = durable == Durable::before_shown;
  WEFT_CHECK(first ? journal_.append(records, counters) : journal_.write(records, counters));
  call(hooks_.after_journal);
  Status status = first ? txn.commit() : txn.commit_lazily();
  if (!status.ok()) return undo(begin, status);
  if (log_debugs(LogCategory::store))
    for (const Event& event : events) log_debug(LogCategory::store, "committed at {}: {}", begin, event_text(event));
  call(hooks_.after_commit);
  if (first) return {};
  {
    const MutexLock flushing(flushing_);
    unflushed_ = {begin, counters};
  }
  return flush();
}

// Undoes a commit that failed after its records were journaled: cuts the records off, unless the index has committed
// after all. If that fails or is unknown, the next writer may replay the records; the error says so.
Status JournaledIndex::undo(std::uint64_t journal_end, const Status& failure) {
  const auto reached = [&]() -> Result<std::uint64_t> {
    WEFT_CHECK(env_->reopen());
    WEFT_TRY(Txn txn, env_->read());
    WEFT_TRY(Counters counters, get_counters(txn));
    return counters.journal_end;
  }();
  if (reached.ok() && *reached > journal_end) return {};
  if (!reached.ok() || !journal_.truncate(journal_end).ok()) return not_known(failure.error());
  return failure;
}

Status JournaledIndex::catch_up(const WriterLock& lock) {
  WEFT_TRY(Counters counters, ([this]() -> Result<Counters> {
             WEFT_TRY(Txn txn, env_->read());
             return get_counters(txn);
           })());
  WEFT_TRY(std::uint64_t size, journal_.size());
  if (size == counters.journal_end) return {};
  if (size < counters.journal_end)
    return Error{Errc::corrupt,
                 fmt::format("{}: expected at least {} bytes, got {}: records were lost; run `weft fsck --rebuild`",
                             journal_.path(), counters.journal_end, size)};
  // A record after the last mark belongs to a commit that was not acknowledged. It is not replayed: its writer may have
  // reported an error.
  WEFT_TRY(std::optional<Counters> mark, journal_.mark());
  const std::uint64_t end = mark ? std::max(mark->journal_end, counters.journal_end) : size;
  WEFT_TRY(JournalTail tail, journal_.read(counters.journal_end, end));
  if (!tail.gaps.empty() || (mark && mark->journal_end > tail.end))
    return Error{Errc::corrupt, fmt::format("{}: damaged behind {}, where the index ends; run `weft fsck --rebuild`",
                                            journal_.path(), counters.journal_end)};
  for (const JournaledEvent& event : tail.events) WEFT_CHECK(replay(lock, event));
  return tail.end < std::max(size, tail.size) ? journal_.truncate(tail.end) : Status{};
}

Status JournaledIndex::replay(const WriterLock& lock, const JournaledEvent& journaled) {
  return env_->write(lock, [&](Txn& txn) -> Status {
    WEFT_CHECK(std::visit([&](const auto& event) { return replay(txn, event); }, journaled.event));
    WEFT_TRY(Counters counters, get_counters(txn));
    counters.journal_end = journaled.end;
    return put_counters(txn, counters);
  });
}

PublishInput input_of(const ClusterFacts& cluster, const VersionRow& version) {
  PublishInput input;
  input.absent = !version.publisher.empty();
  input.own = cluster.is_own(version);
  return input;
}

Result<Events> set_note(Txn& txn, const VersionRow& version, VersionNote note, bool set) {
  WEFT_TRY(std::optional<NoteEvent> event, plan_note(txn, version, note, set));
  if (!event) return Events{};
  WEFT_CHECK(apply_note(txn, *event));
  return Events{*std::move(event)};
}

Status JournaledIndex::replay(Txn& txn, const PublishEvent& event) {
  std::optional<VersionContent> content;
  if (!event.bare) {
    WEFT_TRY(content, sources_.contents.of(event.version.manifest));
  }
  WEFT_TRY(std::vector<NewBlob> blobs, blobs_of(sources_.packs, event.packs));
  PublishInput input = input_of(sources_.cluster, event.version);
  input.content = content ? &*content : nullptr;
  input.new_blobs = blobs;
  auto applied = apply_publish(txn, event, input);
  return applied.ok() ? Status{} : Status{std::move(applied).error()};
}

Status JournaledIndex::replay(Txn& txn, const AdoptionEvent& event) {
  WEFT_TRY(VersionRow version, need_row<VersionRow>(txn, Table::versions, key_of(event.version)));
  WEFT_TRY(VersionContent content, sources_.contents.of(version.manifest));
  PublishInput input = input_of(sources_.cluster, version);
  input.content = &content;
  return apply_adoption(txn, event, input);
}

// A bare version needs its content only if gc has left a part of it.
Status JournaledIndex::replay(Txn& txn, const UndeleteEvent& event) {
  WEFT_TRY(const ModelRow model, need_row<ModelRow>(txn, Table::models, event.model));
  WEFT_TRY(const std::optional<VersionRow> version, find_version(txn, model.id, event.number));
  if (!version)
    return damaged(txn, fmt::format("the journal undeletes {}@{}, which is not there", event.model, event.number));
  auto content = sources_.contents.of(version->manifest);
  if (!content.ok() && !event.bare) return std::move(content).error();
  PublishInput input = input_of(sources_.cluster, *version);
  input.content = content.ok() ? &*content : nullptr;
  return apply_undelete(txn, event, input);
}

// A rebuild writes this event last, with an index that has applied it. So a replay of it is an error.
Status JournaledIndex::replay(Txn& txn, const RepairEvent& /*event*/) const {
  return damaged(txn, "a rebuild that repaired the journal did not come to its end");
}

Status JournaledIndex::replay(Txn& txn, const RemovalEvent& event) {
  WEFT_CHECK(remove(txn, event));
  return {};
}

Result<std::size_t> JournaledIndex::remove(Txn& txn, const RemovalEvent& event) {
  WEFT_TRY(VersionRow version, live_version(txn, event.model, event.number));
  WEFT_TRY(bool incomplete, is_incomplete(txn, version.id));
  WEFT_TRY(std::optional<Bytes> local, txn.get(Table::locals, key_of(version.id)));
  if (incomplete || !local) {
    WEFT_CHECK(apply_removal(txn, event, nullptr));
    return std::size_t{1};
  }
  if (version.tensors > limits::kBatchRows) {  // gc reads its manifest later, so that no writer waits for that
    WEFT_CHECK(apply_removal(txn, event, nullptr, 0));
    return std::size_t{1};
  }
  WEFT_TRY(VersionContent content, sources_.contents.of(version.manifest));
  WEFT_CHECK(apply_removal(txn, event, &content));
  return rows_of(content);
}

Result<std::uint64_t> JournaledIndex::journal_end() {
  WEFT_TRY(Txn txn, env_->read());
  WEFT_TRY(const Counters counters, get_counters(txn));
  return counters.journal_end;
}

Result<JournalTail> JournaledIndex::some_events(std::uint64_t from, std::uint64_t end) {
  for (std::uint64_t bytes = kEventBytes;; bytes *= 2) {
    const bool all = end - from <= bytes;
    WEFT_TRY(JournalTail tail, journal_.read(from, all ? end : from + bytes));
    if (all || !tail.events.empty()) return tail;
  }
}

}  // namespace weft
