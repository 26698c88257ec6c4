// fsck of packs while writers and gc run. A pack that gc removes meanwhile is no problem. The index, a pack and its
// .toc are read at different moments, so a finding counts only if a second look at all three confirms it.
// Assembled files are packs that no index names.
#include "packs/verify.h"

#include <fcntl.h>

#include <algorithm>
#include <mutex>

#include <fmt/core.h>

#include "base/sha256.h"
#include "base/thread_pool.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "os/file_ops.h"
#include "os/page_cache.h"
#include "os/sys.h"
#include "packs/assembled.h"
#include "packs/blob_check.h"
#include "packs/manifest_packs.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

// The chunks of larger blobs are read by several threads. A smaller blob is read by one.
constexpr std::uint64_t kLargeBlob = 64U << 20U;

// True if the pack was removed meanwhile: its .pack goes before its .toc.
bool is_gone(const PackReader& pack) {
  auto st = stat_fd(pack.fd(), "pack");
  return st.ok() && st->st_nlink == 0;
}

class Verifier {
 public:
  // `index`: nullptr to skip the rows of blobs.
  Verifier(const PackDir& packs, IndexAccess* index, bool data, Progress& progress, FsckReport& report,
           VerifyPace* pace = nullptr)
      : packs_(packs), index_(index), data_(data), progress_(progress), report_(report), pace_(pace) {}

  // The bytes of an open pack do not change. So the second scan reads only the records, and which entries still count.
  Status verify(PackId id) {
    problems_.clear();
    damaged_.clear();
    WEFT_CHECK(scan(id, data_));
    if (problems_.empty() && damaged_.empty()) return {};
    const std::vector<std::string> first = std::exchange(problems_, {});
    const std::vector<DamagedBlob> damaged = std::exchange(damaged_, {});
    const FsckReport counted = report_;
    used_.clear();
    WEFT_CHECK(scan(id, false));
    report_ = counted;
    for (const std::string& line : first)
      if (std::ranges::find(problems_, line) != problems_.end()) report_.problems.push_back(line);
    for (const DamagedBlob& blob : damaged) {
      const auto counts = [&blob](const PackEntry& entry) { return entry.id == blob.id; };
      if (std::ranges::none_of(used_, counts)) continue;
      report_.problems.push_back(blob.what);
      if (!holds_manifests(id)) report_.damaged.push_back(blob);  // manifests are not repaired this way
    }
    return {};
  }

 private:
  Status scan(PackId id, bool data) {
    auto pack = packs_.open_alone(id);
    if (!pack.ok() && pack.error().code == Errc::not_found) return {};
    if (!pack.ok()) {
      problem(pack.error().message);
      return {};
    }
    auto toc = packs_.toc(id);
    if (!toc.ok() && is_gone(**pack)) return {};
    if (pace_ == nullptr) ++report_.packs;
    if (!toc.ok()) {
      problem(toc.error().message);
      return {};
    }
    if (!check_shape(*toc)) return {};
    if (pace_ == nullptr) report_.blobs += toc->entries.size();
    used_ = toc->entries;
    if (index_ != nullptr) {
      WEFT_TRY(used_, check_rows(*toc));
    }
    check_size(**pack, *toc, used_, data);
    copy_.reset();
    if (holds_manifests(id) && !used_.empty()) open_copy(**pack, id);
    if (!data) return {};
    return pace_ != nullptr ? check_at_pace(**pack, *toc, used_) : check_data(**pack, *toc, used_);
  }

  void problem(std::string line) {
    std::lock_guard lock(mutex_);
    problems_.push_back(std::move(line));
  }

  void damaged(const PackToc& toc, const PackEntry& entry, std::string line) {
    std::lock_guard lock(mutex_);
    damaged_.push_back({entry.id, {toc.pack, entry.offset}, std::move(line)});
  }

  bool check_shape(const PackToc& toc) {
    for (const PackEntry& entry : toc.entries) {
      if (root_agrees(entry) && (!holds_manifests(toc.pack) || names_manifest(entry))) continue;
      problem(fmt::format("{}: blob {} at {}: its digests do not agree with its root", packs_.toc_file(toc.pack),
                          to_hex(entry.id.root), entry.offset));
      return false;
    }
    return true;
  }

  // A blob of `used` beyond the end of its pack is damaged; with `data` the read finds that. A pack that lost only
  // other bytes is fine.
  void check_size(const PackReader& pack, const PackToc& toc, const std::vector<PackEntry>& used, bool data) {
    const std::string line =
        fmt::format("{}: expected {} bytes, got {}", packs_.pack_file(toc.pack), toc.size, pack.size());
    if (pack.size() > toc.size) return problem(line);
    if (data) return;
    for (const PackEntry& entry : used)
      if (entry.offset + entry.id.length > pack.size())
        damaged(toc, entry, fmt::format("{}: blob {} lies behind its end", line, to_hex(entry.id.root)));
  }

  // Returns the entries whose bytes count: all but those of blobs that the index names elsewhere.
  Result<std::vector<PackEntry>> check_rows(const PackToc& toc) {
    std::vector<PackEntry> used;
    for (std::size_t i = 0; i < toc.entries.size();) {
      auto opened = index_->read();
      if (!opened.ok() && opened.error().code == Errc::corrupt) return toc.entries;  // compare_indexes() reports it
      WEFT_TRY(std::unique_ptr<BlobIndex> index, std::move(opened));
      for (std::size_t end = std::min(i + limits::kRowsPerSnapshot, toc.entries.size()); i < end; ++i) {
        WEFT_TRY(const bool counts, check_row(*index, toc, toc.entries[i]));
        if (counts) used.push_back(toc.entries[i]);
      }
    }
    return used;
  }

  // Returns false if nothing reads these bytes. Then the index names the blob in another pack, and this copy may be a
  // damaged one that was replaced. Or no row names the blob: it is garbage for gc, and is left by a publish or an
  // eviction that runs or was interrupted.
  Result<bool> check_row(BlobIndex& index, const PackToc& toc, const PackEntry& entry) {
    const bool manifest = holds_manifests(toc.pack);
    auto place = manifest ? index.find_manifest(manifest_digest(entry)) : index.find(entry.id);
    if (!place.ok()) {
      if (place.error().code != Errc::corrupt) return place.error();
      problem(place.error().message);
      return true;
    }
    const SafePath where = packs_.pack_file(toc.pack);
    if (*place && (*place)->pack == toc.pack && (*place)->offset != entry.offset)
      problem(fmt::format("{}: the index has blob {} at {}, the pack at {}; run `weft fsck --rebuild`", where,
                          to_hex(entry.id.root), (*place)->offset, entry.offset));
    if (*place) return (*place)->pack == toc.pack;
    if (manifest) return false;  // no version needs it, or the index names its file
    auto absent = index.is_absent(entry.id);
    if (absent.ok() && *absent) return false;
    auto held = index.is_held(entry.id);
    if (!held.ok() && held.error().code != Errc::corrupt) return std::move(held).error();
    if (!held.ok()) problem(held.error().message);
    if (held.ok() && *held)
      problem(fmt::format("{}: the index lacks blob {}, which a version needs; run `weft fsck --rebuild`", where,
                          to_hex(entry.id.root)));
    return !held.ok() || *held;
  }

  bool holds_manifests(PackId pack) const { return index_ != nullptr && kind_of_pack(pack) == PackKind::manifests; }

  // A pack of manifests has a second copy, which appears last and is removed first. A pack without one is not damaged
  // while no row names it: a writer or a gc that died has left it.
  void open_copy(const PackReader& pack, PackId id) {
    auto copy = open_file(packs_.copy_file(id), O_RDONLY);
    if (copy.ok()) copy_ = *std::move(copy);
    if (copy.ok() || is_gone(pack)) return;
    const bool missing = copy.error().code == Errc::not_found;
    problem(missing ? fmt::format("{}: is missing; run `weft fsck --rebuild`", packs_.copy_file(id))
                    : copy.error().message);
  }

  // Of a manifest, both copies are read, each with its record's header.
  Status check_manifest(const PackReader& pack, const PackToc& toc, const PackEntry& entry) {
    WEFT_CHECK(check_record(pack.fd(), entry, packs_.pack_file(toc.pack)));
    return copy_.valid() ? check_record(copy_.get(), entry, packs_.copy_file(toc.pack)) : Status{};
  }

  Status check_data(const PackReader& pack, const PackToc& toc, const std::vector<PackEntry>& entries) {
    std::vector<const PackEntry*> small;
    for (const PackEntry& entry : entries) {
      report_.bytes_read += entry.id.length;
      if (entry.id.length < kLargeBlob) {
        small.push_back(&entry);
      } else {
        check_large(pack, toc, entry);
        progress_.advance(entry.id.length);
      }
    }
    const SafePath name = packs_.pack_file(toc.pack);
    pool_.parallel_for(small.size(), [&](std::size_t i) {
      if (progress_.cancelled()) return;
      const bool manifest = holds_manifests(toc.pack);
      note(manifest ? check_manifest(pack, toc, *small[i]) : check_blob(pack.fd(), name, *small[i], progress_), toc,
           *small[i]);
      progress_.advance(small[i]->id.length);
    });
    WEFT_CHECK(stopped());
    return std::exchange(failure_, Status{});
  }

  // Several threads read the blob's chunks. Only the first damaged chunk is reported.
  void check_large(const PackReader& pack, const PackToc& toc, const PackEntry& entry) {
    const SafePath name = packs_.pack_file(toc.pack);
    std::vector<Status> found(entry.chunks.size());
    pool_.parallel_for(entry.chunks.size(), [&](std::size_t chunk) {
      if (progress_.cancelled()) return;
      const std::uint64_t begin = chunk * kDigestChunk;
      std::vector<std::byte> bytes(std::min<std::uint64_t>(kDigestChunk, entry.id.length - begin));
      found[chunk] = read_exact(pack.fd(), entry.offset + begin, bytes, name);
      if (found[chunk].ok() && sha256(bytes) != entry.chunks[chunk])
        found[chunk] = Error{Errc::corrupt,
                             fmt::format("{}: blob {} of {} bytes at {}: SHA-256 differs at {}", name,
                                         to_hex(entry.id.root), entry.id.length, entry.offset, entry.offset + begin)};
    });
    const auto first = std::ranges::find_if(found, [](const Status& status) { return !status.ok(); });
    if (first != found.end()) note(*first, toc, entry);
  }

  Status check_at_pace(const PackReader& pack, const PackToc& toc, const std::vector<PackEntry>& entries) {
    const SafePath name = packs_.pack_file(toc.pack);
    const BlobSink read = [this](std::uint64_t, std::span<const std::byte> piece) {
      pace_->have_read(piece.size());
      return Status{};
    };
    for (const PackEntry& entry : entries) {
      if (toc.pack == pace_->from.pack && entry.offset < pace_->from.offset) continue;
      pace_->over = pace_->is_over();
      pace_->from = {toc.pack, entry.offset};
      if (pace_->over) return {};
      const bool cached = all_cached(pack.fd(), entry.offset, entry.id.length);
      if (holds_manifests(toc.pack)) {
        note(check_manifest(pack, toc, entry), toc, entry);
        pace_->have_read(2 * entry.id.length);
      } else {
        note(check_blob(pack.fd(), name, entry, no_progress(), read), toc, entry);
      }
      if (!cached) forget_pages(pack.fd(), entry.offset, entry.id.length);
      ++report_.blobs;
      report_.bytes_read += entry.id.length;
      progress_.advance(entry.id.length);
    }
    ++report_.packs;
    return std::exchange(failure_, Status{});
  }

  // Records the result of a blob's check. Damage is a finding; any other error ends the run.
  void note(const Status& status, const PackToc& toc, const PackEntry& entry) {
    if (status.ok()) return;
    if (status.error().code == Errc::corrupt || status.error().code == Errc::io)
      return damaged(toc, entry, status.error().message);
    std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = status;
  }

  Status stopped() const {
    if (progress_.cancelled()) return Error{Errc::cancelled, fmt::format("{}: fsck stopped", packs_.path())};
    return {};
  }

  const PackDir& packs_;
  IndexAccess* const index_;
  const bool data_;
  Progress& progress_;
  FsckReport& report_;
  VerifyPace* const pace_;
  ThreadPool pool_{0};
  std::mutex mutex_;  // guards problems_, damaged_ and failure_ while threads read
  std::vector<std::string> problems_;
  std::vector<DamagedBlob> damaged_;
  Fd copy_;                      // the second copy of a pack of manifests that look() read last
  std::vector<PackEntry> used_;  // the entries whose bytes count, of the pack that look() read last
  Status failure_;
};

// Sorts the packs, and drops those before the place where a run with a pace begins.
void sort_from(std::vector<PackId>& packs, const VerifyPace* pace) {
  if (pace != nullptr) std::erase_if(packs, [pace](PackId pack) { return pack < pace->from.pack; });
  std::ranges::sort(packs);
}

}  // namespace

Status verify_packs(Packs& packs, IndexAccess& index, bool data, Progress& progress, FsckReport& report,
                    VerifyPace* pace) {
  progress.phase(data ? "reading packs" : "checking packs");
  WEFT_TRY(std::vector<PackId> all, packs.list());
  sort_from(all, pace);
  std::uint64_t bytes = 0;
  for (PackId pack : all) {
    auto st = stat_file(pack_path(packs.store_path(), pack));
    if (data && st.ok()) bytes += allocated_bytes(*st);
  }
  progress.total(bytes);
  Verifier verifier(packs, &index, data, progress, report, pace);
  for (PackId pack : all) {
    if (pace == nullptr && progress.cancelled())
      return Error{Errc::cancelled, fmt::format("{}: fsck stopped", packs.store_path())};
    WEFT_CHECK(verifier.verify(pack));
    if (pace != nullptr && pace->over) return {};
  }
  return {};
}

Status verify_assembled(AssembledPacks& assembled, bool data, DamagedFiles damaged, Progress& progress,
                        FsckReport& report, VerifyPace* pace) {
  const bool may_delete = damaged == DamagedFiles::remove;
  Verifier verifier(assembled.dir(), nullptr, data, progress, report, pace);
  std::vector<PackId> all = assembled.list();
  sort_from(all, pace);
  for (const PackId id : all) {
    if (pace != nullptr && pace->over) return {};
    if (pace == nullptr && progress.cancelled())
      return Error{Errc::cancelled, fmt::format("{}: fsck stopped", assembled.path())};
    // kept open, so that only this file is deleted and not one that replaces it
    const auto pack = assembled.dir().open_alone(id);
    const std::size_t before = report.problems.size();
    const std::size_t blobs = report.damaged.size();
    WEFT_CHECK(verifier.verify(id));
    report.damaged.resize(blobs);  // no repair needed: the file can be assembled again
    if (report.problems.size() == before) continue;
    const bool gone = may_delete && pack.ok() && assembled.remove(**pack);
    const std::string_view stays = may_delete ? "; it may be deleted" : "; kept until the rest is repaired";
    report.problems.back() += gone ? "; deleted: it can be assembled again" : stays;
  }
  return {};
}

}  // namespace weft
