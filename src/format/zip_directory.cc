#include "format/zip_directory.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "format/cursor.h"

namespace weft {
namespace {

constexpr std::uint32_t kLocalMagic = 0x04034b50, kEntryMagic = 0x02014b50, kEndMagic = 0x06054b50;
constexpr std::uint32_t kWideEndMagic = 0x06064b50, kWideEndPlaceMagic = 0x07064b50;  // of zip64
constexpr std::size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kWideEndBytes = 56, kWideEndPlaceBytes = 20;
constexpr std::uint64_t kCommentMax = 0xffff;
constexpr std::uint32_t kWide = 0xffffffff;       // this number is in the zip64 field
constexpr std::uint16_t kWideShort = 0xffff;      // the same, for a number of two bytes
constexpr std::uint16_t kWideField = 1;           // tag of the zip64 field
constexpr unsigned kSizesFollow = 0x8;            // flag: the local header may have zeros, because a descriptor follows
constexpr unsigned kEncryptedOrPatched = 0x2061;  // flags
constexpr std::uint16_t kStored = 0;

template <class... Args>
Error broken_zip(fmt::format_string<Args...> format, Args&&... args) {
  return Error{Errc::invalid, fmt::format(format, std::forward<Args>(args)...)};
}

std::uint16_t short_at(std::string_view bytes, std::size_t at) {
  return load_le<std::uint16_t>(reinterpret_cast<const std::byte*>(bytes.data()) + at);
}
std::uint32_t word_at(std::string_view bytes, std::size_t at) {
  return load_le<std::uint32_t>(reinterpret_cast<const std::byte*>(bytes.data()) + at);
}
std::uint64_t long_at(std::string_view bytes, std::size_t at) {
  return load_le<std::uint64_t>(reinterpret_cast<const std::byte*>(bytes.data()) + at);
}

// The bound on `count` limits the memory: it is at most that of a name or a field.
Result<std::string> read_text(ByteSource& source, std::uint64_t offset, std::size_t count) {
  if (offset > source.size() || count > source.size() - offset)
    return broken_zip("expected {} bytes at {}, got the end of the file at {}", count, offset, source.size());
  std::string text(count, '\0');
  WEFT_CHECK(source.read(offset, std::as_writable_bytes(std::span(text))));
  return text;
}

std::string member_label(std::string_view name) {
  return fmt::format("member \"{}\"", printable(name));
}

// The place of the directory of an archive.
struct Place {
  std::uint64_t count = 0;  // of entries
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

// A record that ends the directory, with the place that it gives.
struct EndRecord {
  std::uint64_t offset = 0;  // of the record
  std::uint64_t disk = 0, directory_disk = 0, count_here = 0;
  Place place;
};

// Finds the last end record. As for Python's zipfile, no earlier one counts.
Result<EndRecord> find_end(ByteSource& archive) {
  const std::uint64_t tail = std::min(archive.size(), kEndBytes + kCommentMax);
  WEFT_TRY(const std::string bytes, read_text(archive, archive.size() - tail, static_cast<std::size_t>(tail)));
  const std::size_t at = bytes.rfind("PK\5\6");
  if (at == std::string::npos) return broken_zip("expected a directory at the end of the zip archive, got none");
  const std::string_view end = std::string_view(bytes).substr(at);
  if (end.size() < kEndBytes || end.size() - kEndBytes != short_at(end, 20))
    return broken_zip("expected the zip archive to end after its directory, got other bytes there");
  const std::uint64_t offset = archive.size() - end.size();
  return EndRecord{offset,
                   short_at(end, 4),
                   short_at(end, 6),
                   short_at(end, 8),
                   {short_at(end, 10), word_at(end, 16), word_at(end, 12)}};
}

// Replaces what the end record cannot hold by the numbers of the end record of zip64, if there is one.
Status widen(ByteSource& archive, EndRecord& end) {
  if (end.offset < kWideEndPlaceBytes) return {};
  WEFT_TRY(const std::string place, read_text(archive, end.offset - kWideEndPlaceBytes, kWideEndPlaceBytes));
  if (word_at(place, 0) != kWideEndPlaceMagic) return {};
  const std::uint64_t offset = long_at(place, 8);
  if (offset > end.offset - kWideEndPlaceBytes || end.offset - kWideEndPlaceBytes - offset < kWideEndBytes)
    return broken_zip("expected the zip64 record before byte {}, got it at {}", end.offset, offset);
  WEFT_TRY(const std::string record, read_text(archive, offset, kWideEndBytes));
  if (word_at(record, 0) != kWideEndMagic) return broken_zip("expected a zip64 record at {}, got other bytes", offset);
  const EndRecord wide{offset,
                       word_at(record, 16),
                       word_at(record, 20),
                       long_at(record, 24),
                       {long_at(record, 32), long_at(record, 48), long_at(record, 40)}};
  const auto agree = [](std::uint64_t narrow, std::uint64_t value, std::uint64_t wide_mark) {
    return narrow == wide_mark || narrow == value;
  };
  if (!agree(end.disk, wide.disk, kWideShort) || !agree(end.directory_disk, wide.directory_disk, kWideShort) ||
      !agree(end.count_here, wide.count_here, kWideShort) || !agree(end.place.count, wide.place.count, kWideShort) ||
      !agree(end.place.begin, wide.place.begin, kWide) || !agree(end.place.bytes, wide.place.bytes, kWide))
    return broken_zip("expected the zip64 record to agree with the end of the archive, got other numbers");
  end = wide;
  return {};
}

Result<Place> find_directory(ByteSource& archive) {
  if (archive.size() < kEndBytes) return broken_zip("expected a zip archive, got {} bytes", archive.size());
  WEFT_TRY(EndRecord end, find_end(archive));
  WEFT_CHECK(widen(archive, end));
  const Place& place = end.place;
  if (end.disk != 0 || end.directory_disk != 0 || end.count_here != place.count)
    return Error{Errc::unsupported, "expected a zip archive in one file, got a part of a split one"};
  if (place.count > limits::kZipMembersMax || place.bytes > limits::kZipDirectoryMax)
    return Error{Errc::unsupported,
                 fmt::format("expected at most {} members and {} bytes of zip directory, got {} and {}",
                             limits::kZipMembersMax, limits::kZipDirectoryMax, place.count, place.bytes)};
  if (place.bytes > end.offset || place.begin != end.offset - place.bytes || place.count > place.bytes / kEntryBytes)
    return broken_zip("expected {} members in a zip directory that ends at {}, got {} bytes at {}", place.count,
                      end.offset, place.bytes, place.begin);
  return place;
}

// The numbers of a member, from the directory or from its local header.
struct Numbers {
  std::uint16_t flags = 0, method = 0;
  std::uint32_t checksum = 0;
  std::uint64_t packed = 0, size = 0;
  std::uint64_t header = 0;  // only in the directory
};

// Takes the numbers that are marked as wide from the zip64 field, which has them in this order.
Status widen(std::string_view extra, std::span<std::uint64_t* const> numbers) {
  const auto wide = std::ranges::count_if(numbers, [](const std::uint64_t* number) { return *number == kWide; });
  if (wide == 0) return {};
  while (extra.size() >= 4) {
    const std::uint16_t tag = short_at(extra, 0);
    const std::size_t bytes = short_at(extra, 2);
    if (bytes > extra.size() - 4) break;
    std::string_view field = extra.substr(4, bytes);
    extra.remove_prefix(4 + bytes);
    if (tag != kWideField) continue;
    if (field.size() < static_cast<std::size_t>(wide) * 8) return broken_zip("its zip64 field is too short");
    for (std::uint64_t* number : numbers)
      if (*number == kWide) {
        *number = long_at(field, 0);
        field.remove_prefix(8);
      }
    return {};
  }
  return broken_zip("its zip64 field is missing");
}

// Reads the next entry of the directory.
Result<std::pair<std::string, Numbers>> read_entry(HeaderCursor& directory) {
  std::array<std::byte, kEntryBytes> fixed{};
  WEFT_CHECK(directory.read(fixed));
  const std::string_view entry(reinterpret_cast<const char*>(fixed.data()), fixed.size());
  if (word_at(entry, 0) != kEntryMagic)
    return broken_zip("expected an entry of the zip directory at {}, got other bytes",
                      directory.position() - kEntryBytes);
  WEFT_TRY(std::string name, directory.text(short_at(entry, 28)));
  WEFT_TRY(const std::string extra, directory.text(short_at(entry, 30)));
  WEFT_CHECK(directory.skip(short_at(entry, 32)));
  if (name.empty()) return broken_zip("expected a name of each member, got none");
  Numbers numbers{short_at(entry, 8), short_at(entry, 10), word_at(entry, 16),
                  word_at(entry, 20), word_at(entry, 24),  word_at(entry, 42)};
  const std::array<std::uint64_t*, 3> order = {&numbers.size, &numbers.packed, &numbers.header};
  if (Status status = widen(extra, order); !status.ok())
    return broken_zip("{}: {}", member_label(name), status.error().message);
  if (short_at(entry, 34) != 0 && short_at(entry, 34) != kWideShort)
    return Error{Errc::unsupported, fmt::format("{}: expected it in this file, got another disk", member_label(name))};
  if ((numbers.flags & kEncryptedOrPatched) != 0)
    return Error{Errc::unsupported, fmt::format("{}: expected plain bytes, got encrypted ones", member_label(name))};
  if (numbers.method == kStored && numbers.packed != numbers.size)
    return broken_zip("{}: expected one size of stored bytes, got {} and {}", member_label(name), numbers.packed,
                      numbers.size);
  return std::pair(std::move(name), numbers);
}

// True if the local header may have this number where the directory has that one.
bool agree(std::uint64_t local, std::uint64_t listed, bool may_be_zero) {
  return local == listed || (may_be_zero && local == 0);
}

// Compares a local header with the entry of the directory. Returns the offset of the member's bytes.
Result<std::uint64_t> read_local_header(ByteSource& archive, std::string_view name, const Numbers& listed) {
  const auto differs = [&](std::string_view what) {
    return broken_zip("{}: expected its header at {} to agree with the zip directory, got another {}",
                      member_label(name), listed.header, what);
  };
  WEFT_TRY(const std::string header, read_text(archive, listed.header, kLocalBytes + name.size()));
  if (word_at(header, 0) != kLocalMagic) return differs("kind of record");
  const std::size_t extra_bytes = short_at(header, 28);
  if (short_at(header, 26) != name.size() || std::string_view(header).substr(kLocalBytes) != name)
    return differs("name");
  Numbers local{short_at(header, 6), short_at(header, 8), word_at(header, 14), word_at(header, 18),
                word_at(header, 22)};
  if (local.method != listed.method) return differs("method");
  if ((local.flags & kEncryptedOrPatched) != 0) return differs("encryption");
  if (local.packed == kWide || local.size == kWide) {
    WEFT_TRY(const std::string extra, read_text(archive, listed.header + header.size(), extra_bytes));
    const std::array<std::uint64_t*, 2> order = {&local.size, &local.packed};
    if (!widen(extra, order).ok()) return differs("size");
  }
  const bool follow = (local.flags & kSizesFollow) != 0;
  if (!agree(local.packed, listed.packed, follow) || !agree(local.size, listed.size, follow)) return differs("size");
  if (!agree(local.checksum, listed.checksum, follow)) return differs("checksum");
  return listed.header + header.size() + extra_bytes;
}

}  // namespace

bool ZipDirectory::begins(std::span<const std::byte> head) {
  if (head.size() < 4) return false;
  const auto magic = load_le<std::uint32_t>(head.data());
  return magic == kLocalMagic || magic == kEndMagic;
}

namespace {

struct ZipEntry {
  std::string name;
  Numbers numbers;
};

Result<std::vector<ZipEntry>> read_zip_entries(ByteSource& archive, const Place& place) {
  HeaderCursor cursor(archive, place.begin + place.bytes);
  WEFT_CHECK(cursor.skip(place.begin));
  std::vector<ZipEntry> entries;
  entries.reserve(static_cast<std::size_t>(place.count));
  for (std::uint64_t i = 0; i < place.count; ++i) {
    WEFT_TRY(auto entry, read_entry(cursor));
    entries.push_back({std::move(entry.first), entry.second});
  }
  if (cursor.remaining() > 0)
    return broken_zip("expected {} bytes of zip directory for {} members, got {}", place.bytes - cursor.remaining(),
                      place.count, place.bytes);
  return entries;
}

// Checks that a member's bytes, which begin at `data`, end before the next member.
Status check_zip_end(std::string_view name, std::uint64_t data, std::uint64_t bytes, std::uint64_t next) {
  if (data <= next && bytes <= next - data) return {};
  return broken_zip(
      "{}: expected its bytes before byte {}, where the next member or the directory begins, got {} bytes at {}",
      member_label(name), next, bytes, data);
}

}  // namespace

// The directory alone shows nearly all members that overlap. So each byte of the archive is read at most once, however
// many entries name one local header.
Result<ZipDirectory> ZipDirectory::read(ByteSource& archive) {
  WEFT_TRY(const Place place, find_directory(archive));
  WEFT_TRY(std::vector<ZipEntry> entries, read_zip_entries(archive, place));
  std::ranges::sort(entries, {}, [](const ZipEntry& entry) { return entry.numbers.header; });
  const auto next_of = [&](std::size_t i) {
    return i + 1 < entries.size() ? entries[i + 1].numbers.header : place.begin;
  };
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& [name, numbers] = entries[i];
    if (numbers.header > place.begin)
      return broken_zip("{}: expected its header before the zip directory at {}, got it at {}", member_label(name),
                        place.begin, numbers.header);
    WEFT_CHECK(check_zip_end(name, numbers.header + kLocalBytes + name.size(), numbers.packed, next_of(i)));
  }
  ZipDirectory directory;
  directory.members_.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto& [name, numbers] = entries[i];
    WEFT_TRY(const std::uint64_t data, read_local_header(archive, name, numbers));
    WEFT_CHECK(check_zip_end(name, data, numbers.packed, next_of(i)));
    directory.members_.push_back({std::move(name), numbers.header, {data, numbers.packed}, numbers.method == kStored});
  }
  WEFT_CHECK(directory.index_names());
  return directory;
}

const ZipMember* ZipDirectory::find(std::string_view name) const {
  const auto name_of = [this](std::uint32_t number) { return std::string_view(members_[number].name); };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_of);
  return found == by_name_.end() || name_of(*found) != name ? nullptr : &members_[*found];
}

Status ZipDirectory::index_names() {
  by_name_.resize(members_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  const auto name_of = [this](std::uint32_t number) { return std::string_view(members_[number].name); };
  std::ranges::sort(by_name_, {}, name_of);
  const auto twice = std::ranges::adjacent_find(by_name_, {}, name_of);
  if (twice != by_name_.end())
    return broken_zip("{}: expected each name once, got it twice", member_label(name_of(*twice)));
  return {};
}

}  // namespace weft
