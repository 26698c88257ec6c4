#include "packs/manifest_packs.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/core.h>

#include "base/sha256.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kRecordMax = kRecordHeader + limits::kPackedManifestMax;

// Returns the length of the record at the start of `bytes`; nothing if there is no valid record.
std::optional<std::uint64_t> length_of_record(std::span<const std::byte> bytes) {
  if (bytes.size() < kRecordHeader || record_kind(bytes) != RecordKind::packed_manifest) return std::nullopt;
  const auto length = record_length(bytes.first(std::min<std::uint64_t>(bytes.size(), kRecordMax)));
  return length && *length > kRecordHeader ? std::optional<std::uint64_t>(*length) : std::nullopt;
}

PackEntry entry_of(const Digest& digest, std::uint64_t offset, std::uint64_t length) {
  return {{length, tree_root(length, {&digest, 1})}, offset, {digest}, 0};
}

}  // namespace

Result<PackEntry> write_manifest(PackWriter& pack, const Digest& digest, std::span<const std::byte> bytes) {
  const std::vector<std::byte> record = seal_record(RecordKind::packed_manifest, bytes);
  const std::uint64_t at = pack.reserve(record.size(), 0);
  WEFT_CHECK(pack.write(at, record));
  return entry_of(digest, at + kRecordHeader, bytes.size());
}

Result<std::vector<std::byte>> read_manifest(int fd, std::uint64_t offset, std::uint64_t length, const Digest& digest,
                                             std::string_view where) {
  std::vector<std::byte> bytes(std::min(length, limits::kPackedManifestMax));
  WEFT_CHECK(read_exact(fd, offset, bytes, where));
  if (sha256(bytes) == digest) return bytes;
  return Error{Errc::corrupt,
               fmt::format("{}: expected the {} bytes of manifest {} at {}, got others; run `weft fsck --rebuild`",
                           where, length, to_hex(digest), offset)};
}

Result<PackEntry> entry_at(int fd, std::uint64_t offset, std::uint64_t length, std::string_view where) {
  std::vector<std::byte> bytes(std::min(length, limits::kPackedManifestMax));
  WEFT_CHECK(read_exact(fd, offset, bytes, where));
  return entry_of(sha256(bytes), offset, bytes.size());
}

Status check_record(int fd, const PackEntry& entry, std::string_view where) {
  WEFT_TRY(const auto manifest, read_manifest(fd, entry.offset, entry.id.length, manifest_digest(entry), where));
  std::array<std::byte, kRecordHeader> header{};
  WEFT_CHECK(read_exact(fd, entry.offset - kRecordHeader, header, where));
  const auto expected = seal_record(RecordKind::packed_manifest, manifest);
  if (std::ranges::equal(header, std::span(expected).first(kRecordHeader))) return {};
  return Error{Errc::corrupt,
               fmt::format("{}: expected the header of manifest {} at {}, got other bytes; run `weft fsck --rebuild`",
                           where, to_hex(manifest_digest(entry)), entry.offset - kRecordHeader)};
}

Status rewrite_record(int fd, const PackEntry& entry, std::span<const std::byte> manifest, std::string_view where) {
  return write_exact(fd, entry.offset - kRecordHeader, seal_record(RecordKind::packed_manifest, manifest), where);
}

// Inside damaged bytes it tries each offset for the next record.
Result<std::vector<PackEntry>> scan_manifests(int fd, std::uint64_t size, std::string_view where) {
  std::vector<PackEntry> entries;
  std::vector<std::byte> window;
  std::uint64_t begin = 0;  // offset of the window in the pack
  for (std::uint64_t at = 0; at + kRecordHeader < size;) {
    const std::uint64_t wanted = std::min(kRecordMax, size - at);
    if (at < begin || at + wanted > begin + window.size()) {
      begin = at;
      window.resize(std::min(2 * kRecordMax, size - at));
      WEFT_CHECK(read_exact(fd, begin, window, where));
    }
    const auto bytes = std::span<const std::byte>(window).subspan(at - begin);
    const std::optional<std::uint64_t> length = length_of_record(bytes);
    if (length) {
      const auto manifest = bytes.subspan(kRecordHeader, *length - kRecordHeader);
      entries.push_back(entry_of(sha256(manifest), at + kRecordHeader, manifest.size()));
    }
    at += length.value_or(1);
  }
  return entries;
}

}  // namespace weft
