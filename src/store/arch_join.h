// Walks the classes that have all of some items, best first. All lists of one order have a class at the same place: the
// shortest list is gone through, classes whose marks lack an item are passed over there, and the rest are looked for in
// the other lists, by leaps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/arch_rows.h"

namespace weft {

struct JoinItem {
  Bytes key;                  // viewed
  std::uint64_t mark = 0;     // arch_rows.h
  std::uint64_t classes = 0;  // that have it
};

class ArchJoin {
 public:
  // `items` are at least one.
  static Result<ArchJoin> make(Txn& txn, std::vector<JoinItem> items, const std::string& order);

  // The first place, not before `from`, that all of the items have.
  Result<std::optional<ArchPlace>> next(const ArchPlace& from);

 private:
  struct List {
    std::string key;
    Cursor cursor;
  };
  explicit ArchJoin(Txn& txn) : txn_(txn) {}
  // From there on in the shortest list, the first whose class has all marks.
  Result<std::optional<ArchPlace>> candidate(const ArchPlace& from);
  Result<std::optional<ArchPlace>> at_or_after(List& list, const ArchPlace& from);
  Txn& txn_;
  std::vector<List> lists_;  // the shortest first
  std::uint64_t marks_ = 0;
};

}  // namespace weft
