#include "store/rescue.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "base/sha256.h"
#include "base/sys.h"
#include "store/hash.h"
#include "store/pack_file.h"

namespace weft {
namespace {

constexpr std::uint64_t kStep = 4 * kDigestChunk;
constexpr std::uint64_t kEffort = 64;  // times the pack's size may be hashed before the search is given up

class PackSearch {
 public:
  PackSearch(const PackReader& pack, bool proves, WantedBlobs& wanted, std::string where, const Progress& progress)
      : pack_(pack), proves_(proves), wanted_(wanted), where_(std::move(where)), progress_(progress), buffer_(kStep) {}

  Result<std::vector<PackEntry>> run();

 private:
  Result<std::optional<PackEntry>> blob_at(std::uint64_t at);
  Result<std::optional<ContentId>> longest_at(std::uint64_t at);
  Result<std::vector<Digest>> chunks_of(std::uint64_t at, std::uint64_t length);
  std::uint64_t skip_hole(std::uint64_t at) const;

  const PackReader& pack_;
  bool proves_;
  WantedBlobs& wanted_;
  std::string where_;
  const Progress& progress_;
  std::vector<std::byte> buffer_;
  std::uint64_t hashed_ = 0;
};

std::uint64_t PackSearch::skip_hole(std::uint64_t at) const {
  off_t data = ::lseek(pack_.fd(), static_cast<off_t>(at), SEEK_DATA);
  if (data < 0) return errno == ENXIO ? pack_.size() : at;
  return std::max(at, static_cast<std::uint64_t>(data) / kPackBlock * kPackBlock);
}

// All lengths in one pass over the bytes. The longest: a shorter one may be its beginning.
Result<std::optional<ContentId>> PackSearch::longest_at(std::uint64_t at) {
  std::optional<ContentId> found;
  Xxh3Stream hash;
  std::uint64_t done = 0;
  for (const auto& [length, unused] : wanted_.by_length()) {
    if (length > pack_.size() - at) break;
    while (done < length) {
      if (progress_.cancelled()) return Error{Errc::cancelled, "stopped"};
      auto piece = std::span(buffer_).first(std::min<std::uint64_t>(kStep, length - done));
      WEFT_CHECK(read_exact(pack_.fd(), at + done, piece, where_));
      hash.update(piece);
      done += piece.size();
      hashed_ += piece.size();
    }
    if (const ContentId* id = wanted_.find(length, hash.digest128())) found = *id;
  }
  return found;
}

Result<std::vector<Digest>> PackSearch::chunks_of(std::uint64_t at, std::uint64_t length) {
  std::vector<Digest> chunks(chunk_count(length));
  for (std::uint64_t done = 0; done < length; done += kStep) {
    auto piece = std::span(buffer_).first(std::min<std::uint64_t>(kStep, length - done));
    WEFT_CHECK(read_exact(pack_.fd(), at + done, piece, where_));
    sha256_chunks(piece, std::span(chunks).subspan(done / kDigestChunk, chunk_count(piece.size())));
  }
  return chunks;
}

Result<std::optional<PackEntry>> PackSearch::blob_at(std::uint64_t at) {
  WEFT_TRY(std::optional<ContentId> id, longest_at(at));
  if (!id) return std::optional<PackEntry>();
  PackEntry entry{*id, at, {}};
  if (proves_) {
    WEFT_TRY(entry.chunks, chunks_of(at, id->length));
    if (tree_root(id->length, entry.chunks) != id->root) return std::optional<PackEntry>();
  }
  return std::optional(std::move(entry));
}

Result<std::vector<PackEntry>> PackSearch::run() {
  std::vector<PackEntry> entries;
  for (std::uint64_t at = skip_hole(0); at < pack_.size() && !wanted_.empty(); at = skip_hole(at)) {
    if (hashed_ / kEffort > pack_.size()) break;
    WEFT_TRY(std::optional<PackEntry> entry, blob_at(at));
    if (!entry) {
      at = (at / kPackBlock + 1) * kPackBlock;
      continue;
    }
    wanted_.erase(entry->id);
    at += entry->id.length;
    entries.push_back(std::move(*entry));
  }
  return entries;
}

}  // namespace

void WantedBlobs::erase(const ContentId& id) {
  auto length = by_length_.find(id.length);
  if (length == by_length_.end()) return;
  auto [begin, end] = length->second.equal_range(id.xxh.low);
  for (auto it = begin; it != end;) it = it->second == id ? length->second.erase(it) : std::next(it);
  if (length->second.empty()) by_length_.erase(length);
}

const ContentId* WantedBlobs::find(std::uint64_t length, const Hash128& xxh) const {
  auto same = by_length_.find(length);
  if (same == by_length_.end()) return nullptr;
  const ContentId* found = nullptr;
  auto [begin, end] = same->second.equal_range(xxh.low);
  for (auto it = begin; it != end; ++it) {
    if (it->second.xxh != xxh || (found != nullptr && *found == it->second)) continue;
    if (found != nullptr) return nullptr;
    found = &it->second;
  }
  return found;
}

Result<PackToc> rescue_toc(Packs& packs, PackId id, WantedBlobs& wanted, const Progress& progress) {
  WEFT_TRY(std::shared_ptr<const OpenPack> pack, packs.open(id));
  bool proves = packs.digest() == DigestMode::tree_sha256;
  PackSearch search(*pack, proves, wanted, pack_path(packs.store_path(), id), progress);
  WEFT_TRY(std::vector<PackEntry> entries, search.run());
  return PackToc{id, pack->size(), std::move(entries)};
}

}  // namespace weft
