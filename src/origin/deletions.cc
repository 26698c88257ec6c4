#include "origin/deletions.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/text.h"
#include "diskformat/origin_places.h"
#include "diskformat/pack_names.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::size_t kSequenceDigits = 16;
constexpr std::uint64_t kSecond = 1'000'000'000;  // ns
constexpr std::uint64_t kUnfinishedAgeMin = 24 * 3'600 * kSecond;

std::optional<std::uint64_t> sequence_of(const std::string& name) {
  if (name.size() != kSequenceDigits) return {};
  std::uint64_t sequence = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), sequence, 16);
  return error == std::errc{} && end == name.data() + name.size() ? std::optional(sequence) : std::nullopt;
}

std::optional<ManifestName> manifest_named(const std::string& text) {
  const std::size_t dot = text.find('.');
  const auto digest = digest_from_hex(text.substr(0, dot));
  const auto n = dot == std::string::npos ? std::optional<std::uint64_t>(0) : parse_u64(text.substr(dot + 1));
  if (!digest || !n || *n >= limits::kFreedNamesMax) return {};
  return ManifestName{*digest, *n};
}

SafePath fresh_file(const SafePath& origin) {
  return origin / ("tmp/" + random_hex(12));
}

Status unless_gone(Status removed) {
  return !removed.ok() && removed.error().code == Errc::not_found ? Status{} : removed;
}

std::uint64_t changed_ns(const struct stat& st) {
  return static_cast<std::uint64_t>(st.st_mtim.tv_sec) * kSecond + static_cast<std::uint64_t>(st.st_mtim.tv_nsec);
}

// True if a reader of the places of this name may still use one of these packs.
bool may_be_read(const SafePath& origin, const ManifestName& name, const std::set<PackId>& read) {
  if (read.empty()) return false;
  const SafePath file = origin / "places" / text_of(name);
  const auto bytes = read_file(file, limits::kRecordMax);
  if (!bytes.ok()) return bytes.error().code != Errc::not_found;
  const auto places = decode_places(*bytes, name.digest, file);
  return !places.ok() ||
         std::ranges::any_of(places->blobs, [&](const auto& blob) { return read.contains(blob.second.pack); });
}

bool is_missing(const SafePath& file) {
  const auto st = stat_file(file);
  return !st.ok() && st.error().code == Errc::not_found;
}

// Returns the paths of temporary files, and of packs without a table of contents that are not needed.
Result<std::vector<SafePath>> unfinished_files(const SafePath& origin, const std::set<PackId>* needed) {
  std::vector<SafePath> files;
  WEFT_TRY(const auto temporaries, list_directory(origin / "tmp"));
  for (const std::string& name : temporaries) files.push_back(origin / "tmp" / name);
  if (needed == nullptr) return files;
  WEFT_TRY(const auto packs, list_directory(origin / "packs"));
  for (const std::string& name : packs)
    if (const auto pack = pack_of_name(name, ".pack");
        pack && !needed->contains(*pack) && is_missing(toc_path(origin, *pack)))
      files.push_back(pack_path(origin, *pack));
  return files;
}

}  // namespace

std::string freed_name(std::uint64_t sequence) {
  return fmt::format("freed/{:016x}", sequence);
}

Result<FreedFiles> read_freed(const SafePath& origin, std::uint64_t at_least) {
  WEFT_TRY(const auto names, list_directory(origin / "freed"));
  std::vector<std::uint64_t> lists;
  for (const std::string& name : names)
    if (const auto sequence = sequence_of(name)) lists.push_back(*sequence);
  if (at_least != 0) lists.push_back(at_least);
  std::ranges::sort(lists, std::greater());
  for (const std::uint64_t sequence : lists) {
    const SafePath file = origin / freed_name(sequence);
    const auto bytes = read_file(file, limits::kRecordMax);
    if (bytes.ok()) return decode_freed(*bytes, sequence, file);
    if (bytes.error().code != Errc::not_found) return bytes.error();
  }
  if (lists.empty()) return FreedFiles{};
  return Error{Errc::busy, fmt::format("{}: expected a file, got none; a later collection has replaced it",
                                       origin / freed_name(lists.front()))};
}

// A hard link makes the list appear, because two collections may make it at once.
Status put_freed(const SafePath& origin, const FreedFiles& freed) {
  const SafePath written = fresh_file(origin);
  const std::vector<std::byte> bytes = encode_freed(freed);
  WEFT_CHECK(decode_freed(bytes, freed.sequence, written));  // every node refuses an origin with a list out of bounds
  WEFT_CHECK(replace_at_origin(origin, written, bytes));
  const Status linked = link_file(written, origin / freed_name(freed.sequence));
  WEFT_CHECK(remove_file(written));
  WEFT_CHECK(linked);
  return sync_directory(origin / "freed");
}

std::string text_of(const ManifestName& name) {
  return name.n == 0 ? to_hex(name.digest) : fmt::format("{}.{}", to_hex(name.digest), name.n);
}

Result<std::vector<ManifestName>> list_manifest_names(const SafePath& folder) {
  WEFT_TRY(const auto texts, list_directory(folder));
  std::vector<ManifestName> names;
  for (const std::string& text : texts)
    if (const auto name = manifest_named(text)) names.push_back(*name);
  std::ranges::sort(names);
  return names;
}

// The places go first: a manifest without places counts as missing.
Status remove_manifest(const SafePath& origin, const ManifestName& name) {
  WEFT_CHECK(unless_gone(remove_file(origin / "places" / text_of(name))));
  return unless_gone(remove_file(origin / "manifests" / text_of(name)));
}

Status remove_pack(const SafePath& origin, PackId pack) {
  WEFT_CHECK(unless_gone(remove_file(toc_path(origin, pack))));
  return unless_gone(remove_file(pack_path(origin, pack)));
}

Status replace_at_origin(const SafePath& origin, const SafePath& path, std::span<const std::byte> bytes) {
  return replace_file(path, fresh_file(origin), bytes);
}

Result<std::uint64_t> time_at_origin(const SafePath& origin) {
  const SafePath probe = fresh_file(origin);
  WEFT_CHECK(replace_at_origin(origin, probe, {}));
  const auto now = stat_file(probe);
  WEFT_CHECK(remove_file(probe));
  WEFT_CHECK(now);
  return changed_ns(*now);
}

Status sweep_names(const SafePath& origin, const FreedFiles& freed, const std::function<bool(const Digest&)>& is_needed,
                   const std::set<PackId>& read) {
  for (const char* folder : {"places", "manifests"}) {
    WEFT_TRY(const auto names, list_manifest_names(origin / folder));
    for (const ManifestName& name : names) {
      const ManifestName present{name.digest, freed.names_of(name.digest)};
      if (name.n >= present.n || !is_needed(name.digest)) continue;
      if (stat_file(origin / "places" / text_of(present)).ok() &&
          stat_file(origin / "manifests" / text_of(present)).ok() && !may_be_read(origin, name, read))
        WEFT_CHECK(remove_manifest(origin, name));
    }
  }
  return {};
}

Result<std::uint64_t> sweep_unfinished(const SafePath& origin, const std::set<PackId>* needed, bool count_only) {
  WEFT_TRY(const std::uint64_t now_ns, time_at_origin(origin));
  WEFT_TRY(const auto files, unfinished_files(origin, needed));
  std::uint64_t count = 0;
  for (const SafePath& file : files) {
    const auto st = stat_file(file);
    if (!st.ok() || changed_ns(*st) + kUnfinishedAgeMin > now_ns) continue;
    ++count;
    if (!count_only) WEFT_CHECK(unless_gone(remove_file(file)));
  }
  return count;
}

Status sweep_freed(const SafePath& origin, std::uint64_t sequence) {
  WEFT_TRY(const auto lists, list_directory(origin / "freed"));
  for (const std::string& name : lists)
    if (const auto list = sequence_of(name); list && *list < sequence)
      WEFT_CHECK(unless_gone(remove_file(origin / "freed" / name)));
  return {};
}

}  // namespace weft
