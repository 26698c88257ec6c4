// Compaction: live blobs of some packs are copied into a new one, the index is pointed there in one transaction, the
// old packs go. Copying happens under shared locks, beside readers; only the move takes the exclusive ones.
#include <algorithm>
#include <unordered_set>

#include <fmt/core.h>

#include "base/log.h"
#include "store/blob_check.h"
#include "store/collect.h"
#include "store/file_ops.h"
#include "store/pack_file.h"
#include "store/temp_area.h"

namespace weft {
namespace {

constexpr std::size_t kTinyGroup = 256;  // packs that are merged into one, and open meanwhile

struct Move {
  ContentId id;
  BlobPlace from;
  BlobPlace to;
};

struct OldPack {
  PackId id;
  Fd fd;
};

// All that the index finds in the pack, also what was let go since the pack was swept: no row may be left behind.
std::vector<PackEntry> indexed_here(JudgedPack judged) {
  std::vector<PackEntry> entries = std::move(judged.live);
  std::move(judged.unheld.begin(), judged.unheld.end(), std::back_inserter(entries));
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  return entries;
}

class Compaction {
 public:
  Compaction(Packs& packs, IndexAccess& index, Progress& progress, GcReport& report)
      : packs_(packs), index_(index), progress_(progress), report_(report) {}
  Status run(const std::vector<PackId>& group);

 private:
  Status copy(PackId pack, PackWriter& to);
  Status copy_blobs(const PackToc& toc, int fd, PackWriter& to);
  Status lock_old();
  Status repoint();
  Status remove_old();
  Status discard(PackId pack);

  Packs& packs_;
  IndexAccess& index_;
  Progress& progress_;
  GcReport& report_;
  std::vector<OldPack> old_;
  std::vector<Move> moves_;
};

Status Compaction::run(const std::vector<PackId>& group) {
  WEFT_TRY(std::unique_ptr<TempArea> temp, TempArea::make(packs_.store_path()));
  WEFT_TRY(std::unique_ptr<PackWriter> fresh, PackWriter::create(packs_.store_path(), temp->path()));
  for (PackId pack : group) WEFT_CHECK(copy(pack, *fresh));
  if (fresh->empty()) return {};
  WEFT_CHECK(fresh->sync());
  WEFT_CHECK(fresh->publish());
  WEFT_CHECK(sync_directory(packs_.store_path() + "/packs"));
  WEFT_CHECK(lock_old());
  if (old_.empty()) return discard(fresh->id());
  WEFT_CHECK(repoint());
  WEFT_TRY(struct stat st, stat_fd(fresh->fd(), "pack"));
  std::uint64_t before = report_.disk_bytes_freed;
  WEFT_CHECK(remove_old());
  report_.disk_bytes_freed -= std::min(report_.disk_bytes_freed - before, allocated_bytes(st));
  return {};
}

// A pack in use is left out before anything is copied. One with damage too: that is fsck's business.
Status Compaction::copy(PackId pack, PackWriter& to) {
  const std::string path = pack_path(packs_.store_path(), pack);
  auto fd = open_exclusive(path);
  if (!fd.ok()) {
    if (fd.error().code == Errc::busy) ++report_.busy_packs;
    return fd.error().code == Errc::busy || fd.error().code == Errc::not_found ? Status{} : Status{fd.error()};
  }
  WEFT_CHECK(lock_fd(fd->get(), LockKind::shared, LockWait::yes, path));
  WEFT_TRY(PackToc toc, packs_.toc(pack));
  std::size_t moves_before = moves_.size();
  Status copied = copy_blobs(toc, fd->get(), to);
  if (!copied.ok() && (copied.error().code == Errc::corrupt || copied.error().code == Errc::io)) {
    log_warning("gc: {}", copied.error().message);
    moves_.resize(moves_before);
    return {};
  }
  WEFT_CHECK(std::move(copied));
  old_.push_back({pack, std::move(fd).value()});
  return {};
}

Status Compaction::copy_blobs(const PackToc& toc, int fd, PackWriter& to) {
  JudgedPack judged;
  {
    WEFT_TRY(std::unique_ptr<BlobIndex> index, index_.read());
    WEFT_TRY(judged, judge_pack(*index, toc));
  }
  const std::string where = pack_path(packs_.store_path(), toc.pack);
  for (PackEntry& entry : indexed_here(std::move(judged))) {
    std::uint64_t at = to.reserve(entry.id.length, entry.offset);
    BlobSink sink = [&to, at](std::uint64_t offset, std::span<const std::byte> bytes) {
      return to.write(at + offset, bytes);
    };
    WEFT_CHECK(check_blob(fd, where, entry, progress_, sink));
    moves_.push_back({entry.id, {toc.pack, entry.offset}, {to.id(), at}});
    to.list({entry.id, at, std::move(entry.chunks), entry.hint});
  }
  return {};
}

// Who took one up meanwhile keeps it where it is; the copy is then garbage for the next gc.
Status Compaction::lock_old() {
  std::vector<OldPack> locked;
  for (OldPack& pack : old_) {
    Status status = lock_fd(pack.fd.get(), LockKind::exclusive, LockWait::no, pack_name(pack.id));
    if (status.ok()) {
      locked.push_back(std::move(pack));
    } else if (status.error().code == Errc::busy) {
      ++report_.busy_packs;
    } else {
      return status;
    }
  }
  old_ = std::move(locked);
  return {};
}

Status Compaction::repoint() {
  WEFT_TRY(std::unique_ptr<BlobWriter> writer, index_.write());
  std::unordered_set<PackId> locked;
  for (const OldPack& pack : old_) locked.insert(pack.id);
  for (const Move& move : moves_) {
    if (!locked.contains(move.from.pack)) continue;
    WEFT_TRY(std::optional<BlobPlace> now, writer->find(move.id));
    bool in_place = now && now->pack == move.from.pack && now->offset == move.from.offset;
    if (in_place) WEFT_CHECK(writer->put(move.id, move.to));
  }
  return writer->commit();
}

Status Compaction::remove_old() {
  for (const OldPack& pack : old_) {
    WEFT_TRY(struct stat st, stat_fd(pack.fd.get(), pack_name(pack.id)));
    WEFT_CHECK(discard(pack.id));
    report_.disk_bytes_freed += allocated_bytes(st);
    ++report_.packs_compacted;
  }
  return {};
}

Status Compaction::discard(PackId pack) {
  WEFT_CHECK(remove_file(pack_path(packs_.store_path(), pack)));
  return remove_file(toc_path(packs_.store_path(), pack));
}

}  // namespace

Status compact_packs(Packs& packs, IndexAccess& index, const CompactionPlan& plan, Progress& progress,
                     GcReport& report) {
  std::vector<std::vector<PackId>> groups;
  for (std::size_t i = 0; i < plan.tiny.size(); i += kTinyGroup)
    groups.emplace_back(plan.tiny.begin() + static_cast<std::ptrdiff_t>(i),
                        plan.tiny.begin() + static_cast<std::ptrdiff_t>(std::min(i + kTinyGroup, plan.tiny.size())));
  for (PackId pack : plan.fragmented) groups.push_back({pack});
  for (const std::vector<PackId>& group : groups) WEFT_CHECK(Compaction(packs, index, progress, report).run(group));
  return {};
}

}  // namespace weft
