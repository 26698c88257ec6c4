#include "diskformat/toc.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/alignment.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "diskformat/flatbuffer_codec.h"
#include "diskformat/hash.h"
#include "diskformat/pack_names.h"
#include "diskformat/record.h"
#include "os/file_ops.h"

namespace weft {
namespace {

std::uint64_t check_of(const records::TocEntry& entry, PackId pack) {
  return xxh3_64(std::as_bytes(std::span(&entry, 1)).subspan(sizeof(std::uint64_t)), pack);
}

records::TocEntry encode_entry(const PlacedBlob& blob, PackId pack) {
  const auto root = std::bit_cast<records::Digest>(blob.id.root);
  const records::TocEntry out{0, blob.id.length, blob.offset, blob.hint, root};
  return {check_of(out, pack), blob.id.length, blob.offset, blob.hint, root};
}

PlacedBlob decode_entry(const records::TocEntry& in) {
  return {{in.length(), std::bit_cast<Digest>(in.root())}, in.offset(), in.hint()};
}

Error corrupt(std::string_view where, std::string_view what) {
  return Error{Errc::corrupt, fmt::format("{}: {}", where, what)};
}

// Copies to each entry its chunk digests, which the record has in one list.
Status deal_chunks(PackToc& toc, const flat::List<const records::Digest*>* chunks, std::string_view where) {
  const std::uint64_t size = chunks == nullptr ? 0 : chunks->size();
  std::uint64_t next = 0;
  for (PackEntry& entry : toc.entries) {
    std::uint64_t count = chunk_count(entry.id.length);
    if (count > size - next) return corrupt(where, "fewer chunk digests than its blobs have chunks");
    entry.chunks.resize(count);
    for (Digest& digest : entry.chunks)
      digest = std::bit_cast<Digest>(*chunks->Get(static_cast<flatbuffers::uoffset_t>(next++)));
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

std::span<const Digest> TocLines::chunks(std::size_t number) const {
  const Line& line = lines_[number];
  return std::span(chunks_).subspan(line.first, line.count);
}

void TocLines::add(const PackEntry& entry) {
  lines_.push_back({{entry.id, entry.offset, entry.hint},
                    static_cast<std::uint32_t>(chunks_.size()),
                    static_cast<std::uint32_t>(entry.chunks.size())});
  chunks_.insert(chunks_.end(), entry.chunks.begin(), entry.chunks.end());
}

PackEntry TocLines::take(const ContentId& id) {
  const auto at = std::ranges::find(lines_, id, [](const Line& line) { return line.blob.id; });
  const auto own = chunks(static_cast<std::size_t>(at - lines_.begin()));
  PackEntry entry{at->blob.id, at->blob.offset, {own.begin(), own.end()}, at->blob.hint};
  lines_.erase(at);
  return entry;
}

void TocLines::sort() {
  std::ranges::sort(lines_, {}, [](const Line& line) { return line.blob.offset; });
}

namespace {

TocLines lines_of(const PackToc& toc) {
  TocLines lines;
  for (const PackEntry& entry : toc.entries) lines.add(entry);
  return lines;
}

// Writes the record piece by piece. FlatBuffers builds the table with empty lists; the two real lists are appended, and
// the table's offsets are changed to point to them:
//   rest, a multiple of 8 · 4 bytes of zeros · count u32 · entries · count u32 · chunk digests
class TocEncoder {
 public:
  using Write = std::function<Status(std::uint64_t at, std::span<const std::byte>)>;
  TocEncoder(const PackToc& toc, const TocLines& entries) : toc_(toc), entries_(entries) {
    for (std::size_t i = 0; i < entries.size(); ++i) chunks_ += entries.chunks(i).size();
  }

  Status encode(const Write& write) {
    const std::vector<std::byte> rest = encode_rest();
    const std::uint64_t bytes =
        rest.size() + kCounts + entries_.size() * sizeof(records::TocEntry) + chunks_ * sizeof(Digest);
    if (bytes > limits::kRecordMax)
      return Error{Errc::unsupported, fmt::format("a pack of {} blobs: its table of contents would have {} bytes, "
                                                  "expected at most {}",
                                                  entries_.size(), bytes, limits::kRecordMax)};
    record_.emplace(RecordKind::toc, static_cast<std::uint32_t>(bytes));
    write_ = &write;
    add(rest);
    add_number(0);
    add_number(static_cast<std::uint32_t>(entries_.size()));
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const records::TocEntry entry = encode_entry(entries_.blob(i), toc_.pack);
      add(std::as_bytes(std::span(&entry, 1)));
    }
    add_number(static_cast<std::uint32_t>(chunks_));
    for (std::size_t i = 0; i < entries_.size(); ++i) add(std::as_bytes(entries_.chunks(i)));
    flush();
    WEFT_CHECK(std::move(status_));
    return write(0, record_->header());
  }

 private:
  static constexpr std::uint64_t kCounts = 3 * sizeof(std::uint32_t);  // with the zeros
  static constexpr std::size_t kPiece = 64U << 10U;

  std::vector<std::byte> encode_rest() const {
    flat::Builder builder;
    const auto boot = toc_.boot.empty() ? flat::Offset<flatbuffers::String>() : builder.CreateString(toc_.boot);
    const auto no_entries = builder.CreateVectorOfStructs(std::vector<records::TocEntry>());
    const auto no_chunks = builder.CreateVectorOfStructs(std::vector<records::Digest>());
    std::vector<std::byte> rest =
        flat::finish(builder, records::CreateToc(builder, toc_.pack, toc_.size, no_entries, no_chunks, toc_.cached,
                                                 toc_.promoted, toc_.merged, boot));
    rest.resize((rest.size() + 7) / 8 * 8);
    const std::uint64_t entries_at = rest.size() + sizeof(std::uint32_t);
    lead(rest, records::Toc::VT_ENTRIES, entries_at);
    lead(rest, records::Toc::VT_CHUNKS,
         entries_at + sizeof(std::uint32_t) + entries_.size() * sizeof(records::TocEntry));
    return rest;
  }

  // Sets an offset of the table. Offsets of a FlatBuffer are relative to their own position.
  static void lead(std::vector<std::byte>& rest, flatbuffers::voffset_t field, std::uint64_t to) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(rest.data());
    auto* table = flatbuffers::GetMutableRoot<flatbuffers::Table>(bytes);
    std::uint8_t* at = table->GetAddressOf(field);
    flatbuffers::WriteScalar(at, static_cast<flatbuffers::uoffset_t>(to - static_cast<std::uint64_t>(at - bytes)));
  }

  void add_number(std::uint32_t number) { add(std::as_bytes(std::span(&number, 1))); }
  void add(std::span<const std::byte> bytes) {
    piece_.insert(piece_.end(), bytes.begin(), bytes.end());
    if (piece_.size() >= kPiece) flush();
  }
  void flush() {
    record_->add(piece_);
    if (status_.ok()) status_ = (*write_)(at_, piece_);
    at_ += piece_.size();
    piece_.clear();
  }

  const PackToc& toc_;
  const TocLines& entries_;
  std::uint64_t chunks_ = 0;
  std::optional<PiecewiseRecord> record_;
  const Write* write_ = nullptr;
  std::vector<std::byte> piece_;
  std::uint64_t at_ = kRecordHeader;
  Status status_;
};

}  // namespace

std::vector<std::byte> encode_toc(const PackToc& toc) {
  std::vector<std::byte> record;
  const TocLines lines = lines_of(toc);
  static_cast<void>(TocEncoder(toc, lines).encode([&](std::uint64_t at, std::span<const std::byte> bytes) -> Status {
    record.resize(std::max<std::size_t>(record.size(), at + bytes.size()));
    std::ranges::copy(bytes, record.begin() + static_cast<std::ptrdiff_t>(at));
    return {};
  }));
  return record;
}

Result<PackToc> decode_toc(std::span<const std::byte> bytes, std::string_view where) {
  WEFT_TRY(std::vector<std::byte> payload, open_record(RecordKind::toc, bytes, where));
  const auto* in = flat::root<records::Toc>(payload);
  if (in == nullptr) return corrupt(where, "not a table of contents");
  PackToc toc{
      in->pack(), in->size(), {}, in->cached(), in->promoted(), in->merged(), flatbuffers::GetString(in->boot())};
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

// FlatBuffers puts structs at multiples of their alignment, so each step is one alignment.
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

Result<Fd> begin_toc(const SafePath& path, const PackToc& toc, const TocLines& lines) {
  WEFT_TRY(Fd fd, open_file(path, O_WRONLY | O_CREAT | O_TRUNC));
  WEFT_CHECK(TocEncoder(toc, lines).encode([&](std::uint64_t at, std::span<const std::byte> bytes) {
    return write_exact(fd.get(), at, bytes, path);
  }));
  start_writeback(fd.get(), 0, 0);
  return fd;
}

Status write_toc(const SafePath& path, const PackToc& toc) {
  WEFT_TRY(const Fd fd, begin_toc(path, toc, lines_of(toc)));
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
