// Rows of the table `architectures`: class -> its items. Versions of equal architectures are one class.
//
// A row is one *part* of a class, some 1,800 bytes: LMDB keeps what is larger in pages that lie side by side, which
// have to be found among its free ones.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "index/tables.h"
#include "weft/result.h"
#include "weft/version_content.h"

namespace weft {

// The first 160 bits of a SHA-256: 2^80 tries for two that are equal.
inline constexpr std::size_t kArchKeyBytes = 20;

struct ArchClass {
  std::string ids;  // kArchKeyBytes for each item
  std::vector<std::vector<std::uint32_t>> inputs;

  std::size_t size() const { return inputs.size(); }
  Bytes id(std::size_t item) const { return Bytes(ids).substr(item * kArchKeyBytes, kArchKeyBytes); }
};
ArchClass class_of(std::span<const ArchItem> items);
std::string class_key(const ArchClass& of);

// The level of an item is the length of the longest path to it.
std::vector<std::uint32_t> levels_of(const ArchClass& of);

Status put_class(Txn& txn, Bytes key, const ArchClass& of);
Status erase_class(Txn& txn, Bytes key);
Result<bool> has_class(Txn& txn, Bytes key);
Result<ArchClass> need_class(Txn& txn, Bytes key);

// Some items of a class that follow one another.
struct ArchPart {
  Bytes ids;
  std::span<const std::uint8_t> inputs;  // as they are written
  std::uint32_t items = 0;               // of the whole class
  std::uint32_t level_first = 0;
  std::uint32_t level_last = 0;
};
// Calls visit(part) for one after the other, until it returns false.
Status each_part(Txn& txn, Bytes key, const std::function<Result<bool>(const ArchPart&)>& visit);

}  // namespace weft
