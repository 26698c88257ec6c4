#include "format/torch/pickle.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "base/limits.h"
#include "format/cursor.h"
#include "format/torch/pickle_escapes.h"

namespace weft {

// The stack machine of one pickle. A stack of its own size and a memo replace recursion, so nesting needs no call
// depth.
class PickleMachine {
 public:
  explicit PickleMachine(Pickle& pickle) : pickle_(pickle) {}

  Result<Pickle::Value> run();

 private:
  using Kind = Pickle::Kind;
  using Value = Pickle::Value;
  using Opcode = std::uint8_t;
  using Handler = Status (PickleMachine::*)(Opcode);
  using Handlers = std::array<Handler, 256>;
  // A part of the pool.
  struct Run {
    std::uint32_t begin = 0, count = 0;
  };

  static const Handlers& handlers();
  Error broken(std::string_view what) const;

  Result<std::string_view> take(std::uint64_t count);
  Result<std::uint64_t> number(unsigned bytes);
  Result<std::string_view> line();
  Result<Range> counted(unsigned bytes_of_count);

  Status push(Value value);
  Status push_new(Kind kind, std::uint64_t first = 0, std::uint64_t second = 0);
  Result<Value> add_node(Kind kind, std::uint64_t first, std::uint64_t second);
  Result<Value> pop();
  Result<std::span<const Value>> marked() const;
  void drop_marked();
  Result<Value> top() const;
  Result<Run> add_to_pool(std::span<const Value> values);
  Result<Run> pool_marked();
  Status extend(Value list, Run values);
  Status push_call(Value function, Value arguments);
  Result<Value> target(Kind kind, Value Pickle::Call::*part, std::string_view expected);
  Status push_global(std::string name);

  Status mark(Opcode opcode);
  Status drop(Opcode opcode);
  Status constant(Opcode opcode);
  Status decimal(Opcode opcode);
  Status binary_number(Opcode opcode);
  Status text(Opcode opcode);
  Status empty(Opcode opcode);
  Status from_mark(Opcode opcode);
  Status small_tuple(Opcode opcode);
  Status append(Opcode opcode);
  Status set_items(Opcode opcode);
  Status memo(Opcode opcode);
  Status global(Opcode opcode);
  Status reduce(Opcode opcode);
  Status object(Opcode opcode);
  Status build(Opcode opcode);
  Status persistent(Opcode opcode);
  Status frame(Opcode opcode);
  Status extension(Opcode opcode);

  static constexpr Value kNoValue = UINT32_MAX;

  Pickle& pickle_;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack at the open marks
  std::vector<Value> memo_;         // kNoValue: empty
};

namespace {

// Opcodes, by Python's pickletools.
constexpr std::uint8_t kStop = '.', kProtocolOpcode = 0x80, kFrame = 0x95, kMemoize = 0x94, kStackGlobal = 0x93;
constexpr std::uint8_t kNewTrue = 0x88, kLong1 = 0x8a, kLong4 = 0x8b, kTuple1 = 0x85, kFrozenSet = 0x91;
constexpr std::uint8_t kShortText = 0x8c, kLongText = 0x8d, kLongBytes = 0x8e, kByteArray = 0x96, kNewObjectEx = 0x92;
constexpr std::uint8_t kExtension1 = 0x82, kExtension4 = 0x84;

// Decodes a little-endian number of up to 8 bytes.
std::uint64_t load_number(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = (value << 8U) | static_cast<unsigned char>(bytes[i]);
  return value;
}

// The same, in two's complement; `bytes` are 1 to 8.
std::int64_t load_signed(std::string_view bytes) {
  const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes.size());
  return static_cast<std::int64_t>(load_number(bytes) << unused) >> unused;
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
    if (opcode == kStop) return pop();
    if (++pickle_.opcodes_ > limits::kPickleOpcodesMax)
      return Error{Errc::unsupported,
                   fmt::format("expected a pickle of at most {} opcodes, got more", limits::kPickleOpcodesMax)};
    const Handler handler = handlers()[opcode];
    if (handler == nullptr)
      return Error{Errc::unsupported,
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
  return load_number(taken);
}

Result<std::string_view> PickleMachine::line() {
  const std::string_view rest = std::string_view(pickle_.bytes_).substr(pickle_.position_, limits::kPickleLineMax + 1);
  const std::size_t end = rest.find('\n');
  pickle_.ran_out_ = end == std::string_view::npos && rest.size() <= limits::kPickleLineMax;
  if (end == std::string_view::npos) return broken("expected the end of a line, got none");
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
    value = opcode == 'J' ? load_signed(taken) : static_cast<std::int64_t>(load_number(taken));
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
