#include "store/publishing/large_publish.h"

#include <algorithm>
#include <functional>

#include <fmt/core.h>

#include "base/limits.h"
#include "catalog/plan.h"
#include "repair/rebuild.h"

namespace weft {
namespace {

// Releases the writer lock for a moment, so that other writers can commit.
Status end_part(StoreParts& parts, Placed& placed) {
  placed.lock.reset();
  if (parts.hooks.after_part) parts.hooks.after_part();
  WEFT_TRY(placed.lock, parts.index.lock());
  return {};
}

Result<std::optional<UnderWay>> left_under_way(StoreParts& parts) {
  WEFT_TRY(Txn txn, parts.index.read());
  return find_under_way(txn);
}

}  // namespace

Result<Fd> lock_for_attaching(StoreParts& parts) {
  WEFT_TRY(Fd collector, lock_collector(parts.path, LockKind::exclusive, parts.options.patience));
  WEFT_CHECK(abandon_attach(parts, no_progress()));
  return collector;
}

Result<std::optional<TakenContent>> take_content(StoreParts& parts, const PublishRequest& request,
                                                 const Digest& manifest, Placed& placed, std::uint64_t& new_bytes) {
  placed.lock.reset();  // sorting millions of blobs and views takes seconds
  ContentAttach attach(request.content, placed.new_blobs);
  WEFT_TRY(placed.lock, parts.index.lock());
  const auto write = [&](const std::function<Result<std::uint64_t>(Txn&)>& part) -> Status {
    std::uint64_t more = 0;
    WEFT_CHECK(parts.index.write(*placed.lock, [&](Txn& txn) -> Status {
      WEFT_TRY(more, part(txn));
      return {};
    }));
    new_bytes += more;
    return end_part(parts, placed);
  };
  bool same = false;
  WEFT_CHECK(write([&](Txn& txn) -> Result<std::uint64_t> {
    WEFT_TRY(const auto newest, same_as(txn, request, manifest));
    same = newest.has_value();
    if (same) return std::uint64_t{0};
    WEFT_TRY(VersionRow version, plan_version(txn, request, manifest));
    return attach.begin(txn, std::move(version));
  }));
  if (same) return std::optional<TakenContent>();
  for (std::uint64_t from = 0, end = 0; from < attach.steps(); from = end) {
    end = std::min<std::uint64_t>(from + limits::kBatchRows, attach.steps());
    WEFT_CHECK(write([&](Txn& txn) { return attach.attach(txn, from, end); }));
  }
  return std::optional(attach.taken());
}

Status abandon_attach(StoreParts& parts, Progress& progress) {
  WEFT_TRY(const std::optional<UnderWay> left, left_under_way(parts));
  if (!left) return {};
  WEFT_TRY(const VersionContent content, parts.contents.of(left->version.manifest));
  const ContentAttach attach(content, {});
  for (bool more = true; more;) {
    if (progress.cancelled()) return Error{Errc::cancelled, fmt::format("{}: stopped", parts.path)};
    // This replays the journal: a journaled commit makes the version live.
    WEFT_TRY(const WriterLock lock, parts.index.lock());
    WEFT_CHECK(parts.index.write(lock, [&](Txn& txn) -> Status {
      WEFT_TRY(const std::optional<UnderWay> now, find_under_way(txn));
      more = now && now->steps > limits::kBatchRows;
      if (!now) return {};
      return attach.release(txn, now->version.id, now->steps - std::min<std::uint64_t>(now->steps, limits::kBatchRows),
                            now->steps);
    }));
  }
  return {};
}

Status give_up_left(StoreParts& parts, Progress& progress) {
  WEFT_TRY(const std::optional<UnderWay> left, left_under_way(parts));
  if (!left || !parts.options.write) return {};
  WEFT_TRY(const Fd collector, lock_collector(parts.path, LockKind::exclusive, parts.options.patience));
  return abandon_attach(parts, progress);
}

Result<std::string> left_attaching(StoreParts& parts) {
  WEFT_TRY(const std::optional<UnderWay> left, left_under_way(parts));
  return left ? fmt::format("{}: a publish of {} ended before its commit; `weft gc` gives back its space", parts.path,
                            left->version.model_name)
              : std::string();
}

}  // namespace weft
