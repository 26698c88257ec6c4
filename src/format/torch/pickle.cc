#include "format/torch/pickle.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/limits.h"
#include "format/torch/pickle_machine.h"

namespace weft {
namespace {

constexpr std::uint8_t kPickleStop = '.';

}  // namespace

std::uint64_t load_pickle_number(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = (value << 8U) | static_cast<unsigned char>(bytes[i]);
  return value;
}

const PickleMachine::Handlers& PickleMachine::handlers() {
  static const Handlers all = [] {
    Handlers table{};
    const auto set = [&table](std::string_view opcodes, Handler handler) {
      for (const char opcode : opcodes) table[static_cast<Opcode>(opcode)] = handler;
    };
    set("(", &PickleMachine::mark);
    set("012", &PickleMachine::drop);
    set("NFG\x88\x89", &PickleMachine::constant);
    set("IL", &PickleMachine::decimal);
    set("JKM\x8a\x8b", &PickleMachine::binary_number);
    set("SVTUXBC\x8c\x8d\x8e\x96", &PickleMachine::text);
    set("]})\x8f", &PickleMachine::empty);
    set("ltd\x91", &PickleMachine::from_mark);
    set("\x85\x86\x87", &PickleMachine::small_tuple);
    set("ae\x90", &PickleMachine::append);
    set("su", &PickleMachine::set_items);
    set("ghjpqr\x94", &PickleMachine::memo);
    set("c\x93", &PickleMachine::global);
    set("R\x81\x92", &PickleMachine::reduce);
    set("oi", &PickleMachine::object);
    set("b", &PickleMachine::build);
    set("PQ", &PickleMachine::persistent);
    set("\x80\x95", &PickleMachine::frame);
    set("\x82\x83\x84", &PickleMachine::extension);
    return table;
  }();
  return all;
}

Result<Pickle::Value> PickleMachine::run() {
  for (;;) {
    WEFT_TRY(const std::uint64_t opcode, number(1));
    if (opcode == kPickleStop) return pop();
    if (++pickle_.opcodes_ > limits::kPickleOpcodesMax)
      return Error{Errc::unsupported,
                   fmt::format("expected a pickle of at most {} opcodes, got more", limits::kPickleOpcodesMax)};
    const Handler handler = handlers()[opcode];
    if (handler == nullptr)
      return Error{Errc::invalid,
                   fmt::format("expected an opcode of a pickle at {}, got 0x{:02x}", pickle_.position_ - 1, opcode)};
    WEFT_CHECK((this->*handler)(static_cast<Opcode>(opcode)));
  }
}

Error PickleMachine::broken(std::string_view what) const {
  return Error{Errc::invalid, fmt::format("pickle: {} before byte {}", what, pickle_.position_)};
}

Result<std::string_view> PickleMachine::take(std::uint64_t count) {
  const std::uint64_t rest = pickle_.bytes_.size() - pickle_.position_;
  pickle_.ran_out_ = count > rest;
  if (pickle_.ran_out_)
    return Error{Errc::invalid,
                 fmt::format("pickle: expected {} bytes at {}, got {} before its end", count, pickle_.position_, rest)};
  const std::string_view taken =
      std::string_view(pickle_.bytes_).substr(pickle_.position_, static_cast<std::size_t>(count));
  pickle_.position_ += taken.size();
  return taken;
}

Result<std::uint64_t> PickleMachine::number(unsigned bytes) {
  WEFT_TRY(const std::string_view taken, take(bytes));
  return load_pickle_number(taken);
}

Result<std::string_view> PickleMachine::line() {
  const std::string_view rest = std::string_view(pickle_.bytes_).substr(pickle_.position_, limits::kPickleLineMax + 1);
  const std::size_t end = rest.find('\n');
  pickle_.ran_out_ = end == std::string_view::npos && rest.size() <= limits::kPickleLineMax;
  if (end == std::string_view::npos && pickle_.ran_out_) return broken("expected the end of a line, got none");
  if (end == std::string_view::npos)
    return Error{Errc::unsupported, fmt::format("expected lines of a pickle of at most {} bytes, got a longer one",
                                                limits::kPickleLineMax)};
  pickle_.position_ += end + 1;
  return rest.substr(0, end);
}

// Reads a count and then so many bytes. Returns their place in the pickle.
Result<Range> PickleMachine::counted(unsigned bytes_of_count) {
  WEFT_TRY(const std::uint64_t count, number(bytes_of_count));
  WEFT_CHECK(take(count));
  return Range{pickle_.position_ - count, count};
}

Status PickleMachine::push(Value value) {
  if (stack_.size() >= limits::kPickleValuesMax) return broken("expected a smaller stack");
  stack_.push_back(value);
  return {};
}

// The pickle has at most limits::kPickleMax bytes, so places and counts fit into 32 bits.
Result<Pickle::Value> PickleMachine::add_node(Kind kind, std::uint64_t first, std::uint64_t second) {
  if (pickle_.nodes_.size() >= limits::kPickleValuesMax)
    return Error{Errc::unsupported,
                 fmt::format("expected a pickle of at most {} values, got more", limits::kPickleValuesMax)};
  pickle_.nodes_.push_back({kind, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(second)});
  return static_cast<Value>(pickle_.nodes_.size() - 1);
}

Status PickleMachine::push_new(Kind kind, std::uint64_t first, std::uint64_t second) {
  WEFT_TRY(const Value value, add_node(kind, first, second));
  return push(value);
}

Result<Pickle::Value> PickleMachine::pop() {
  WEFT_TRY(const Value value, top());
  stack_.pop_back();
  return value;
}

Result<Pickle::Value> PickleMachine::top() const {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) return broken("expected a value on the stack, got none");
  return stack_.back();
}

// Returns the values above the last mark. They are valid until the stack changes.
Result<std::span<const Pickle::Value>> PickleMachine::marked() const {
  if (marks_.empty()) return broken("expected a mark on the stack, got none");
  return std::span<const Value>(stack_).subspan(marks_.back());
}

// Removes the values above the last mark, and the mark.
void PickleMachine::drop_marked() {
  stack_.resize(marks_.back());
  marks_.pop_back();
}

Result<PickleMachine::Run> PickleMachine::add_to_pool(std::span<const Value> values) {
  if (values.size() > limits::kPickleItemsMax - pickle_.pool_.size())
    return Error{Errc::unsupported,
                 fmt::format("expected a pickle of at most {} items, got more", limits::kPickleItemsMax)};
  const auto begin = static_cast<std::uint32_t>(pickle_.pool_.size());
  pickle_.pool_.insert(pickle_.pool_.end(), values.begin(), values.end());
  return Run{begin, static_cast<std::uint32_t>(values.size())};
}

// Moves the values above the last mark into the pool.
Result<PickleMachine::Run> PickleMachine::pool_marked() {
  WEFT_TRY(const std::span<const Value> values, marked());
  WEFT_TRY(const Run run, add_to_pool(values));
  drop_marked();
  return run;
}

// Appends to a list, or to a dict a key, its value, and so on. A run that follows the last chunk in the pool becomes a
// part of this chunk.
Status PickleMachine::extend(Value list, Run values) {
  if (values.count == 0) return {};
  Pickle::Node& node = pickle_.nodes_[list];
  Pickle::Chunk* last = node.second == 0 ? nullptr : &pickle_.chunks_[node.second - 1];
  if (last != nullptr && last->begin + last->count == values.begin) {
    last->count += values.count;
    return {};
  }
  if (pickle_.chunks_.size() >= limits::kPickleChunksMax)
    return Error{Errc::unsupported, fmt::format("expected a pickle that grows its lists at most {} times, got more",
                                                limits::kPickleChunksMax)};
  const auto number = static_cast<std::uint32_t>(pickle_.chunks_.size()) + 1;
  (last == nullptr ? node.first : last->next) = number;
  node.second = number;
  pickle_.chunks_.push_back({values.begin, values.count, 0});
  return {};
}

Status PickleMachine::push_call(Value function, Value arguments) {
  if (pickle_.calls_.size() >= limits::kPickleCallsMax)
    return Error{Errc::unsupported,
                 fmt::format("expected a pickle of at most {} calls, got more", limits::kPickleCallsMax)};
  pickle_.calls_.push_back({function, arguments});
  return push_new(Kind::call, pickle_.calls_.size() - 1);
}

// Returns the list or dict on top of the stack, which items are put into. A call there has one of its own for what is
// put into its result: the first use makes it.
Result<Pickle::Value> PickleMachine::target(Kind kind, Value Pickle::Call::*part, std::string_view expected) {
  WEFT_TRY(const Value to, top());
  if (pickle_.kind(to) == kind) return to;
  if (pickle_.kind(to) != Kind::call) return broken(expected);
  const std::uint32_t number = pickle_.nodes_[to].first;
  if (pickle_.calls_[number].*part == Pickle::kNone) {
    WEFT_TRY(pickle_.calls_[number].*part, add_node(kind, 0, 0));
  }
  return pickle_.calls_[number].*part;
}

Status PickleMachine::push_global(std::string name) {
  const auto known = pickle_.global_numbers_.find(name);
  if (known != pickle_.global_numbers_.end()) return push_new(Kind::global, known->second);
  const auto number = static_cast<std::uint32_t>(pickle_.globals_.size());
  if (number >= limits::kPickleGlobalsMax || name.size() > limits::kPickleLineMax)
    return Error{Errc::unsupported,
                 fmt::format("expected a pickle of at most {} globals, got more", limits::kPickleGlobalsMax)};
  pickle_.globals_.push_back(name);
  pickle_.global_numbers_.emplace(std::move(name), number);
  return push_new(Kind::global, number);
}

Pickle::Pickle(std::string bytes) : bytes_(std::move(bytes)) {
  nodes_.emplace_back();  // kNone
}

Result<Pickle::Value> Pickle::read_next() {
  if (bytes_.size() > limits::kPickleMax)
    return Error{Errc::unsupported,
                 fmt::format("expected a pickle of at most {} bytes, got {}", limits::kPickleMax, bytes_.size())};
  auto value = PickleMachine(*this).run();
  if (!value.ok()) position_ = bytes_.size();
  return value;
}

}  // namespace weft
