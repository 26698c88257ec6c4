#include "diskformat/toc.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "base/aligned.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "diskformat/hash.h"
#include "diskformat/pack_names.h"
#include "diskformat/record.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "toc_generated.h"

namespace weft {
namespace {

flatbuffers::span<const std::uint8_t, 32> raw(const Digest& digest) {
  return flatbuffers::span<const std::uint8_t, 32>(digest.bytes.data(), digest.bytes.size());
}

std::uint64_t check_of(const records::TocEntry& entry, PackId pack) {
  return xxh3_64(std::as_bytes(std::span(&entry, 1)).subspan(sizeof(std::uint64_t)), pack);
}

records::TocEntry encode_entry(const PackEntry& entry, PackId pack) {
  records::TocEntry out{0, entry.id.length, entry.offset, entry.hint, raw(entry.id.root)};
  return {check_of(out, pack), entry.id.length, entry.offset, entry.hint, raw(entry.id.root)};
}

PlacedBlob decode_entry(const records::TocEntry& in) {
  PlacedBlob blob{{in.length(), {}}, in.offset(), in.hint()};
  std::copy(in.root()->begin(), in.root()->end(), blob.id.root.bytes.begin());
  return blob;
}

Error corrupt(std::string_view where, std::string_view what) {
  return Error{Errc::corrupt, fmt::format("{}: {}", where, what)};
}

// Moves each entry's share out of the one list of digests.
Status deal_chunks(PackToc& toc, const flatbuffers::Vector<const records::ChunkDigest*>* chunks,
                   std::string_view where) {
  const std::uint64_t size = chunks == nullptr ? 0 : chunks->size();
  std::uint64_t next = 0;
  for (PackEntry& entry : toc.entries) {
    std::uint64_t count = chunk_count(entry.id.length);
    if (count > size - next) return corrupt(where, "fewer chunk digests than its blobs have chunks");
    entry.chunks.resize(count);
    for (Digest& digest : entry.chunks) {
      const auto* bytes = chunks->Get(static_cast<flatbuffers::uoffset_t>(next++))->bytes();
      std::copy(bytes->begin(), bytes->end(), digest.bytes.begin());
    }
  }
  if (next != size) return corrupt(where, "more chunk digests than its blobs have chunks");
  return {};
}

Status check_order(const PackToc& toc, std::string_view where) {
  std::uint64_t end = 0;
  for (const PackEntry& entry : toc.entries) {
    if (entry.id.length == 0 || entry.offset < end || entry.offset > toc.size ||
        entry.id.length > toc.size - entry.offset)
      return corrupt(where, fmt::format("a blob of {} bytes at {} overlaps another or the pack's end at {}",
                                        entry.id.length, entry.offset, toc.size));
    end = entry.offset + entry.id.length;
  }
  return {};
}

}  // namespace

const PackEntry* find_entry(const PackToc& toc, const ContentId& id, std::uint64_t offset) {
  const auto at = std::ranges::lower_bound(toc.entries, offset, {}, &PackEntry::offset);
  return at != toc.entries.end() && at->offset == offset && at->id == id ? &*at : nullptr;
}

std::size_t memory_bytes(const PackToc& toc) {
  std::size_t bytes = toc.entries.size() * sizeof(PackEntry);
  for (const PackEntry& entry : toc.entries) bytes += entry.chunks.size() * sizeof(Digest);
  return bytes;
}

bool lists_blob(const PackToc& toc, const ContentId& id, std::uint64_t offset) {
  return find_entry(toc, id, offset) != nullptr;
}

std::vector<std::byte> encode_toc(const PackToc& toc) {
  std::vector<records::TocEntry> entries;
  std::vector<records::ChunkDigest> chunks;
  entries.reserve(toc.entries.size());
  for (const PackEntry& entry : toc.entries) {
    entries.push_back(encode_entry(entry, toc.pack));
    for (const Digest& digest : entry.chunks) chunks.emplace_back(raw(digest));
  }
  flatbuffers::FlatBufferBuilder builder;
  auto entry_list = builder.CreateVectorOfStructs(entries);
  auto chunk_list = builder.CreateVectorOfStructs(chunks);
  auto boot = toc.boot.empty() ? flatbuffers::Offset<flatbuffers::String>() : builder.CreateString(toc.boot);
  builder.Finish(records::CreateToc(builder, toc.pack, toc.size, entry_list, chunk_list, toc.cached, toc.promoted,
                                    toc.merged, boot));
  return seal_record(RecordKind::toc, std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())));
}

Result<PackToc> decode_toc(std::span<const std::byte> bytes, std::string_view where) {
  WEFT_TRY(std::vector<std::byte> payload, open_record(RecordKind::toc, bytes, where));
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(payload.data()), payload.size());
  if (!records::VerifyTocBuffer(verifier)) return corrupt(where, "not a table of contents");
  const records::Toc* in = records::GetToc(payload.data());
  PackToc toc{in->pack(), in->size(), {}, in->cached(), in->promoted(), in->merged(), {}};
  if (in->boot() != nullptr) toc.boot = in->boot()->str();
  if (in->entries() != nullptr) {
    if (!lies_aligned<records::TocEntry>(*in->entries())) return corrupt(where, "entries out of alignment");
    toc.entries.reserve(in->entries()->size());
    for (const records::TocEntry* entry : *in->entries()) {
      const PlacedBlob blob = decode_entry(*entry);
      toc.entries.push_back({blob.id, blob.offset, {}, blob.hint});
    }
  }
  WEFT_CHECK(check_order(toc, where));
  WEFT_CHECK(deal_chunks(toc, in->chunks(), where));
  return toc;
}

// FlatBuffers lays structs at multiples of their alignment from the end of the buffer, which is aligned itself.
std::vector<PlacedBlob> salvage_toc(std::span<const std::byte> bytes, PackId pack) {
  std::vector<PlacedBlob> blobs;
  constexpr std::size_t kStep = alignof(records::TocEntry);
  for (std::size_t at = 0;
       bytes.size() >= sizeof(records::TocEntry) && at <= bytes.size() - sizeof(records::TocEntry);) {
    records::TocEntry entry;
    std::memcpy(static_cast<void*>(&entry), bytes.data() + at, sizeof entry);
    const bool whole = entry.length() != 0 && entry.check() == check_of(entry, pack);
    if (whole) blobs.push_back(decode_entry(entry));
    at += whole ? sizeof entry : kStep;
  }
  return blobs;
}

Result<Fd> begin_toc(const SafePath& path, const PackToc& toc) {
  std::vector<std::byte> bytes = encode_toc(toc);
  WEFT_TRY(Fd fd, open_file(path, O_WRONLY | O_CREAT | O_TRUNC));
  WEFT_CHECK(write_exact(fd.get(), 0, bytes, path));
  start_writeback(fd.get(), 0, 0);
  return fd;
}

Status write_toc(const SafePath& path, const PackToc& toc) {
  WEFT_TRY(Fd fd, begin_toc(path, toc));
  return sync_file(fd.get(), path);
}

Status replace_toc(const SafePath& path, const PackToc& toc) {
  const SafePath fresh = path + ".new";
  WEFT_CHECK(write_toc(fresh, toc));
  return rename_file(fresh, path);
}

Result<PackToc> read_toc(const SafePath& path) {
  WEFT_TRY(std::vector<std::byte> bytes, read_file(path, limits::kRecordMax));
  return decode_toc(bytes, path);
}

Result<PackToc> read_toc_of(const SafePath& store_path, PackId pack) {
  return read_toc_in(packs_dir(store_path), pack);
}

Result<PackToc> read_toc_in(const SafePath& directory, PackId pack) {
  const SafePath path = toc_in(directory, pack);
  WEFT_TRY(PackToc toc, read_toc(path));
  if (toc.pack != pack)
    return Error{Errc::corrupt,
                 fmt::format("{}: expected the contents of this pack, got those of {}", path, pack_name(toc.pack))};
  return toc;
}

}  // namespace weft
