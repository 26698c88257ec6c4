#include "format/protobuf.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "allocation.h"
#include "base/limits.h"
#include "protobufs.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;
using Kind = ProtobufField::Kind;

namespace {

std::vector<ProtobufField> fields_of(std::string_view bytes) {
  MemorySource source(bytes);
  ProtobufReader reader(source);
  std::vector<ProtobufField> fields;
  must(reader.each_field(reader.whole(), [&](const ProtobufField& field) -> Status {
    fields.push_back(field);
    return {};
  }));
  return fields;
}

Error refused(std::string_view bytes) {
  MemorySource source(bytes);
  ProtobufReader reader(source);
  const Status read = reader.each_field(reader.whole(), [](const ProtobufField&) { return Status{}; });
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().message.starts_with("protobuf: expected "));
  return read.error();
}

// Reads the messages in field 1, and in theirs.
Status read_nested(ProtobufReader& reader, Range message) {
  return reader.each_field(message, [&](const ProtobufField& field) { return read_nested(reader, field.bytes); });
}

// A file of `size` bytes: a head, then two bytes again and again.
class RepeatedSource final : public ByteSource {
 public:
  RepeatedSource(std::string head, std::string_view pair, std::uint64_t size)
      : head_(std::move(head)), pair_(pair), size_(size) {}
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) override {
    read_ += out.size();
    for (std::byte& b : out) {
      b = static_cast<std::byte>(offset < head_.size() ? head_[offset] : pair_[(offset - head_.size()) % 2]);
      ++offset;
    }
    return {};
  }
  std::uint64_t bytes_read() const { return read_; }

 private:
  const std::string head_, pair_;
  const std::uint64_t size_;
  std::uint64_t read_ = 0;
};

}  // namespace

TEST_CASE("protobuf: fields of each kind, with the places of their values") {
  const auto fields = fields_of(pb_varint(1, 300) + pb_bytes(16, "text") + pb_key(3, 1) + "12345678" + pb_key(4, 5) +
                                "1234" + pb_bytes(5, ""));
  REQUIRE(fields.size() == 5);
  CHECK(fields[0].number == 1);
  CHECK(fields[0].kind == Kind::varint);
  CHECK(fields[0].value == 300);
  CHECK(fields[0].bytes == Range{1, 2});
  CHECK(fields[1].number == 16);
  CHECK(fields[1].kind == Kind::bytes);
  CHECK(fields[1].bytes == Range{6, 4});
  CHECK(fields[2].kind == Kind::fixed64);
  CHECK(fields[2].bytes == Range{11, 8});
  CHECK(fields[3].kind == Kind::fixed32);
  CHECK(fields[3].bytes == Range{20, 4});
  CHECK(fields[4].bytes == Range{26, 0});
  CHECK(fields_of("").empty());
}

TEST_CASE("protobuf: a number has at most 10 bytes") {
  CHECK(fields_of(pb_varint(1, UINT64_MAX)).at(0).value == UINT64_MAX);
  CHECK(fields_of("\x08" + std::string(9, '\x80') + std::string(1, '\0')).at(0).value == 0);
  CHECK(refused("\x08" + std::string(10, '\x80') + std::string(1, '\0')).code == Errc::invalid);
  CHECK(refused("\x08\x80").code == Errc::invalid);
  CHECK(refused("\x80").code == Errc::invalid);
  CHECK(refused("\x08").code == Errc::invalid);
}

TEST_CASE("protobuf: field 0, groups and unknown wire types are refused") {
  CHECK(refused(pb_varint(0, 1)).message.find("got 0") != std::string::npos);
  CHECK(fields_of(pb_varint((1U << 29U) - 1, 1)).size() == 1);
  CHECK(refused(pb_varint(1U << 29U, 1)).code == Errc::invalid);
  CHECK(refused(pb_varint(1ULL << 60U, 1)).code == Errc::invalid);
  CHECK(refused(pb_key(1, 3) + pb_key(1, 4)).code == Errc::unsupported);
  CHECK(refused(pb_key(1, 4)).code == Errc::unsupported);
  CHECK(refused(pb_key(1, 6)).code == Errc::invalid);
  CHECK(refused(pb_key(1, 7)).code == Errc::invalid);
}

TEST_CASE("protobuf: a value lies in the message of its field") {
  CHECK(refused(pb_key(1, 2) + pb_number(5) + "1234").code == Errc::invalid);
  CHECK(refused(pb_key(1, 2) + pb_number(UINT64_MAX)).code == Errc::invalid);
  CHECK(refused(pb_key(1, 1) + "1234567").code == Errc::invalid);
  CHECK(refused(pb_key(1, 5) + "123").code == Errc::invalid);
  MemorySource source(pb_bytes(1, pb_key(2, 2) + pb_number(2) + "x") + pb_varint(3, 1));
  ProtobufReader reader(source);
  CHECK(read_nested(reader, reader.whole()).error().code == Errc::invalid);  // the inner value would end in field 3
}

TEST_CASE("protobuf: the depth of messages is bounded") {
  std::string message;
  for (std::size_t depth = 1; depth < limits::kProtobufDepthMax; ++depth) message = pb_bytes(1, message);
  MemorySource source(message);
  ProtobufReader reader(source);
  CHECK(read_nested(reader, reader.whole()).ok());
  MemorySource deeper_source(pb_bytes(1, message));
  ProtobufReader deeper(deeper_source);
  CHECK(read_nested(deeper, deeper.whole()).error().code == Errc::unsupported);
  for (int depth = 0; depth < 10'000; ++depth) message = pb_bytes(1, message);
  MemorySource deepest_source(message);
  ProtobufReader deepest(deepest_source);
  CHECK(read_nested(deepest, deepest.whole()).error().code == Errc::unsupported);
}

TEST_CASE("protobuf: the number of fields is bounded, and memory is one window") {
  RepeatedSource source("", pb_varint(1, 1), 2ULL << 30U);
  ProtobufReader reader(source);
  reset_allocations();
  const Status read = reader.each_field(reader.whole(), [](const ProtobufField&) { return Status{}; });
  const Allocations used = allocations();
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().code == Errc::unsupported);
  CHECK(source.bytes_read() <= 2 * limits::kProtobufFieldsMax + HeaderCursor::kWindow);
  CHECK(used.largest <= 4096);
}

TEST_CASE("protobuf: the bytes of a field are not read unless they are asked for") {
  const std::uint64_t length = 1ULL << 40U;
  const std::string head = pb_key(9, 2) + pb_number(length);
  RepeatedSource source(head, pb_varint(1, 1), head.size() + length + 2);
  ProtobufReader reader(source);
  std::size_t fields = 0;
  must(reader.each_field(reader.whole(), [&](const ProtobufField& field) -> Status {
    ++fields;
    if (field.number != 9) return {};
    CHECK(field.bytes == Range{head.size(), length});
    CHECK(must(reader.text(field, 3)) == "\x08\x01\x08");
    return {};
  }));
  CHECK(fields == 2);
  CHECK(source.bytes_read() <= 2 * HeaderCursor::kWindow);
}

TEST_CASE("protobuf: texts and numbers are read as far as the caller wants") {
  const std::string packed = pb_number(1) + pb_number(300) + pb_number(UINT64_MAX);
  MemorySource source(pb_bytes(1, "a text") + pb_bytes(2, packed) + pb_varint(2, 7) + pb_bytes(2, "\x80"));
  ProtobufReader reader(source);
  std::vector<std::uint64_t> numbers, two;
  std::vector<std::string> texts;
  std::vector<Status> added;
  must(reader.each_field(reader.whole(), [&](const ProtobufField& field) -> Status {
    if (field.number == 1) {
      texts = {must(reader.text(field, 100)), must(reader.text(field, 1))};
      return {};
    }
    must(reader.add_numbers(field, two.size() < 2 ? 2 : 0, two));
    added.push_back(reader.add_numbers(field, 100, numbers));
    return {};
  }));
  CHECK(texts == std::vector<std::string>{"a text", "a"});
  CHECK(numbers == std::vector<std::uint64_t>{1, 300, UINT64_MAX, 7});
  CHECK(two == std::vector<std::uint64_t>{1, 300});
  REQUIRE(added.size() == 3);
  CHECK(added[1].ok());
  CHECK(added[2].error().code == Errc::invalid);
}
