// Publishes a large version: takes its content in parts (catalog/taking.h), so that other writers can commit in
// between.
#include <algorithm>

#include <fmt/core.h>

#include "base/limits.h"
#include "catalog/taking.h"
#include "repair/rebuild.h"
#include "store/store_impl.h"

namespace weft {

// Locks out gc, fsck and other large publishes until the commit: they do not know the version's content yet.
Result<Fd> StoreImpl::lock_for_taking() {
  WEFT_TRY(Fd collector, lock_collector(parts_.path, LockKind::exclusive, parts_.options.patience));
  WEFT_CHECK(give_up_taking(no_progress()));
  return collector;
}

// Releases the writer lock for a moment, so that other writers can commit.
Status StoreImpl::end_part(Placed& placed) {
  placed.lock.reset();
  if (parts_.hooks.after_part) parts_.hooks.after_part();
  WEFT_TRY(placed.lock, parts_.index.lock());
  return {};
}

// Takes the version's content in parts. Nothing if the newest version has the same manifest.
Result<std::optional<TakenContent>> StoreImpl::take_content(const PublishRequest& request, const Digest& manifest,
                                                            Placed& placed, std::uint64_t& new_bytes) {
  placed.lock.reset();  // sorting millions of blobs and views takes seconds
  ContentTaking taking(request.content, placed.new_blobs);
  WEFT_TRY(placed.lock, parts_.index.lock());
  const auto write = [&](const std::function<Result<std::uint64_t>(Txn&)>& part) -> Status {
    std::uint64_t more = 0;
    WEFT_CHECK(parts_.index.write(*placed.lock, [&](Txn& txn) -> Status {
      WEFT_TRY(more, part(txn));
      return {};
    }));
    new_bytes += more;
    return end_part(placed);
  };
  bool same = false;
  WEFT_CHECK(write([&](Txn& txn) -> Result<std::uint64_t> {
    WEFT_TRY(const auto newest, newest_with(txn, request.model, manifest));
    same = newest.has_value();
    if (same) return std::uint64_t{0};
    WEFT_TRY(VersionRow version, plan_version(txn, request, manifest));
    return taking.begin(txn, std::move(version));
  }));
  if (same) return std::optional<TakenContent>();
  for (std::uint64_t from = 0, end = 0; from < taking.steps(); from = end) {
    end = std::min<std::uint64_t>(from + limits::kBatchRows, taking.steps());
    WEFT_CHECK(write([&](Txn& txn) { return taking.take(txn, from, end); }));
  }
  return std::optional(taking.taken());
}

// Undoes the parts of a large publish that ended before its commit. The caller holds the collector's lock, so no large
// publish is running. After an error, the next call continues.
Status StoreImpl::give_up_taking(Progress& progress) {
  std::optional<UnderWay> left;
  {
    WEFT_TRY(Txn txn, parts_.index.read());
    WEFT_TRY(left, find_under_way(txn));
  }
  if (!left) return {};
  WEFT_TRY(const VersionContent content, parts_.contents.of(left->version.manifest));
  const ContentTaking taking(content, {});
  for (bool more = true; more;) {
    if (progress.cancelled()) return Error{Errc::cancelled, fmt::format("{}: stopped", parts_.path)};
    WEFT_TRY(const WriterLock lock,
             parts_.index.lock());  // replays the journal: a journaled commit makes the version live
    WEFT_CHECK(parts_.index.write(lock, [&](Txn& txn) -> Status {
      WEFT_TRY(const std::optional<UnderWay> now, find_under_way(txn));
      more = now && now->steps > limits::kBatchRows;
      if (!now) return {};
      return taking.give_back(txn, now->version.id,
                              now->steps - std::min<std::uint64_t>(now->steps, limits::kBatchRows), now->steps);
    }));
  }
  return {};
}

// For fsck: undoes an unfinished large publish if this process may write.
Status StoreImpl::give_up_left(Progress& progress) {
  {
    WEFT_TRY(Txn txn, parts_.index.read());
    WEFT_TRY(const std::optional<UnderWay> left, find_under_way(txn));
    if (!left || !parts_.options.write) return {};
  }
  WEFT_TRY(const Fd collector, lock_collector(parts_.path, LockKind::exclusive, parts_.options.patience));
  return give_up_taking(progress);
}

// Returns a problem line if a large publish ended before its commit, else "". Nothing is lost: gc or the next large
// publish undoes its parts.
Result<std::string> StoreImpl::left_taking() {
  WEFT_TRY(Txn txn, parts_.index.read());
  WEFT_TRY(const std::optional<UnderWay> left, find_under_way(txn));
  return left ? fmt::format("{}: a publish of {} ended before its commit; `weft gc` gives back its space", parts_.path,
                            left->version.model_name)
              : std::string();
}

}  // namespace weft
