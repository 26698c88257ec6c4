#include "format/torch/pickle.h"

namespace weft {

std::int64_t Pickle::integer(Value value) const {
  const Node& node = nodes_[value];
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(node.second) << 32U) | node.first);
}

std::string_view Pickle::text(Value value) const {
  const Node& node = nodes_[value];
  return std::string_view(bytes_).substr(node.first, node.second);
}

Pickle::Items Pickle::items(Value value) const {
  const Node& node = nodes_[value];
  if (node.kind == Kind::tuple || node.kind == Kind::persistent)
    return Items(Items::Iterator(*this, node.first, node.second, 0));
  return Items(Items::Iterator(*this, 0, 0, node.first));
}

Pickle::Pairs Pickle::pairs(Value dict) const {
  return Pairs(Pairs::Iterator(items(dict).begin()));
}

// An empty run is that of no chunk, and so the first chunk follows.
Pickle::Items::Iterator::Iterator(const Pickle& pickle, std::uint32_t begin, std::uint32_t count, std::uint32_t next)
    : pickle_(&pickle), at_(begin), end_(begin + count), next_(next) {
  if (count == 0) enter(next);
}

// Becomes the end after the last chunk.
void Pickle::Items::Iterator::enter(std::uint32_t chunk) {
  if (chunk == 0) {
    *this = Iterator();
    return;
  }
  const Chunk& entered = pickle_->chunks_[chunk - 1];  // no chunk is empty
  at_ = entered.begin;
  end_ = entered.begin + entered.count;
  next_ = entered.next;
}

Pickle::Items::Iterator& Pickle::Items::Iterator::operator++() {
  if (++at_ == end_) enter(next_);
  return *this;
}

Pickle::Items::Iterator Pickle::Items::Iterator::operator++(int) {
  const Iterator before = *this;
  ++*this;
  return before;
}

std::vector<Pickle::Value> Pickle::Items::first(std::size_t count) const {
  std::vector<Value> out;
  for (Iterator it = begin(); it != end() && out.size() < count; ++it) out.push_back(*it);
  return out;
}

// A dict has a value for each key.
Pickle::Pairs::Iterator::Iterator(Items::Iterator key) : key_(key), value_(key) {
  if (key_ != Items::end()) ++value_;
}

Pickle::Pairs::Iterator& Pickle::Pairs::Iterator::operator++() {
  *this = Iterator(++value_);
  return *this;
}

Pickle::Pairs::Iterator Pickle::Pairs::Iterator::operator++(int) {
  const Iterator before = *this;
  ++*this;
  return before;
}

}  // namespace weft
