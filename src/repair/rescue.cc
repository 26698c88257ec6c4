#include "repair/rescue.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/sha256.h"
#include "diskformat/hash.h"
#include "os/holes.h"
#include "os/sys.h"
#include "packs/blob_check.h"
#include "packs/pack_writer.h"
#include "repair/rebuild_input.h"
#include "repair/repair_pack.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

constexpr std::uint64_t kStep = 4 * kDigestChunk;
// The search hashes at most kEffort times the pack's size, plus kEffortMin bytes. Repeated bytes such as zeros match
// the heads of many blobs at each offset. Other content costs about one hash per blob.
constexpr std::uint64_t kEffort = 64;
constexpr std::uint64_t kEffortMin = 256U << 20U;

// A sliding window over a pack's bytes, so that a search reads each byte once.
class PackWindow {
 public:
  PackWindow(const PackReader& pack, std::string where)
      : pack_(pack), where_(std::move(where)), buffer_(kStep + kExtentHeadBytes) {}

  // Returns `length` bytes at offset `at`, at most kExtentHeadBytes; valid until the next call.
  Result<std::span<const std::byte>> at(std::uint64_t at, std::uint64_t length) {
    if (at < begin_ || at + length > begin_ + filled_) {
      begin_ = at;
      filled_ = std::min<std::uint64_t>(buffer_.size(), pack_.size() - at);
      WEFT_CHECK(read_exact(pack_.fd(), begin_, std::span(buffer_).first(filled_), where_));
    }
    return std::span<const std::byte>(buffer_).subspan(at - begin_, length);
  }

 private:
  const PackReader& pack_;
  const std::string where_;
  std::vector<std::byte> buffer_;
  std::uint64_t begin_ = 0, filled_ = 0;
};

class PackRescue {
 public:
  PackRescue(const PackReader& pack, WantedBlobs& wanted, const std::string& where, const Progress& progress)
      : pack_(pack),
        wanted_(wanted),
        where_(where),
        progress_(progress),
        window_(pack, where),
        buffer_(kStep),
        effort_(kEffortMin + pack.size() * kEffort) {}

  Status take_known(std::span<const PlacedBlob> known) {
    for (const PlacedBlob& blob : known) WEFT_CHECK(try_blob(blob));
    return {};
  }

  Status search() {
    head_lengths_ = wanted_.head_lengths();
    std::vector<Range> gaps;
    std::uint64_t at = 0;
    for (const PackEntry& entry : entries_) {
      if (entry.offset > at) gaps.push_back({at, entry.offset - at});
      at = entry.offset + entry.id.length;
    }
    if (pack_.size() > at) gaps.push_back({at, pack_.size() - at});
    for (const Range& gap : gaps) WEFT_CHECK(search_gap(gap.offset, gap.offset + gap.length));
    return {};
  }

  std::vector<PackEntry> take_entries() { return std::move(entries_); }

 private:
  // Adds an entry and returns true if the blob's bytes are at its offset.
  Result<bool> try_blob(const PlacedBlob& blob) {
    if (!is_free(blob.offset, blob.id.length)) return false;
    WEFT_TRY(std::vector<Digest> chunks, chunks_of(blob.offset, blob.id.length));
    if (tree_root(blob.id.length, chunks) != blob.id.root) return false;
    const auto next = std::ranges::lower_bound(entries_, blob.offset, {}, &PackEntry::offset);
    const std::uint64_t hint = blob.hint != 0 ? blob.hint : hint_of(pack_.fd(), blob.offset, blob.id.length);
    entries_.insert(next, {blob.id, blob.offset, std::move(chunks), hint});
    wanted_.erase(blob.id);
    return true;
  }

  // Searches a range without entries. In a hole it tries only block boundaries: a blob there is all zeros, so any
  // offset will do.
  Status search_gap(std::uint64_t at, std::uint64_t end) {
    while (at < end && !wanted_.empty()) {
      if (progress_.cancelled()) return Error{Errc::cancelled, "stopped"};
      WEFT_TRY(const std::uint64_t data, next_data(at));
      const std::uint64_t step = data > at ? std::min(data - at, kPackBlock) : 1;
      const std::uint64_t stop = std::min(end, data > at ? at + step : at + kStep);
      while (at < stop) {
        WEFT_TRY(const std::uint64_t found, try_heads(at, end));
        at += found != 0 ? found : step;
      }
    }
    return {};
  }

  // Returns the length of the wanted blob at this offset; 0 if there is none.
  Result<std::uint64_t> try_heads(std::uint64_t at, std::uint64_t end) {
    for (auto length = head_lengths_.rbegin(); length != head_lengths_.rend(); ++length) {
      if (*length > end - at) continue;
      WEFT_TRY(std::span<const std::byte> head, window_.at(at, *length));
      for (const ContentId& id : wanted_.find(*length, xxh3_64(head))) {
        if (id.length > end - at || id.length > effort_) continue;
        effort_ -= id.length;
        const std::uint64_t found = id.length;
        WEFT_TRY(const bool here, try_blob({id, at, 0}));
        if (here) return found;
      }
    }
    return std::uint64_t{0};
  }

  Result<std::vector<Digest>> chunks_of(std::uint64_t at, std::uint64_t length) {
    std::vector<Digest> chunks(chunk_count(length));
    for (std::uint64_t done = 0; done < length; done += kStep) {
      if (progress_.cancelled()) return Error{Errc::cancelled, "stopped"};
      auto piece = std::span(buffer_).first(std::min<std::uint64_t>(kStep, length - done));
      WEFT_CHECK(read_exact(pack_.fd(), at + done, piece, where_));
      sha256_chunks(piece, std::span(chunks).subspan(done / kDigestChunk, chunk_count(piece.size())));
    }
    return chunks;
  }

  // True if the pack has these bytes and no entry overlaps them.
  bool is_free(std::uint64_t at, std::uint64_t length) const {
    if (length == 0 || at > pack_.size() || length > pack_.size() - at) return false;
    return !overlaps_any(entries_, {at, length});
  }

  // Returns the first offset from `at` on that is not in a hole, rounded down to a block.
  Result<std::uint64_t> next_data(std::uint64_t at) const {
    WEFT_TRY(const auto data, weft::next_data(pack_.fd(), at, where_));
    return data ? std::max(at, *data / kPackBlock * kPackBlock) : pack_.size();
  }

  const PackReader& pack_;
  WantedBlobs& wanted_;
  const std::string where_;
  const Progress& progress_;
  PackWindow window_;
  std::vector<std::byte> buffer_;
  std::vector<PackEntry> entries_;  // by offset
  std::vector<std::uint64_t> head_lengths_;
  std::uint64_t effort_;  // remaining bytes to hash
};

// Copies wanted blobs from assembled files. Mounts may evict a file at any moment, so a missing file is skipped.
class AssembledRescue {
 public:
  AssembledRescue(const PackDir& packs, WantedBlobs& wanted, RepairPack& fresh, const Progress& progress)
      : packs_(packs), wanted_(wanted), fresh_(fresh), progress_(progress) {}

  Status take_listed(PackId id) {
    WEFT_TRY(std::vector<PlacedBlob> rows, listed(id));
    std::erase_if(rows, [this](const PlacedBlob& row) { return !wanted_.contains(row.id); });
    return copy(id, rows);
  }

  Status search(PackId id) {
    const auto found = rescue_toc(packs_, id, {}, wanted_, progress_);
    if (!found.ok()) return is_damage(found.error()) ? Status{} : Status{found.error()};
    return copy(id, rows_of(*found));
  }

 private:
  // Returns the rows of the file's table of contents; the blobs are not verified.
  Result<std::vector<PlacedBlob>> listed(PackId id) const {
    const auto toc = packs_.toc(id);
    if (!toc.ok()) return is_damage(toc.error()) ? salvaged_rows(packs_, id) : toc.error();
    return rows_of(*toc);
  }

  Status copy(PackId id, std::span<const PlacedBlob> blobs) {
    auto pack = packs_.open_alone(id);
    if (!pack.ok()) return is_damage(pack.error()) ? Status{} : Status{std::move(pack).error()};
    for (const PlacedBlob& blob : blobs) {
      if (blob.offset > (*pack)->size() || blob.id.length > (*pack)->size() - blob.offset) continue;
      const Status added = fresh_.add(blob.id, (*pack)->fd(), blob.offset, packs_.pack_file(id), progress_);
      if (!added.ok() && !is_damage(added.error())) return added;
      if (added.ok()) wanted_.erase(blob.id);
    }
    return {};
  }

  const PackDir& packs_;
  WantedBlobs& wanted_;
  RepairPack& fresh_;
  const Progress& progress_;
};

}  // namespace

void WantedBlobs::add(const Extent& extent) {
  const ContentId& id = extent.id;
  if (id.length == 0 || !heads_.emplace(id, extent.head).second) return;
  std::vector<ContentId>& same = by_length_[std::min(id.length, kExtentHeadBytes)][extent.head];
  const auto longer = [](const ContentId& a, const ContentId& b) { return a.length > b.length; };
  same.insert(std::ranges::upper_bound(same, id, longer), id);
}

void WantedBlobs::erase(const ContentId& id) {
  const auto head = heads_.find(id);
  if (head == heads_.end()) return;
  std::erase(by_length_[std::min(id.length, kExtentHeadBytes)][head->second], id);
  heads_.erase(head);
}

std::span<const ContentId> WantedBlobs::find(std::uint64_t length, std::uint64_t head) const {
  const auto by_head = by_length_.find(length);
  if (by_head == by_length_.end()) return {};
  const auto same = by_head->second.find(head);
  return same == by_head->second.end() ? std::span<const ContentId>() : std::span<const ContentId>(same->second);
}

std::vector<std::uint64_t> WantedBlobs::head_lengths() const {
  std::vector<std::uint64_t> lengths;
  for (const auto& [length, unused] : by_length_) lengths.push_back(length);
  return lengths;
}

std::vector<PlacedBlob> rows_of(const PackToc& toc) {
  std::vector<PlacedBlob> rows;
  for (const PackEntry& entry : toc.entries) rows.push_back({entry.id, entry.offset, entry.hint});
  return rows;
}

Result<std::vector<PlacedBlob>> salvaged_rows(const PackDir& packs, PackId pack) {
  const auto damaged = read_file(packs.toc_file(pack), limits::kRecordMax);
  if (damaged.ok()) return salvage_toc(*damaged, pack);
  return is_damage(damaged.error()) ? std::vector<PlacedBlob>() : Result<std::vector<PlacedBlob>>(damaged.error());
}

Result<PackToc> rescue_toc(const PackDir& packs, PackId id, std::span<const PlacedBlob> known, WantedBlobs& wanted,
                           const Progress& progress) {
  WEFT_TRY(std::shared_ptr<const OpenPack> pack, packs.open_alone(id));
  PackRescue rescue(*pack, wanted, packs.pack_file(id).str(), progress);
  WEFT_CHECK(rescue.take_known(known));
  WEFT_CHECK(rescue.search());
  return PackToc{id, pack->size(), rescue.take_entries()};
}

Status rescue_assembled(const PackDir& assembled, WantedBlobs& wanted, RepairPack& fresh, const Progress& progress) {
  const auto packs = assembled.list();
  if (!packs.ok()) return is_damage(packs.error()) ? Status{} : packs.error();
  AssembledRescue rescue(assembled, wanted, fresh, progress);
  for (const PackId id : *packs) WEFT_CHECK(rescue.take_listed(id));
  for (const PackId id : *packs)
    if (!wanted.empty()) WEFT_CHECK(rescue.search(id));
  return {};
}

}  // namespace weft
