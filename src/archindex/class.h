// Rows of the table `architectures`: class -> its items. Versions with equal architectures form one class.
//
// A row holds one *part* of a class, about 1,800 bytes. LMDB stores larger values in contiguous overflow pages, which
// it must search for in its list of free pages.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "index/tables.h"
#include "weft/model/version_content.h"
#include "weft/result.h"

namespace weft {

// An id is the first 160 bits of a SHA-256: a collision takes about 2^80 attempts.
inline constexpr std::size_t kArchKeyBytes = 20;

struct ArchClass {
  std::string ids;  // concatenated, kArchKeyBytes each
  std::vector<std::vector<std::uint32_t>> inputs;

  std::size_t size() const { return inputs.size(); }
  Bytes id(std::size_t item) const { return Bytes(ids).substr(item * kArchKeyBytes, kArchKeyBytes); }
};
ArchClass class_of(std::span<const ArchItem> items);
std::string class_key(const ArchClass& of);

// Returns the level of each item: the length of the longest path that leads to it.
std::vector<std::uint32_t> levels_of(const ArchClass& of);

Status put_class(Txn& txn, Bytes key, const ArchClass& of);
Status erase_class(Txn& txn, Bytes key);
Result<bool> has_class(Txn& txn, Bytes key);
Result<ArchClass> need_class(Txn& txn, Bytes key);

// Consecutive items of a class: the content of one row.
struct ArchPart {
  Bytes ids;
  std::span<const std::uint8_t> inputs;  // varints: per item the number of inputs, then the distance to each
  std::uint32_t items = 0;               // number of items in the whole class
  std::uint32_t level_first = 0;
  std::uint32_t level_last = 0;
};
// Calls visit(part) for each part in order, until it returns false.
Status each_part(Txn& txn, Bytes key, const std::function<Result<bool>(const ArchPart&)>& visit);

}  // namespace weft
