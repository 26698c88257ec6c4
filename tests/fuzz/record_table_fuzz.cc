// Checks a record table and reads all of an accepted one. Seeds are tables made by RecordTableMaker
// (tests/unit/dataset/record_table_test.cc).
#include "dataset/record_table.h"
#include "fuzzing.h"

namespace weft::fuzzing {
namespace {

// Counts the paths below `dir`, and checks each.
std::uint64_t count_paths(const RecordTable& table, const std::string& dir, std::uint64_t from) {
  std::uint64_t count = 0;
  for (auto entry = table.entry_at(dir, from); entry; entry = table.entry_at(dir, entry->next)) {
    require(entry->next > entry->first, "a listing goes on");
    const auto found = table.lookup(dir, entry->name);
    require(found && found->first == entry->first, "what is listed is found");
    if (entry->row) require(*entry->row < table.size(), "files are rows");
    const std::string below = dir.empty() ? std::string(entry->name) : dir + "/" + std::string(entry->name);
    count += entry->row ? 1 : count_paths(table, below, 0);
  }
  return count;
}

void fuzz_table(std::span<const std::byte> bytes) {
  const auto table = RecordTable::check(bytes);
  if (!table.ok()) {
    require(table.error().code == Errc::corrupt, "failures are called what they are");
    return;
  }
  for (std::uint64_t i = 0; i < table->size(); ++i) {
    const Range row = table->row(i);
    require(row.offset <= table->container_bytes() && row.length <= table->container_bytes() - row.offset,
            "rows lie in the container");
  }
  count_paths(*table, "", 0);
  const RowShares shares = table->shares();
  std::uint64_t rows = 0;
  for (std::uint64_t r = 0; r < 5; ++r) rows += shares.part(5, r).second - shares.part(5, r).first;
  require(rows == table->size(), "each row is in one part");
  rows = 0;
  for (std::uint64_t r = 0; r < 3; ++r) rows += shares.order(9, 3, r).rows().size();
  require(rows == table->size(), "each row is in one share");
}

}  // namespace
}  // namespace weft::fuzzing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzzing::fuzz_table(std::as_bytes(std::span(data, size)));
  return 0;
}
