// fsck of packs, beside writers and gc. A pack that gc has removed is no problem. The index, a pack and its .toc are
// not read at one moment, so a finding counts only if a second look, at all three again, finds it too.
#include <algorithm>
#include <mutex>

#include <fmt/core.h>

#include "base/sha256.h"
#include "base/sys.h"
#include "base/thread_pool.h"
#include "store/blob_check.h"
#include "store/file_ops.h"
#include "store/pack_file.h"
#include "store/toc.h"

namespace weft {
namespace {

// Larger blobs are shared between threads by chunks, smaller ones as a whole.
constexpr std::uint64_t kLargeBlob = 64U << 20U;
constexpr std::size_t kRowsPerSnapshot = 4096;

// A pack that goes loses first its .pack, then its .toc.
bool is_gone(const PackReader& pack) {
  auto st = stat_fd(pack.fd(), "pack");
  return st.ok() && st->st_nlink == 0;
}

class Verifier {
 public:
  Verifier(Packs& packs, IndexAccess& index, bool data, Progress& progress, FsckReport& report)
      : packs_(packs), index_(index), data_(data), progress_(progress), report_(report) {}
  Status verify(PackId pack);

 private:
  Status look(PackId pack);
  void problem(std::string line);
  bool check_shape(const PackReader& pack, const PackToc& toc);
  Result<std::vector<PackEntry>> check_rows(const PackToc& toc);
  Result<bool> check_row(BlobIndex& index, const PackToc& toc, const PackEntry& entry);
  Status check_data(const PackReader& pack, const std::string& where, const std::vector<PackEntry>& entries);
  Status check_large(const PackReader& pack, const PackEntry& entry, const std::string& where);
  void note(const Status& status);
  Status stopped() const;

  Packs& packs_;
  IndexAccess& index_;
  bool data_;
  Progress& progress_;
  FsckReport& report_;
  ThreadPool pool_{0};
  std::mutex mutex_;  // guards problems_ and failure_ while threads read
  std::vector<std::string> problems_;
  Status failure_;
};

void Verifier::problem(std::string line) {
  std::lock_guard lock(mutex_);
  problems_.push_back(std::move(line));
}

// What a blob's check says: damage is a finding, anything else ends the run.
void Verifier::note(const Status& status) {
  if (status.ok()) return;
  if (status.error().code == Errc::corrupt || status.error().code == Errc::io) return problem(status.error().message);
  std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = status;
}

Status Verifier::verify(PackId id) {
  problems_.clear();
  WEFT_CHECK(look(id));
  if (problems_.empty()) return {};
  const std::vector<std::string> first = std::exchange(problems_, {});
  const FsckReport counted = report_;
  WEFT_CHECK(look(id));
  report_ = counted;
  for (const std::string& line : first)
    if (std::ranges::find(problems_, line) != problems_.end()) report_.problems.push_back(line);
  return {};
}

Status Verifier::look(PackId id) {
  auto pack = packs_.open(id);
  if (!pack.ok() && pack.error().code == Errc::not_found) return {};
  if (!pack.ok()) {
    problem(pack.error().message);
    return {};
  }
  auto toc = packs_.toc(id);
  if (!toc.ok() && is_gone(**pack)) return {};
  ++report_.packs;
  if (!toc.ok()) {
    problem(toc.error().message);
    return {};
  }
  if (!check_shape(**pack, *toc)) return {};
  report_.blobs += toc->entries.size();
  WEFT_TRY(const std::vector<PackEntry> used, check_rows(*toc));
  return data_ ? check_data(**pack, pack_path(packs_.store_path(), id), used) : Status{};
}

bool Verifier::check_shape(const PackReader& pack, const PackToc& toc) {
  const std::string where = pack_path(packs_.store_path(), toc.pack);
  if (pack.size() != toc.size) {
    problem(fmt::format("{}: expected {} bytes, got {}", where, toc.size, pack.size()));
    return false;
  }
  for (const PackEntry& entry : toc.entries) {
    if (root_agrees(entry)) continue;
    problem(fmt::format("{}: blob {} at {}: its digests do not agree with its root",
                        toc_path(packs_.store_path(), toc.pack), to_hex(entry.id.root), entry.offset));
    return false;
  }
  return true;
}

// Returns the entries whose bytes count: not those of blobs that the index has elsewhere.
Result<std::vector<PackEntry>> Verifier::check_rows(const PackToc& toc) {
  std::vector<PackEntry> used;
  for (std::size_t i = 0; i < toc.entries.size();) {
    auto opened = index_.read();
    if (!opened.ok() && opened.error().code == Errc::corrupt) return toc.entries;  // told by the comparison
    WEFT_TRY(std::unique_ptr<BlobIndex> index, std::move(opened));
    for (std::size_t end = std::min(i + kRowsPerSnapshot, toc.entries.size()); i < end; ++i) {
      WEFT_TRY(const bool counts, check_row(*index, toc, toc.entries[i]));
      if (counts) used.push_back(toc.entries[i]);
    }
  }
  return used;
}

// A blob that the index does not know, or has elsewhere, is garbage that gc takes; unless somebody needs it. Returns
// false if the index has it elsewhere: the copy here may be one that was damaged, and replaced.
Result<bool> Verifier::check_row(BlobIndex& index, const PackToc& toc, const PackEntry& entry) {
  auto place = index.find(entry.id);
  if (!place.ok()) {
    if (place.error().code != Errc::corrupt) return place.error();
    problem(place.error().message);
    return true;
  }
  const std::string where = pack_path(packs_.store_path(), toc.pack);
  if (*place && (*place)->pack == toc.pack && (*place)->offset != entry.offset)
    problem(fmt::format("{}: the index has blob {} at {}, the pack at {}; run `weft fsck --rebuild`", where,
                        to_hex(entry.id.root), (*place)->offset, entry.offset));
  if (*place) return (*place)->pack == toc.pack;
  auto absent = index.is_absent(entry.id);
  if (absent.ok() && *absent) return true;  // of a publish on its way, or of an eviction that was cut off: gc takes it
  auto held = index.is_held(entry.id);
  if (!held.ok() && held.error().code != Errc::corrupt) return std::move(held).error();
  if (!held.ok()) problem(held.error().message);
  if (held.ok() && *held)
    problem(fmt::format("{}: the index lacks blob {}, which a version needs; run `weft fsck --rebuild`", where,
                        to_hex(entry.id.root)));
  return true;
}

Status Verifier::stopped() const {
  if (progress_.cancelled()) return Error{Errc::cancelled, fmt::format("{}: fsck stopped", packs_.store_path())};
  return {};
}

Status Verifier::check_data(const PackReader& pack, const std::string& where, const std::vector<PackEntry>& entries) {
  std::vector<const PackEntry*> small;
  for (const PackEntry& entry : entries) {
    report_.bytes_read += entry.id.length;
    if (entry.id.length < kLargeBlob) {
      small.push_back(&entry);
    } else {
      note(check_large(pack, entry, where));
      progress_.advance(entry.id.length);
    }
  }
  pool_.parallel_for(small.size(), [&](std::size_t i) {
    if (progress_.cancelled()) return;
    note(check_blob(pack.fd(), where, *small[i], progress_));
    progress_.advance(small[i]->id.length);
  });
  WEFT_CHECK(stopped());
  return std::exchange(failure_, Status{});
}

Status Verifier::check_large(const PackReader& pack, const PackEntry& entry, const std::string& where) {
  pool_.parallel_for(entry.chunks.size(), [&](std::size_t chunk) {
    if (progress_.cancelled()) return;
    const std::uint64_t begin = chunk * kDigestChunk;
    std::vector<std::byte> bytes(std::min<std::uint64_t>(kDigestChunk, entry.id.length - begin));
    Status read = read_exact(pack.fd(), entry.offset + begin, bytes, where);
    note(read);
    if (read.ok() && sha256(bytes) != entry.chunks[chunk])
      problem(fmt::format("{}: blob {} of {} bytes at {}: SHA-256 differs at {}", where, to_hex(entry.id.root),
                          entry.id.length, entry.offset, entry.offset + begin));
  });
  return {};
}

}  // namespace

Status verify_packs(Packs& packs, IndexAccess& index, bool data, Progress& progress, FsckReport& report) {
  progress.phase(data ? "reading packs" : "checking packs");
  WEFT_TRY(std::vector<PackId> all, packs.list());
  std::uint64_t bytes = 0;
  for (PackId pack : all) {
    auto st = stat_file(pack_path(packs.store_path(), pack));
    if (data && st.ok()) bytes += allocated_bytes(*st);
  }
  progress.total(bytes);
  Verifier verifier(packs, index, data, progress, report);
  for (PackId pack : all) {
    if (progress.cancelled()) return Error{Errc::cancelled, fmt::format("{}: fsck stopped", packs.store_path())};
    WEFT_CHECK(verifier.verify(pack));
  }
  return {};
}

}  // namespace weft
