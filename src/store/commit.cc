// Journaled commits: applies an event, makes its record durable, then commits the index. If the process dies in
// between, the next writer replays the record.
#include <fmt/core.h>

#include <algorithm>
#include <variant>

#include "base/limits.h"
#include "catalog/layout.h"
#include "diskformat/toc.h"
#include "store/store_impl.h"

namespace weft {
namespace {

void call(const std::function<void()>& hook) {
  if (hook) hook();
}

}  // namespace

std::size_t rows_of(const VersionContent& content) {
  std::size_t rows = 1 + content.views.size();
  for (const VersionContent::FileContent& file : content.files) rows += file.extents.size();
  return rows;
}

Result<WriterLock> StoreImpl::lock_writer() {
  WEFT_TRY(WriterLock lock, env_->lock_writer());
  WEFT_CHECK(settle());
  WEFT_CHECK(catch_up(lock));
  return lock;
}

Status StoreImpl::commit(const WriterLock& lock, const MakeEvents& make, Durable durable) {
  for (;;) {
    WEFT_TRY(Txn txn, env_->write(lock));
    auto events = make(txn);
    if (events.ok() && events->empty()) return settle();
    Status status = events.ok() ? commit_once(txn, *events, durable) : Status{std::move(events).error()};
    if (status.ok() || !txn.map_full()) return status;
    txn.abort();
    WEFT_CHECK(env_->grow(lock));
  }
}

Status StoreImpl::commit_with_spare(const WriterLock& lock, const MakeEvents& make, Durable durable) {
  Status status = commit(lock, make, durable);
  const bool full = !status.ok() && status.error().code == Errc::no_space;
  if (!full || !release_spare(path_)) return status;
  status = commit(lock, make, durable);
  make_spare(path_);
  return status;
}

Status StoreImpl::commit_once(Txn& txn, const Events& events, Durable durable) {
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
  call(hooks_.after_commit);
  if (first) return {};
  unsettle({begin, counters});
  return settle();
}

// Undoes a commit that failed after its records were journaled: cuts the records off, unless the index has committed
// after all. If that fails or is unknown, the next writer may replay the records; the error says so.
Status StoreImpl::undo(std::uint64_t journal_end, const Status& failure) {
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

Status StoreImpl::catch_up(const WriterLock& lock) {
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

Status StoreImpl::replay(const WriterLock& lock, const JournaledEvent& journaled) {
  return env_->write(lock, [&](Txn& txn) -> Status {
    WEFT_CHECK(std::visit([&](const auto& event) { return replay(txn, event); }, journaled.event));
    WEFT_TRY(Counters counters, get_counters(txn));
    counters.journal_end = journaled.end;
    return put_counters(txn, counters);
  });
}

// Returns the flags of a version's PublishInput, which depend on its publisher: a registry's node or this store alone.
PublishInput StoreImpl::input_of(const VersionRow& version) const {
  PublishInput input;
  input.absent = !version.publisher.empty();
  input.own = is_own(version);
  return input;
}

Status StoreImpl::replay(Txn& txn, const PublishEvent& event) {
  std::optional<VersionContent> content;
  if (!event.bare) {
    WEFT_TRY(content, content_of(event.version.manifest));
  }
  WEFT_TRY(std::vector<NewBlob> blobs, blobs_of(packs_, event.packs));
  PublishInput input = input_of(event.version);
  input.content = content ? &*content : nullptr;
  input.new_blobs = blobs;
  auto applied = apply_publish(txn, event, input);
  return applied.ok() ? Status{} : Status{std::move(applied).error()};
}

Status StoreImpl::replay(Txn& txn, const AdoptionEvent& event) {
  WEFT_TRY(VersionRow version, need_row<VersionRow>(txn, Table::versions, key_of(event.version)));
  WEFT_TRY(VersionContent content, content_of(version.manifest));
  PublishInput input = input_of(version);
  input.content = &content;
  return apply_adoption(txn, event, input);
}

// A rebuild writes this event last, with an index that has applied it. So a replay of it is an error.
Status StoreImpl::replay(Txn& txn, const RepairEvent& /*event*/) const {
  return damaged(txn, "a rebuild that repaired the journal did not come to its end");
}

Status StoreImpl::replay(Txn& txn, const RemovalEvent& event) {
  WEFT_CHECK(remove(txn, event));
  return {};
}

Result<std::size_t> StoreImpl::remove(Txn& txn, const RemovalEvent& event) {
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
  WEFT_TRY(VersionContent content, content_of(version.manifest));
  WEFT_CHECK(apply_removal(txn, event, &content));
  return rows_of(content);
}

Result<VersionContent> StoreImpl::content_of(const Digest& manifest) {
  if (!options_.decode) return Error{Errc::internal, fmt::format("{}: opened without a decoder of manifests", path_)};
  WEFT_TRY(std::shared_ptr<const ManifestReader> reader, manifests_.open(manifest));
  return options_.decode(reader->bytes());
}

}  // namespace weft
