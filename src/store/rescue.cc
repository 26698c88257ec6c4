#include "store/rescue.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "base/sha256.h"
#include "base/sys.h"
#include "store/pack_file.h"

namespace weft {
namespace {

constexpr std::uint64_t kEffort = 64;  // times the pack's size may be hashed before the search is given up

// The chunk digests and the root of what begins somewhere in a pack, as more of it is read.
class GrowingTree {
 public:
  void add(std::span<const std::byte> bytes) {  // within one chunk
    tail_.update(bytes);
    length_ += bytes.size();
    if (length_ % kDigestChunk != 0) return;
    whole_.push_back(tail_.finish());
    tail_ = Sha256();
  }
  std::uint64_t length() const { return length_; }
  std::uint64_t left_of_chunk() const { return kDigestChunk - length_ % kDigestChunk; }
  std::vector<Digest> chunks() const {
    std::vector<Digest> chunks = whole_;
    if (length_ % kDigestChunk != 0) chunks.push_back(tail_.so_far());
    return chunks;
  }

 private:
  std::vector<Digest> whole_;  // of chunks that are complete
  Sha256 tail_;
  std::uint64_t length_ = 0;
};

class PackSearch {
 public:
  PackSearch(const PackReader& pack, WantedBlobs& wanted, std::string where, const Progress& progress)
      : pack_(pack), wanted_(wanted), where_(std::move(where)), progress_(progress), buffer_(kDigestChunk) {}

  Result<std::vector<PackEntry>> run();

 private:
  Result<std::optional<PackEntry>> blob_at(std::uint64_t at);
  Status grow(GrowingTree& tree, std::uint64_t at, std::uint64_t length);
  std::uint64_t skip_hole(std::uint64_t at) const;

  const PackReader& pack_;
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

Status PackSearch::grow(GrowingTree& tree, std::uint64_t at, std::uint64_t length) {
  while (tree.length() < length) {
    if (progress_.cancelled()) return Error{Errc::cancelled, "stopped"};
    auto piece = std::span(buffer_).first(std::min(tree.left_of_chunk(), length - tree.length()));
    WEFT_CHECK(read_exact(pack_.fd(), at + tree.length(), piece, where_));
    tree.add(piece);
    hashed_ += piece.size();
  }
  return {};
}

// Tries all lengths in one pass over the bytes. The longest match counts: a shorter one may be its beginning.
Result<std::optional<PackEntry>> PackSearch::blob_at(std::uint64_t at) {
  std::optional<PackEntry> found;
  GrowingTree tree;
  for (const auto& [length, roots] : wanted_.by_length()) {
    if (length > pack_.size() - at) break;
    WEFT_CHECK(grow(tree, at, length));
    std::vector<Digest> chunks = tree.chunks();
    const Digest root = tree_root(length, chunks);
    if (roots.contains(root)) found = PackEntry{{length, root}, at, std::move(chunks)};
  }
  return found;
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
  length->second.erase(id.root);
  if (length->second.empty()) by_length_.erase(length);
}

Result<PackToc> rescue_toc(Packs& packs, PackId id, WantedBlobs& wanted, const Progress& progress) {
  WEFT_TRY(std::shared_ptr<const OpenPack> pack, packs.open(id));
  PackSearch search(*pack, wanted, pack_path(packs.store_path(), id), progress);
  WEFT_TRY(std::vector<PackEntry> entries, search.run());
  return PackToc{id, pack->size(), std::move(entries)};
}

}  // namespace weft
