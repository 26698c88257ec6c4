// The envelope of stored records, and its checksum.
#include "diskformat/record.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "diskformat/hash.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<std::byte> sealed(std::string_view payload) {
  return seal_record(RecordKind::number, as_bytes(payload));
}

}  // namespace

TEST_CASE("xxh3 agrees with its published value") {
  CHECK(xxh3_64({}) == 0x2D06800538D394C2ULL);
  auto bytes = random_bytes(10'000, 1);
  CHECK(xxh3_64(bytes, 1) != xxh3_64(bytes));
}

TEST_CASE("a record with any bit flipped does not open") {
  auto record = sealed("payload");
  CHECK(as_text(open_record(RecordKind::number, record, "r").value()) == "payload");
  for (std::size_t bit = 0; bit < record.size() * 8; ++bit) {
    auto damaged = record;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    CHECK_FALSE(open_record(RecordKind::number, damaged, "r").ok());
  }
  for (std::size_t size = 0; size < record.size(); ++size)
    CHECK(open_record(RecordKind::number, std::span(record).first(size), "r").error().code == Errc::corrupt);
  CHECK(open_record(RecordKind::version, record, "r").error().code == Errc::corrupt);
  CHECK(open_record(RecordKind::number, record, "r", 1).error().code == Errc::corrupt);
}

TEST_CASE("a record of another version is refused as such") {
  for (const std::uint8_t version : {std::uint8_t{0}, static_cast<std::uint8_t>(kRecordVersion + 1)}) {
    auto record = sealed("payload");
    record[14] = std::byte{version};
    std::uint64_t sum = xxh3_64(std::span(record).subspan(8));
    for (unsigned i = 0; i < 8; ++i) record[i] = static_cast<std::byte>(sum >> (8 * i));
    auto opened = open_record(RecordKind::number, record, "r");
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().code == Errc::unsupported);
    CHECK(opened.error().message.ends_with(fmt::format("expected record version {}, got {}", kRecordVersion, version)));
  }
}

TEST_CASE("a record that is sealed in pieces equals one that is sealed at once") {
  const auto payload = random_bytes(1000, 1);
  PiecewiseRecord record(RecordKind::number, static_cast<std::uint32_t>(payload.size()));
  for (std::size_t at = 0; at < payload.size(); at += 300)
    record.add(std::span(payload).subspan(at, std::min<std::size_t>(300, payload.size() - at)));
  const auto header = record.header();
  std::vector<std::byte> pieces(header.begin(), header.end());
  pieces.insert(pieces.end(), payload.begin(), payload.end());
  CHECK(pieces == seal_record(RecordKind::number, payload));
}

TEST_CASE("the first of many records is found by its length") {
  auto records = seal_record(RecordKind::tags, as_bytes("first"));
  const std::size_t size = records.size();
  const auto second = sealed("second");
  records.insert(records.end(), second.begin(), second.end());
  CHECK(record_length(records) == size);
  CHECK(record_kind(records) == RecordKind::tags);
  CHECK(looks_like_event(records));
  CHECK_FALSE(looks_like_event(second));
  CHECK_FALSE(record_length(std::span(records).first(size - 1)));
  CHECK_FALSE(record_length({}));
}
