#include "packs/blob_check.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/sha256.h"
#include "diskformat/hash.h"
#include "os/sys.h"
#include "packs/pack_writer.h"

namespace weft {
namespace {

constexpr std::uint64_t kStep = 2 * kDigestChunk;
constexpr std::uint64_t kCheckStep = 4 * kDigestChunk;

Error differs(std::string_view where, const PackEntry& entry, std::uint64_t at, std::string_view what) {
  return Error{Errc::corrupt, fmt::format("{}: blob {} of {} bytes at {}: {} differs at {}", where,
                                          to_hex(entry.id.root), entry.id.length, entry.offset, what, at)};
}

// Verifies the chunks in `bytes`, which begin at `done` in the blob, a multiple of kDigestChunk.
Status check_chunks(std::span<const std::byte> bytes, std::uint64_t done, std::string_view where,
                    const PackEntry& entry) {
  std::vector<Digest> digests(chunk_count(bytes.size()));
  sha256_chunks(bytes, digests);
  for (std::size_t i = 0; i < digests.size(); ++i)
    if (digests[i] != entry.chunks[done / kDigestChunk + i])
      return differs(where, entry, entry.offset + done + i * kDigestChunk, "SHA-256");
  return {};
}

}  // namespace

bool root_agrees(const PackEntry& entry) {
  return entry.chunks.size() == chunk_count(entry.id.length) &&
         tree_root(entry.id.length, entry.chunks) == entry.id.root;
}

std::uint64_t hint_of(int fd, std::uint64_t offset, std::uint64_t length) {
  if (length <= kDigestChunk) return 0;
  std::vector<std::byte> first(kDigestChunk);
  return read_exact(fd, offset, first, "pack").ok() ? xxh3_64(first) : 0;
}

Status check_blob(int fd, std::string_view where, const PackEntry& entry, const Progress& progress,
                  const BlobSink& sink) {
  if (!root_agrees(entry)) return differs(where, entry, entry.offset, "root of its SHA-256 tree");
  std::vector<std::byte> buffer(std::min(entry.id.length, kStep));
  for (std::uint64_t done = 0; done < entry.id.length;) {
    if (progress.cancelled()) return Error{Errc::cancelled, fmt::format("{}: stopped", where)};
    auto piece = std::span(buffer).first(std::min(kStep, entry.id.length - done));
    WEFT_CHECK(read_exact(fd, entry.offset + done, piece, where));
    WEFT_CHECK(check_chunks(piece, done, where, entry));
    if (sink) WEFT_CHECK(sink(done, piece));
    done += piece.size();
  }
  return {};
}

Result<PackEntry> copy_hashed(const ContentId& id, int fd, std::uint64_t offset, std::string_view where,
                              PackWriter& pack, std::uint64_t at, const Progress& progress) {
  PackEntry entry{id, at, std::vector<Digest>(chunk_count(id.length)), 0};
  std::vector<std::byte> buffer(std::min(id.length, kCheckStep));
  for (std::uint64_t done = 0; done < id.length;) {
    if (progress.cancelled()) return Error{Errc::cancelled, fmt::format("{}: stopped", where)};
    const auto piece = std::span(buffer).first(std::min(kCheckStep, id.length - done));
    WEFT_CHECK(read_exact(fd, offset + done, piece, where));
    sha256_chunks(piece, std::span(entry.chunks).subspan(done / kDigestChunk, chunk_count(piece.size())));
    if (done == 0 && id.length > kDigestChunk) entry.hint = xxh3_64(piece.first(kDigestChunk));
    WEFT_CHECK(pack.write(at + done, piece));
    done += piece.size();
  }
  return entry;
}

}  // namespace weft
