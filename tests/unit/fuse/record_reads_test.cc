#include "fuse/state/record_reads.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <vector>

namespace weft::testing {
namespace {

class Pages final : public KernelCache {
 public:
  void expire_name(Ino /*dir*/, const std::string& /*name*/) override {}
  void forget_pages(Ino /*ino*/, std::uint64_t /*offset*/, std::uint64_t /*length*/) override {}
  int store_pages(NodeId node, std::uint64_t offset, std::span<const std::byte> bytes) override {
    stored.push_back({offset, bytes.size()});
    last = node;
    return answer;
  }
  std::vector<Range> stored;
  NodeId last = 0;
  int answer = 0;
};

}  // namespace

TEST_CASE("a record is stored by one thread at a time") {
  RecordReads reads;
  auto turn = reads.begin(7, {4096, 8192});
  REQUIRE(turn);
  CHECK_FALSE(reads.begin(7, {4096, 8192}));
  CHECK(reads.begin(8, {4096, 8192}));
  CHECK(reads.begin(7, {16'384, 8192}));
  turn.reset();
  CHECK(reads.begin(7, {4096, 8192}));
}

TEST_CASE("few threads store at once") {
  RecordReads reads;
  std::vector<RecordReads::Turn> turns;
  for (std::size_t i = 0; i < RecordReads::kStorersMax; ++i) {
    auto turn = reads.begin(7, {i * 8192, 8192});
    REQUIRE(turn);
    turns.push_back(std::move(*turn));
  }
  CHECK_FALSE(reads.begin(7, {1U << 30U, 8192}));
  turns.pop_back();
  CHECK(reads.begin(7, {1U << 30U, 8192}));
}

TEST_CASE("a kernel that stores no pages is asked once") {
  RecordReads reads;
  Pages pages;
  const std::vector<std::byte> bytes(4096);
  CHECK(reads.store(pages, 7, 0, bytes));
  CHECK(reads.store(pages, 7, 0, {}));
  CHECK(pages.stored == std::vector<Range>{{0, 4096}});
  for (const int benign : {-ENOENT, -ENOMEM}) {
    pages.answer = benign;
    CHECK(reads.store(pages, 7, 0, bytes));
    CHECK(reads.works());
  }
  pages.answer = -ENOSYS;
  CHECK_FALSE(reads.store(pages, 7, 0, bytes));
  CHECK(reads.store(pages, 7, 0, bytes));  // the refusal is reported once
  CHECK_FALSE(reads.works());
  CHECK_FALSE(reads.begin(7, {0, 8192}));
}

}  // namespace weft::testing
