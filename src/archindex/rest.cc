#include "archindex/rest.h"

#include "archindex/marks.h"

namespace weft {

ArchRest::ArchRest(std::span<const CommonItem> common) : common_(common) {
  for (std::uint32_t item = 0; item < common_.size(); ++item) items_.push_back(item);
}

ArchList ArchRest::open(const std::string& order) {
  auto rarest = rarest_last();
  const CommonItem& item = common_[*rarest];
  ArchList list(item.key, order, item.classes, asked_beside(*rarest));
  items_.erase(rarest);
  return list;
}

// Of the items that no other of the rest needs.
std::vector<std::uint32_t>::iterator ArchRest::rarest_last() {
  std::vector<bool> needed(common_.size());
  for (std::uint32_t item : items_)
    for (std::uint32_t input : common_[item].inputs) needed[input] = true;
  auto rarest = items_.end();
  for (auto at = items_.begin(); at != items_.end(); ++at)
    if (!needed[*at] && (rarest == items_.end() || common_[*at].classes < common_[*rarest].classes)) rarest = at;
  return rarest;
}

// The rest, as a class under `item` may have it.
std::vector<AskedItem> ArchRest::asked_beside(std::uint32_t item) const {
  std::vector<bool> upstream(item + 1);
  upstream[item] = true;
  for (std::uint32_t i = item + 1; i-- > 0;)
    if (upstream[i])
      for (std::uint32_t input : common_[i].inputs) upstream[input] = true;
  std::vector<std::uint64_t> marks(common_.size());
  std::vector<std::uint64_t> needs(common_.size());
  std::vector<AskedItem> asked;
  asked.reserve(items_.size());
  for (std::uint32_t i : items_) {
    const bool beside = i > item || !upstream[i];
    if (beside && are_near(common_[i].level, common_[item].level)) marks[i] = mark_of(common_[i].key);
    if (asked.size() < kToldApart) needs[i] = 1ULL << asked.size();
    for (std::uint32_t input : common_[i].inputs) {
      marks[i] |= marks[input];
      needs[i] |= needs[input];
    }
    asked.push_back({common_[i].key, common_[i].classes, marks[i], needs[i], beside});
  }
  return asked;
}

}  // namespace weft
