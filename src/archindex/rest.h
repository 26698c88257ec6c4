// The common items of a query whose lists are not open yet.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "archindex/common.h"
#include "archindex/list.h"

namespace weft {

class ArchRest {
 public:
  // Views the items; those of a list view the query.
  explicit ArchRest(std::span<const CommonItem> common);
  std::size_t size() const { return items_.size(); }
  // Takes away that which fewest classes have of those that no other of the rest needs. There must be one.
  ArchList open(const std::string& order);

 private:
  std::vector<std::uint32_t>::iterator rarest_last();
  std::vector<AskedItem> asked_beside(std::uint32_t item) const;

  std::span<const CommonItem> common_;
  std::vector<std::uint32_t> items_;  // inputs first
};

}  // namespace weft
