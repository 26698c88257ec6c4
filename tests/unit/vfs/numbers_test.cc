// Tests that the ranges of inode numbers are disjoint and large enough.
#include "vfs/numbers.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "vfs/lineage_texts.h"

namespace weft {
namespace {

constexpr Ino kBit63 = Ino{1} << 63U;

constexpr InoKind kStoredKinds[] = {
    InoKind::stored,       InoKind::layers,       InoKind::tensors,  InoKind::lineage,       InoKind::datasets,
    InoKind::records,      InoKind::hub_model,    InoKind::hub_refs, InoKind::hub_snapshots, InoKind::hub_main,
    InoKind::hub_tag,      InoKind::hub_dir,      InoKind::hub_link, InoKind::safetensors,   InoKind::hub_view_ref,
    InoKind::hub_view_dir, InoKind::hub_view_link};
constexpr InoKind kIdKinds[] = {
    InoKind::lineage_entry,   InoKind::parent_link,      InoKind::child_link,   InoKind::diff,
    InoKind::versions_table,  InoKind::hub_number,       InoKind::hub_snapshot, InoKind::hub_commit,
    InoKind::hub_commit_link, InoKind::hub_view_snapshot};
constexpr std::uint64_t kStoredExtremes[] = {
    0, 1, kFirstStoredIno, limits::kIdMax, limits::kStoredInoMax - 1, limits::kStoredInoMax};
constexpr std::uint64_t kIdExtremes[] = {1, 2, (1ULL << 31U) - 1, 1ULL << 31U, limits::kIdMax - 1, limits::kIdMax};
constexpr std::uint64_t kClockExtremes[] = {0, 1, kKinClockMask - 1, kKinClockMask};

// Inode numbers and their meanings. No number may be added twice.
class Given {
 public:
  void add(Ino ino, std::string what) {
    CAPTURE(ino);
    CAPTURE(what);
    CHECK((ino & kBit63) == 0);
    const auto added = known_.emplace(ino, std::move(what));
    CAPTURE(added.first->second);
    CHECK(added.second);
  }
  std::size_t size() const { return known_.size(); }

 private:
  std::map<Ino, std::string> known_;
};

void add_stored(Given& given, InoKind kind) {
  for (const std::uint64_t payload : kStoredExtremes) {
    const Ino ino = ino_of(kind, payload);
    CHECK(kind_of(ino) == kind);
    CHECK(payload_of(ino) == payload);
    CHECK(is_possible(ino));
    given.add(ino, fmt::format("kind {} of {}", static_cast<int>(kind), payload));
  }
}

void add_ids(Given& given, InoKind kind) {
  CHECK(has_id(kind));
  std::vector<std::uint64_t> highs{0};
  if (high_max(kind) != 0) highs.push_back(high_max(kind));
  for (const std::uint64_t high : highs)
    for (const std::uint64_t id : kIdExtremes) {
      const Ino ino = ino_of(kind, high, id);
      CHECK(kind_of(ino) == kind);
      CHECK(high_of(ino) == high);
      CHECK(id_of(ino) == id);
      CHECK(is_possible(ino));
      given.add(ino, fmt::format("kind {} of {} and {}", static_cast<int>(kind), high, id));
    }
  CHECK_FALSE(is_possible(ino_of(kind, high_max(kind) + 1, 1)));
  CHECK_FALSE(is_possible(ino_of(kind, (1U << 25U) - 1, 1)));
}

void add_kin_files(Given& given) {
  for (unsigned file = 0; file < kKinFileCount; ++file)
    for (const VersionId version : kIdExtremes)
      for (const std::uint64_t clock : kClockExtremes) {
        const Ino ino = ino_of(KinFileNumber{file, version, clock});
        CHECK(kind_of(ino) == InoKind::kin_file);
        const KinFileNumber back = kin_file_of(ino);
        CHECK(back.file == file);
        CHECK(back.version == version);
        CHECK(back.clock == clock);
        given.add(ino, fmt::format("file {} of {} at {}", file, version, clock));
      }
}

struct NumberRange {
  Ino first, last;
};

}  // namespace

TEST_CASE("inode numbers of all kinds are distinct and reversible, up to 2^32 versions") {
  Given given;
  for (const InoKind kind : kStoredKinds) add_stored(given, kind);
  for (const InoKind kind : kIdKinds) add_ids(given, kind);
  add_kin_files(given);
  CHECK(given.size() == std::size(kStoredKinds) * std::size(kStoredExtremes) + (4 * 2 + 6) * std::size(kIdExtremes) +
                            kKinFileCount * std::size(kIdExtremes) * std::size(kClockExtremes));
}

TEST_CASE("the ranges of the kinds are disjoint and end below bit 63") {
  std::vector<NumberRange> ranges;
  for (const InoKind kind : kStoredKinds) ranges.push_back({ino_of(kind, 0), ino_of(kind, limits::kStoredInoMax)});
  for (const InoKind kind : kIdKinds)
    ranges.push_back({ino_of(kind, 0, 0), ino_of(kind, high_max(kind), limits::kIdMax)});
  ranges.push_back(
      {ino_of(KinFileNumber{0, 0, 0}), ino_of(KinFileNumber{kKinFileCount - 1, limits::kIdMax, kKinClockMask})});
  std::ranges::sort(ranges, {}, &NumberRange::first);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    CHECK(ranges[i].first <= ranges[i].last);
    CHECK(ranges[i].last < (i + 1 < ranges.size() ? ranges[i + 1].first : kBit63));
  }
}

TEST_CASE("each kind of number is tested, and no bits of a kind are those of a kin file") {
  std::array<bool, 32> tested{};
  for (const InoKind kind : kStoredKinds) tested.at(static_cast<std::size_t>(kind)) = true;
  for (const InoKind kind : kIdKinds) tested.at(static_cast<std::size_t>(kind)) = true;
  tested.at(static_cast<std::size_t>(InoKind::draft)) = true;  // src/drafts has its tests
  // The kinds are numbered without a gap. A kind missing here would leave a gap, or be the last one.
  CHECK(std::ranges::is_partitioned(tested, [](bool is) { return is; }));
  CHECK(std::ranges::count(tested, true) == static_cast<int>(InoKind::hub_view_link) + 1);
  for (Ino bits = 0; bits < 32; ++bits) CHECK(kind_of(bits << kInoKindShift) != InoKind::kin_file);
}

TEST_CASE("the clock in a kin file's number names the latest tick with its low bits") {
  constexpr std::uint64_t turn = kKinClockMask + 1;
  for (const std::uint64_t born : {std::uint64_t{0}, std::uint64_t{7}, turn - 1, turn, turn + 5, 9 * turn + 3}) {
    const KinFileNumber number = kin_file_of(ino_of(KinFileNumber{0, 1, born}));
    CHECK(number.clock < turn);
    for (const std::uint64_t age : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}, turn - 1})
      CHECK(clock_of(number, born + age) == born);
    CHECK(clock_of(number, born + turn) == born + turn);  // the number is reused
  }
  CHECK(clock_of(KinFileNumber{0, 1, 6}, 5) == 0);  // a tick in the future
}

}  // namespace weft
