// Walks the classes that have all of some items, best first. All lists of one order have a class at the same place, so
// that their intersection is found by leaps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/arch_rows.h"

namespace weft {

class ArchJoin {
 public:
  // `items` are at least one.
  static Result<ArchJoin> make(Txn& txn, const std::vector<Bytes>& items, const std::string& order);

  // The first place, not before `from`, that all of the items have.
  Result<std::optional<ArchPlace>> next(const ArchPlace& from);

 private:
  struct List {
    std::string key;
    Cursor cursor;
  };
  explicit ArchJoin(Txn& txn) : txn_(txn) {}
  Txn& txn_;
  std::vector<List> lists_;
};

}  // namespace weft
