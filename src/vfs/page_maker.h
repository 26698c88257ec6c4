// Builds a page of a directory that changes, from the rows of one or more tables. Each table is one part of the
// listing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "vfs/subtree.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"
#include "weft/store/walk.h"

namespace weft {

// One thread. The parts are added in their order, each by one call.
class PageMaker {
 public:
  PageMaker(Store& store, ListPlace from) : store_(store), from_(from) {}

  // Adds the rows of one table, as far as the page has room:
  //   Result<std::string> behind(Snapshot&, std::uint64_t number)   returns the table's key for the entry of that place
  //   Result<Page<Row>> read(Snapshot&, std::string_view from, std::size_t rows_max)
  //   Result<DirEntry> entry(Snapshot&, const Row&)   reads at most kRowsPerEntry - 1 rows; not_found: no entry
  // Any number of rows may have no entry, so each page of rows has a snapshot of its own.
  template <class Behind, class Read, class MakeEntry>
  Status add(unsigned part, const Behind& behind, const Read& read, const MakeEntry& entry) {
    if (part < part_of(from_) || room() == 0) return {};
    bool first = part == part_of(from_);
    return walk(store_, [&](const auto& snapshot, std::string_view from) -> Result<std::string> {
      std::string start(from);
      if (std::exchange(first, false)) {
        WEFT_TRY(start, behind(*snapshot, number_of(from_)));
      }
      WEFT_TRY(auto page, read(*snapshot, std::string_view(start), room()));
      for (const auto& row : page.rows) WEFT_CHECK(add(entry(*snapshot, row)));
      return room() > 0 ? std::move(page.next) : std::string();
    });
  }
  // Adds the only entry of a part.
  template <class MakeEntry>  // Result<DirEntry> entry(Snapshot&)
  Status add_one(unsigned part, const MakeEntry& entry) {
    if (part <= part_of(from_) || room() == 0) return {};
    WEFT_TRY(const auto snapshot, store_.snapshot());
    return add(entry(*snapshot));
  }
  // Call it after the last part.
  DirPage take() {
    page_.last = room() > 0;
    return std::move(page_);
  }

 private:
  std::size_t room() const { return kEntriesPerPage - page_.entries.size(); }
  Status add(Result<DirEntry> entry) {
    if (entry.ok()) page_.entries.push_back(std::move(entry).value());
    return entry.ok() || entry.error().code == Errc::not_found ? Status{} : Status{std::move(entry).error()};
  }

  Store& store_;
  const ListPlace from_;
  DirPage page_;
};

// For PageMaker::add(): the key of a table for the entry of a place.
inline Result<std::string> number_behind(Snapshot&, std::uint64_t number) {
  return std::to_string(number);
}
// By the stored number of a directory or a link, whose row outlives its name.
inline Result<std::string> name_behind(Snapshot& snapshot, std::uint64_t number) {
  WEFT_TRY(InodeRow row, snapshot.inode(number));
  return std::move(row.name);
}

}  // namespace weft
