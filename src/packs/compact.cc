// gc's second pass: the live blobs of some packs are copied into a new one, the index is pointed there in one
// transaction, the old packs go. Readers that have an old pack open keep it.
#include <fcntl.h>

#include <algorithm>
#include <unordered_set>

#include <fmt/core.h>

#include "base/log.h"
#include "diskformat/toc.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "packs/blob_check.h"
#include "packs/collect.h"
#include "packs/pack_writer.h"
#include "packs/temp_area.h"

namespace weft {
namespace {

struct Move {
  ContentId id;
  BlobPlace to;
};

struct OldPack {
  PackId id = 0;
  std::vector<Move> moves;  // all that was live when it was copied
};

// What is decided about one old pack under the writer lock.
struct Settled {
  const OldPack* pack = nullptr;
  JudgedPack judged;
  std::uint64_t dead_bytes = 0;
};

class Rewrite {
 public:
  explicit Rewrite(const CollectContext& context) : context_(context) {}
  Status run(const RewriteGroup& group);

 private:
  Status copy(PackId pack);
  Status copy_blobs(const PackToc& toc, int fd, OldPack& old);
  Status copy_blob(int fd, std::string_view where, const PackEntry& entry, std::uint64_t at);
  Status replace();
  Result<std::optional<Settled>> settle(BlobWriter& index, const OldPack& old);
  Status repoint(BlobWriter& index, std::span<const Settled> settled);
  Status place_and_commit(BlobWriter& index, std::span<const Settled> settled);
  bool is_indexed(const Settled& settled);
  void count(const Settled& settled);

  const CollectContext& context_;
  std::unique_ptr<PackWriter> fresh_;
  std::vector<OldPack> old_;
};

Status Rewrite::run(const RewriteGroup& group) {
  WEFT_TRY(const std::unique_ptr<TempArea> temp, TempArea::make(context_.packs.store_path()));
  WEFT_TRY(fresh_, PackWriter::create(context_.packs.store_path(), temp->path()));
  for (const PackId pack : group.packs) WEFT_CHECK(copy(pack));
  if (fresh_->empty()) return {};
  WEFT_CHECK(fresh_->sync());
  return replace();
}

// A pack that became busy, cached or damaged since it was looked at is left out. Damage is fsck's business.
Status Rewrite::copy(PackId pack) {
  auto toc = context_.packs.toc(pack);
  if (!toc.ok() || toc->cached) return {};
  auto fd = open_file(context_.packs.pack_file(pack), O_RDONLY);
  if (!fd.ok()) return fd.error().code == Errc::not_found ? Status{} : Status{fd.error()};
  OldPack old{pack, {}};
  Status copied = copy_blobs(*toc, fd->get(), old);
  if (!copied.ok() && (copied.error().code == Errc::corrupt || copied.error().code == Errc::io)) {
    log_warning("gc: {}", copied.error().message);
    return {};
  }
  WEFT_CHECK(std::move(copied));
  old_.push_back(std::move(old));
  return {};
}

Status Rewrite::copy_blobs(const PackToc& toc, int fd, OldPack& old) {
  WEFT_TRY(JudgedPack judged, look_at_pack(context_.index, context_.unreaped, toc));
  const SafePath where = context_.packs.pack_file(toc.pack);
  std::vector<PackEntry> copied;
  for (PackEntry& entry : judged.live) {
    const std::uint64_t at = fresh_->reserve(entry.id.length, entry.offset);
    WEFT_CHECK(copy_blob(fd, where, entry, at));
    old.moves.push_back({entry.id, {fresh_->id(), at}});
    copied.push_back({entry.id, at, std::move(entry.chunks), entry.hint});
  }
  for (PackEntry& entry : copied) fresh_->list(std::move(entry));
  return {};
}

// All of it is read and checked. Whole blocks are shared with the old pack where the file system can, not written.
Status Rewrite::copy_blob(int fd, std::string_view where, const PackEntry& entry, std::uint64_t at) {
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

// Under one writer lock. The old packs go while it is held, so that whoever fills or evicts a pack sees all or nothing.
Status Rewrite::replace() {
  WEFT_TRY(const std::unique_ptr<BlobWriter> index, context_.index.write());
  WEFT_CHECK(context_.unreaped.look(*index));
  std::vector<Settled> settled;
  for (const OldPack& old : old_) {
    WEFT_TRY(auto one, settle(*index, old));
    if (one) settled.push_back(std::move(*one));
  }
  if (settled.empty()) return {};
  WEFT_CHECK(place_and_commit(*index, settled));
  std::uint64_t before = 0;
  for (const Settled& one : settled) {
    if (auto st = stat_file(context_.packs.pack_file(one.pack->id)); st.ok()) before += allocated_bytes(*st);
    WEFT_CHECK(remove_pack(context_.packs, one.pack->id));
    count(one);
  }
  WEFT_TRY(const struct stat st, stat_fd(fresh_->fd(), "pack"));
  context_.report.disk_bytes_freed += before - std::min(before, allocated_bytes(st));
  return {};
}

// Nothing: the pack stays as it is, because somebody needs it, or needs a blob of it that was dead when it was copied.
Result<std::optional<Settled>> Rewrite::settle(BlobWriter& index, const OldPack& old) {
  const auto toc = context_.packs.toc(old.id);
  if (!toc.ok() || toc->cached) return std::optional<Settled>();
  const auto& relied_on = context_.input.is_relied_on;
  if ((relied_on && relied_on(*toc)) || is_being_filled(context_.packs, old.id)) {
    ++context_.report.busy_packs;
    return std::optional<Settled>();
  }
  std::unordered_set<ContentId> copied;
  for (const Move& move : old.moves) copied.insert(move.id);
  Settled settled{&old, {}, 0};
  WEFT_TRY(settled.judged, judge_pack(index, context_.unreaped, *toc));
  if (settled.judged.lost_rows) return std::optional<Settled>();
  for (const PackEntry& entry : settled.judged.live)
    if (!copied.contains(entry.id)) return std::optional<Settled>();
  settled.dead_bytes = total_bytes(toc->entries) - total_bytes(settled.judged.live);
  return std::optional(std::move(settled));
}

Status Rewrite::repoint(BlobWriter& index, std::span<const Settled> settled) {
  for (const Settled& one : settled) {
    std::unordered_set<ContentId> live;
    for (const PackEntry& entry : one.judged.live) live.insert(entry.id);
    for (const Move& move : one.pack->moves)
      if (live.contains(move.id)) WEFT_CHECK(index.put(move.id, move.to));
    for (const PackEntry& entry : one.judged.unheld) WEFT_CHECK(index.erase(entry.id, entry.hint));
  }
  return index.commit();
}

// The new pack is in its place before the index names it. If the index does not take it, it goes.
Status Rewrite::place_and_commit(BlobWriter& index, std::span<const Settled> settled) {
  Status status = fresh_->publish();
  if (status.ok()) status = sync_directory(context_.packs.path());
  if (status.ok()) status = repoint(index, settled);
  if (!status.ok() && !is_indexed(settled.front())) static_cast<void>(remove_pack(context_.packs, fresh_->id()));
  return status;
}

// Also when that cannot be told. A commit that failed may have taken hold.
bool Rewrite::is_indexed(const Settled& settled) {
  const auto index = context_.index.read();
  if (!index.ok()) return true;
  return std::ranges::any_of(settled.pack->moves, [&](const Move& move) {
    const auto place = (*index)->find(move.id);
    return !place.ok() || (*place && (*place)->pack == fresh_->id());
  });
}

void Rewrite::count(const Settled& settled) {
  ++context_.report.packs_compacted;
  context_.report.blobs_freed += settled.judged.unheld.size() + settled.judged.unlisted.size();
  context_.report.bytes_freed += total_bytes(settled.judged.unheld) + total_bytes(settled.judged.unlisted);
  context_.report.dead_bytes -= std::min(context_.report.dead_bytes, settled.dead_bytes);
}

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
