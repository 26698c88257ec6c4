#include "format/torch/pickle_machine.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>

#include "base/limits.h"
#include "format/torch/pickle_escapes.h"

namespace weft {
namespace {

// Opcodes, by Python's pickletools.
constexpr std::uint8_t kProtocolOpcode = 0x80, kFrame = 0x95, kMemoize = 0x94, kStackGlobal = 0x93;
constexpr std::uint8_t kNewTrue = 0x88, kLong1 = 0x8a, kLong4 = 0x8b, kTuple1 = 0x85, kFrozenSet = 0x91;
constexpr std::uint8_t kShortText = 0x8c, kLongText = 0x8d, kLongBytes = 0x8e, kByteArray = 0x96, kNewObjectEx = 0x92;
constexpr std::uint8_t kExtension1 = 0x82, kExtension4 = 0x84;

// Decodes a little-endian number of 1 to 8 bytes in two's complement.
std::int64_t load_signed(std::string_view bytes) {
  const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes.size());
  return static_cast<std::int64_t>(load_pickle_number(bytes) << unused) >> unused;
}

std::optional<std::int64_t> parse_decimal(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A part that a call makes is unknown.
std::string_view part_of_global(const Pickle& pickle, Pickle::Value value) {
  return pickle.kind(value) == Pickle::Kind::text ? pickle.text(value) : "?";
}

}  // namespace

Status PickleMachine::mark(Opcode /*opcode*/) {
  if (marks_.size() >= limits::kPickleValuesMax) return broken("expected fewer marks");
  marks_.push_back(stack_.size());
  return {};
}

Status PickleMachine::drop(Opcode opcode) {
  if (opcode == '1' || (opcode == '0' && !marks_.empty() && marks_.back() == stack_.size())) {
    WEFT_CHECK(marked());
    drop_marked();
    return {};
  }
  if (opcode == '0') {
    WEFT_CHECK(pop());
    return {};
  }
  WEFT_TRY(const Value twice, top());
  return push(twice);
}

Status PickleMachine::constant(Opcode opcode) {
  if (opcode == 'N') return push(Pickle::kNone);
  if (opcode == 'F') {
    WEFT_CHECK(line());
    return push_new(Kind::number);
  }
  if (opcode == 'G') {
    WEFT_CHECK(take(8));
    return push_new(Kind::number);
  }
  return push_new(Kind::boolean, opcode == kNewTrue ? 1 : 0);
}

Status PickleMachine::decimal(Opcode opcode) {
  WEFT_TRY(std::string_view digits, line());
  if (opcode == 'I' && (digits == "00" || digits == "01")) return push_new(Kind::boolean, digits == "01" ? 1 : 0);
  if (digits.ends_with('L')) digits.remove_suffix(1);
  const auto value = parse_decimal(digits);
  if (!value) return push_new(Kind::number);
  return push_new(Kind::integer, static_cast<std::uint32_t>(*value), static_cast<std::uint64_t>(*value) >> 32U);
}

Status PickleMachine::binary_number(Opcode opcode) {
  std::int64_t value = 0;
  if (opcode == kLong1 || opcode == kLong4) {
    WEFT_TRY(const Range place, counted(opcode == kLong1 ? 1 : 4));
    if (place.length > sizeof value) return push_new(Kind::number, place.offset, place.length);
    if (place.length > 0) value = load_signed(std::string_view(pickle_.bytes_).substr(place.offset, place.length));
  } else {
    WEFT_TRY(const std::string_view taken, take(opcode == 'J' ? 4 : opcode == 'M' ? 2 : 1));
    value = opcode == 'J' ? load_signed(taken) : static_cast<std::int64_t>(load_pickle_number(taken));
  }
  return push_new(Kind::integer, static_cast<std::uint32_t>(value), static_cast<std::uint64_t>(value) >> 32U);
}

// Texts and bytes, of which the first two opcodes are lines.
Status PickleMachine::text(Opcode opcode) {
  if (opcode == 'S' || opcode == 'V') {
    WEFT_TRY(std::string_view value, line());
    if (opcode == 'S' && value.size() >= 2) value = value.substr(1, value.size() - 2);
    const auto begin = static_cast<std::size_t>(value.data() - pickle_.bytes_.data());
    const std::span<char> bytes = std::span(pickle_.bytes_).subspan(begin, value.size());
    return push_new(Kind::text, begin, opcode == 'S' ? unescape_bytes(bytes) : unescape_text(bytes));
  }
  const bool is_bytes = opcode == 'B' || opcode == 'C' || opcode == kLongBytes || opcode == kByteArray;
  const bool one = opcode == 'U' || opcode == 'C' || opcode == kShortText;
  const bool eight = opcode == kLongText || opcode == kLongBytes || opcode == kByteArray;
  WEFT_TRY(const Range place, counted(one ? 1 : eight ? 8 : 4));
  return push_new(is_bytes ? Kind::bytes : Kind::text, place.offset, place.length);
}

Status PickleMachine::empty(Opcode opcode) {
  return push_new(opcode == '}' ? Kind::dict : opcode == ')' ? Kind::tuple : Kind::list);
}

Status PickleMachine::from_mark(Opcode opcode) {
  WEFT_TRY(const Run run, pool_marked());
  if (opcode == 't' || opcode == kFrozenSet) return push_new(Kind::tuple, run.begin, run.count);
  if (opcode == 'd' && run.count % 2 != 0) return broken("expected a value for each key of a dict");
  WEFT_CHECK(push_new(opcode == 'd' ? Kind::dict : Kind::list));
  return extend(stack_.back(), run);
}

Status PickleMachine::small_tuple(Opcode opcode) {
  std::array<Value, 3> values{};
  const std::size_t count = opcode - kTuple1 + 1U;
  for (std::size_t i = count; i-- > 0;) {
    WEFT_TRY(values[i], pop());
  }
  WEFT_TRY(const Run run, add_to_pool(std::span(values).first(count)));
  return push_new(Kind::tuple, run.begin, run.count);
}

Status PickleMachine::append(Opcode opcode) {
  Run run;
  if (opcode == 'a') {
    WEFT_TRY(const Value value, pop());
    WEFT_TRY(run, add_to_pool(std::array{value}));
  } else {
    WEFT_TRY(run, pool_marked());
  }
  WEFT_TRY(const Value to, target(Kind::list, &Pickle::Call::items, "expected a list to append to"));
  return extend(to, run);
}

Status PickleMachine::set_items(Opcode opcode) {
  Run run;
  if (opcode == 's') {
    WEFT_TRY(const Value value, pop());
    WEFT_TRY(const Value key, pop());
    WEFT_TRY(run, add_to_pool(std::array{key, value}));
  } else {
    WEFT_TRY(run, pool_marked());
  }
  if (run.count % 2 != 0) return broken("expected a value for each key of a dict");
  WEFT_TRY(const Value to, target(Kind::dict, &Pickle::Call::pairs, "expected a dict to put items into"));
  return extend(to, run);
}

// Writers number the memo from 0 on, so a number above the count of opcodes is none of theirs.
Status PickleMachine::memo(Opcode opcode) {
  std::uint64_t number = memo_.size();
  if (opcode == 'g' || opcode == 'p') {
    WEFT_TRY(const std::string_view digits, line());
    const auto value = parse_decimal(digits);
    if (!value || *value < 0) return broken("expected a number of the memo");
    number = static_cast<std::uint64_t>(*value);
  } else if (opcode != kMemoize) {
    WEFT_TRY(number, this->number(opcode == 'h' || opcode == 'q' ? 1 : 4));
  }
  if (opcode == 'g' || opcode == 'h' || opcode == 'j') {
    if (number >= memo_.size() || memo_[number] == kNoValue) return broken("expected a value in the memo, got none");
    return push(memo_[number]);
  }
  if (number > pickle_.opcodes_ || number >= limits::kPickleValuesMax)
    return Error{Errc::unsupported, fmt::format("pickle: expected numbers of the memo in order, got {}", number)};
  WEFT_TRY(const Value value, top());
  if (number >= memo_.size()) memo_.resize(number + 1, kNoValue);
  memo_[number] = value;
  return {};
}

Status PickleMachine::global(Opcode opcode) {
  if (opcode != kStackGlobal) {
    WEFT_TRY(const std::string_view module, line());
    WEFT_TRY(const std::string_view name, line());
    return push_global(fmt::format("{}.{}", module, name));
  }
  WEFT_TRY(const Value name, pop());
  WEFT_TRY(const Value module, pop());
  WEFT_CHECK(push_global(fmt::format("{}.{}", part_of_global(pickle_, module), part_of_global(pickle_, name))));
  if (pickle_.kind(name) == Kind::text && pickle_.kind(module) == Kind::text) return {};
  return Error{Errc::unsupported, fmt::format("pickle: a global whose name is put together at run time, before byte {}",
                                              pickle_.position_)};
}

// NEWOBJ_EX has keyword arguments. They become the last argument.
Status PickleMachine::reduce(Opcode opcode) {
  Value keywords = Pickle::kNone;
  if (opcode == kNewObjectEx) {
    WEFT_TRY(keywords, pop());
  }
  WEFT_TRY(Value arguments, pop());
  WEFT_TRY(const Value function, pop());
  if (opcode == kNewObjectEx) {
    WEFT_TRY(const Run run, add_to_pool(std::array{arguments, keywords}));
    WEFT_TRY(arguments, add_node(Kind::tuple, run.begin, run.count));
  }
  return push_call(function, arguments);
}

// OBJ has the class as the first value after the mark, INST as two lines.
Status PickleMachine::object(Opcode opcode) {
  if (opcode == 'i') {
    WEFT_CHECK(global('c'));
  }
  Value function = Pickle::kNone;
  if (opcode == 'i') {
    function = stack_.back();
    stack_.pop_back();
  }
  WEFT_TRY(Run run, pool_marked());
  if (opcode == 'o') {
    if (run.count == 0) return broken("expected a class after the mark, got none");
    function = pickle_.pool_[run.begin++];
    --run.count;
  }
  WEFT_TRY(const Value tuple, add_node(Kind::tuple, run.begin, run.count));
  return push_call(function, tuple);
}

// The state of anything but a call is left out: only calls make objects that have one.
Status PickleMachine::build(Opcode /*opcode*/) {
  WEFT_TRY(const Value state, pop());
  WEFT_TRY(const Value object, top());
  if (pickle_.kind(object) == Kind::call) pickle_.calls_[pickle_.nodes_[object].first].state = state;
  return {};
}

Status PickleMachine::persistent(Opcode opcode) {
  Value id = Pickle::kNone;
  if (opcode == 'P') {
    WEFT_TRY(const std::string_view text, line());
    WEFT_TRY(id, add_node(Kind::text, static_cast<std::uint64_t>(text.data() - pickle_.bytes_.data()), text.size()));
  } else {
    WEFT_TRY(id, pop());
  }
  WEFT_TRY(const Run run, add_to_pool(std::array{id}));
  return push_new(Kind::persistent, run.begin, run.count);
}

// Marks of the protocol and of frames, which say nothing about the value.
Status PickleMachine::frame(Opcode opcode) {
  constexpr std::uint64_t kProtocolMax = 5;
  WEFT_TRY(const std::uint64_t value, number(opcode == kFrame ? 8 : 1));
  if (opcode == kProtocolOpcode && value > kProtocolMax)
    return Error{Errc::unsupported,
                 fmt::format("expected a pickle of a protocol up to {}, got {}", kProtocolMax, value)};
  return {};
}

// The class that an extension stands for is known only to the process that registers it.
Status PickleMachine::extension(Opcode opcode) {
  WEFT_TRY(const std::uint64_t code, number(opcode == kExtension4 ? 4 : opcode - kExtension1 + 1U));
  WEFT_CHECK(push_global(fmt::format("copyreg.extension_{}", code)));
  return Error{Errc::unsupported, fmt::format("pickle: a registered extension, before byte {}", pickle_.position_)};
}

}  // namespace weft
