// The stack machine that reads one pickle (pickle.cc), and what its opcodes do (pickle_opcodes.cc).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/torch/pickle.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// Reads one pickle once. A stack of its own size and a memo replace recursion, so nesting needs no call depth. Errors
// are those of Pickle::read_next().
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

  static const Handlers& handlers();  // null: no such opcode
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

// Decodes a little-endian number of up to 8 bytes.
std::uint64_t load_pickle_number(std::string_view bytes);

}  // namespace weft
