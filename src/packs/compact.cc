// gc's second pass: copies the live blobs of some packs into a new one, points the index there, and deletes the old
// packs. Readers keep the old packs that they have open.
#include <fcntl.h>

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/log.h"
#include "diskformat/toc.h"
#include "os/entries.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "packs/blob_check.h"
#include "packs/collect.h"
#include "packs/manifest_packs.h"
#include "packs/pack_writer.h"
#include "packs/temp_area.h"

namespace weft {
namespace {

// An index row to be pointed to the new pack, or to be erased.
struct Move {
  ContentId id;
  Digest manifest;  // for packs of manifests
  std::uint64_t hint = 0;
  BlobPlace from;
  std::optional<BlobPlace> to;  // none: no version needed it when the pack was copied
};

struct OldPack {
  PackId id = 0;
  std::size_t moves_end = 0;                 // end of the pack's rows in moves_
  std::uint64_t freed = 0, freed_bytes = 0;  // freed with the pack
  std::uint64_t dead_bytes = 0;
};

class Rewrite {
 public:
  explicit Rewrite(const CollectContext& context) : context_(context) {}

  Status run(const RewriteGroup& group) {
    WEFT_TRY(const std::unique_ptr<TempArea> temp, TempArea::make(context_.packs.store_path()));
    const PackKind kind = kind_of_pack(group.packs.front());
    WEFT_TRY(fresh_, PackWriter::create(context_.packs.store_path(), temp->path(), kind));
    if (group.packs.size() > 1) fresh_->set_merged();
    if (group.cached) WEFT_CHECK(cache_fresh());
    for (const PackId pack : group.packs) WEFT_CHECK(copy(pack));
    if (fresh_->empty()) return {};
    WEFT_CHECK(fresh_->sync());
    WEFT_CHECK(place());
    log_debug(LogCategory::gc, "pack {} takes the needed blobs of {} packs", pack_name(fresh_->id()), old_.size());
    return replace();
  }

 private:
  // Locks the new pack as one that is being filled, so that eviction leaves it alone until the index names all of it.
  Status cache_fresh() {
    cached_ = true;
    fresh_->set_cached();
    return lock_fd(fresh_->fd(), LockKind::exclusive, LockWait::no, fresh_->where());
  }

  // Copies the live blobs of a pack. Leaves the pack out if it is gone, if a publish has promoted it or a hand-over has
  // made it cached since the plan, or if it is damaged; fsck repairs damage.
  Status copy(PackId pack) {
    auto toc = context_.packs.toc(pack);
    if (!toc.ok() || toc->cached != cached_) return {};
    auto fd = open_file(context_.packs.pack_file(pack), O_RDONLY);
    if (!fd.ok()) return fd.error().code == Errc::not_found ? Status{} : Status{fd.error()};
    WEFT_TRY(used_, stat_fd(fd->get(), "pack"));
    Status copied = copy_blobs(*toc, fd->get());
    if (!copied.ok() && (copied.error().code == Errc::corrupt || copied.error().code == Errc::io)) {
      log_warning("gc: {}", copied.error().message);
      return {};
    }
    return copied;
  }

  Status copy_blobs(const PackToc& toc, int fd) {
    WEFT_TRY(const JudgedPack judged, judge_pack(context_.index, context_.unreaped, toc));
    const SafePath where = context_.packs.pack_file(toc.pack);
    std::vector<PackEntry> copied;
    for (const PackEntry& entry : judged.live) {
      WEFT_TRY(PackEntry copy, copy_entry(fd, where, entry));
      copied.push_back(std::move(copy));
    }
    for (std::size_t i = 0; i < copied.size(); ++i)
      note_move(toc, judged.live[i], BlobPlace{fresh_->id(), copied[i].offset});
    for (const PackEntry& entry : judged.unheld) note_move(toc, entry, {});
    for (PackEntry& entry : copied) fresh_->list(std::move(entry));
    old_.push_back({toc.pack, moves_.size(), judged.unlisted.size(), total_bytes(judged.unlisted),
                    total_bytes(toc.entries) - total_bytes(judged.live)});
    return {};
  }

  Result<PackEntry> copy_entry(int fd, std::string_view where, const PackEntry& entry) {
    if (manifests()) {
      WEFT_TRY(const auto bytes, read_manifest(fd, entry.offset, entry.id.length, manifest_digest(entry), where));
      return write_manifest(*fresh_, manifest_digest(entry), bytes);
    }
    const std::uint64_t at = fresh_->reserve(entry.id.length, entry.offset);
    WEFT_CHECK(copy_blob(fd, where, entry, at));
    return PackEntry{entry.id, at, entry.chunks, entry.hint};
  }

  // Copies a blob and verifies all of it. Shares whole blocks with the old pack if the file system can.
  Status copy_blob(int fd, std::string_view where, const PackEntry& entry, std::uint64_t at) {
    const std::uint64_t head = (kPackBlock - entry.offset % kPackBlock) % kPackBlock;
    Range shared{head, 0};
    if (entry.offset % kPackBlock == at % kPackBlock && entry.id.length >= head + kPackBlock) {
      shared.length = (entry.id.length - head) / kPackBlock * kPackBlock;
      if (!clone_range(fd, entry.offset + head, shared.length, fresh_->fd(), at + head, where).ok()) shared.length = 0;
    }
    const std::uint64_t shared_end = shared.offset + shared.length;
    const BlobSink sink = [&](std::uint64_t offset, std::span<const std::byte> bytes) -> Status {
      if (shared.length == 0) return fresh_->write(at + offset, bytes);
      const std::uint64_t end = offset + bytes.size();
      if (offset < shared.offset)
        WEFT_CHECK(fresh_->write(at + offset, bytes.first(std::min(end, shared.offset) - offset)));
      if (end <= shared_end) return {};
      const std::uint64_t begin = std::max(offset, shared_end);
      return fresh_->write(at + begin, bytes.subspan(begin - offset));
    };
    return check_blob(fd, where, entry, context_.progress, sink);
  }

  void note_move(const PackToc& toc, const PackEntry& entry, std::optional<BlobPlace> to) {
    moves_.push_back(
        {entry.id, manifests() ? manifest_digest(entry) : Digest(), entry.hint, {toc.pack, entry.offset}, to});
  }

  // Places the new pack, before the index names it.
  Status place() {
    WEFT_TRY(const std::unique_ptr<BlobWriter> lock, context_.index.write());
    Status placed = fresh_->publish();
    if (placed.ok()) keep_use();
    if (placed.ok()) placed = sync_directory(context_.packs.path());
    if (!placed.ok()) static_cast<void>(remove_pack(context_.packs, fresh_->id()));
    return placed;
  }

  // Eviction takes the packs first that were used longest ago; a rewrite is no use.
  void keep_use() const {
    const timespec times[] = {used_.st_atim, used_.st_mtim};
    if (cached_) static_cast<void>(change_times(fresh_->fd(), times));
  }

  // Updates the index in batches and deletes the old packs. Between two batches the index names blobs in the new pack
  // and in old ones, all of which exist.
  Status replace() {
    std::size_t pack = 0;
    for (std::size_t at = 0; pack < old_.size();) {
      WEFT_TRY(at, replace_some(at, pack));
    }
    WEFT_TRY(const std::unique_ptr<BlobWriter> lock, context_.index.write());
    WEFT_TRY(const std::uint64_t taken, lock->in_pack(fresh_->id()));
    if (taken == 0) {
      WEFT_CHECK(lock->note_cached(fresh_->id(), false));
      WEFT_CHECK(lock->commit());
      return remove_pack(context_.packs, fresh_->id());
    }
    WEFT_TRY(const struct stat st, stat_fd(fresh_->fd(), "pack"));
    context_.report.disk_bytes_freed += bytes_before_ - std::min(bytes_before_, allocated_bytes(st));
    return {};
  }

  // Moves a batch of rows, from `first` on. Deletes the packs, from `pack` on, that the index does not name any more,
  // still under the writer lock, so that fetches and evictions see the pack complete or not at all. Returns the first
  // row of the next batch.
  Result<std::size_t> replace_some(std::size_t first, std::size_t& pack) {
    WEFT_TRY(const std::unique_ptr<BlobWriter> index, context_.index.write());
    WEFT_CHECK(context_.unreaped.refresh(*index));
    if (cached_ && first == 0) WEFT_CHECK(index->note_cached(fresh_->id(), true));  // a publish may promote it later
    std::vector<const OldPack*> empty;
    std::size_t at = first;
    const std::size_t end = first + limits::kBatchRows;
    const std::size_t packs_end = std::min(old_.size(), pack + limits::kBatchItems);
    for (; pack < packs_end && at < end; ++pack) {
      OldPack& old = old_[pack];
      const bool busy = must_stay(old.id);
      if (busy) at = old.moves_end;
      for (; at < std::min(end, old.moves_end); ++at) WEFT_CHECK(move(*index, moves_[at], old));
      if (at < old.moves_end) break;
      WEFT_TRY(const std::uint64_t left, index->in_pack(old.id));
      if (left != 0 || busy) continue;
      empty.push_back(&old);
      if (cached_) WEFT_CHECK(index->note_cached(old.id, false));
    }
    WEFT_CHECK(index->commit());
    for (const OldPack* old : empty) WEFT_CHECK(remove(*old));
    return at;
  }

  // True if the pack must stay. A fetch may fill it, a publish may rely on it or have promoted it, an eviction may have
  // deleted it, or a hand-over may have made it cached.
  bool must_stay(PackId pack) const {
    const auto toc = context_.packs.toc(pack);
    return !toc.ok() || toc->cached != cached_ || is_busy(context_, *toc);
  }

  // Points a row to the new pack or erases it. A blob that was dead when the pack was copied, and is needed again,
  // stays in the old pack.
  Status move(BlobWriter& index, const Move& move, OldPack& old) {
    WEFT_TRY(const auto place, manifests() ? index.find_manifest(move.manifest) : index.find(move.id));
    if (place != move.from) return {};
    if (manifests()) return index.put_manifest(move.manifest, *move.to, move.id.length);
    WEFT_TRY(const bool held, index.is_held(move.id));
    if (held || context_.unreaped.has(move.id)) return move.to ? index.put(move.id, *move.to) : Status{};
    WEFT_CHECK(index.erase(move.id, move.hint));
    ++old.freed;
    old.freed_bytes += move.id.length;
    return {};
  }

  Status remove(const OldPack& old) {
    if (auto st = stat_file(context_.packs.pack_file(old.id)); st.ok()) bytes_before_ += allocated_bytes(*st);
    WEFT_CHECK(remove_pack(context_.packs, old.id));
    ++context_.report.packs_compacted;
    context_.report.blobs_freed += old.freed;
    context_.report.bytes_freed += old.freed_bytes;
    context_.report.dead_bytes -= std::min(context_.report.dead_bytes, old.dead_bytes);
    return {};
  }

  bool manifests() const { return kind_of_pack(fresh_->id()) == PackKind::manifests; }

  const CollectContext& context_;
  std::unique_ptr<PackWriter> fresh_;
  bool cached_ = false;  // the old pack and the new one
  struct stat used_ {};  // of the last old pack
  std::vector<OldPack> old_;
  std::vector<Move> moves_;
  std::uint64_t bytes_before_ = 0;  // disk bytes of the deleted packs
};

void foresee(const RewriteGroup& group, GcReport& report) {
  report.packs_compacted += group.packs.size();
  report.blobs_freed += group.dead_blobs;
  report.bytes_freed += group.dead_bytes;
  report.disk_bytes_freed += group.dead_bytes;
  report.dead_bytes -= std::min(report.dead_bytes, group.dead_bytes);
}

}  // namespace

Status rewrite_packs(const CollectContext& context, std::vector<RewriteGroup> groups) {
  std::ranges::sort(groups, {}, &RewriteGroup::live_bytes);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (context.input.options.dry_run) {
      foresee(groups[i], context.report);
      continue;
    }
    if (context.progress.cancelled())
      return Error{Errc::cancelled, fmt::format("{}: gc stopped", context.packs.store_path())};
    const Status status = Rewrite(context).run(groups[i]);
    if (status.ok()) continue;
    if (status.error().code != Errc::no_space) return status;
    for (; i < groups.size(); ++i) {
      context.report.packs_waiting += groups[i].packs.size();
      context.report.bytes_wanted += groups[i].live_bytes;
    }
  }
  return {};
}

}  // namespace weft
