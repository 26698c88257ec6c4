// The reader of pickles shows the value that a pickle describes, and runs nothing. A call is a value with the arguments
// of the call, and a global is a name. The reader has no way to import or call anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// The pickles of one run of bytes, which it owns, and the values that they describe. Values may refer to one another in
// circles. One thread.
class Pickle {
 public:
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    number,  // any other: a fraction, or an integer beyond 64 bits
    text,
    bytes,
    list,  // also a set
    tuple,
    dict,
    global,
    call,
    persistent,  // an object outside of the pickle; its only item is its id
  };
  using Value = std::uint32_t;
  static constexpr Value kNone = 0;  // the value None
  class Items;
  class Pairs;

  // A call, and what the pickle puts into its result.
  struct Call {
    Value function = kNone;
    Value arguments = kNone;  // a tuple, as the protocol says; a malformed pickle may have any value
    Value state = kNone;
    Value items = kNone;  // a list, or none
    Value pairs = kNone;  // a dict, or none
  };

  explicit Pickle(std::string bytes);

  // Reads the next pickle; the first call reads the first one. Errc::invalid: the bytes are no pickle.
  // Errc::unsupported: a size that weft does not read. After an error no further pickle can be read;
  // globals() has those of the bytes before the error.
  Result<Value> read_next();
  bool at_end() const { return position_ == bytes_.size(); }
  std::size_t position() const { return position_; }  // of the next pickle
  bool ran_out() const { return ran_out_; }           // the error was that the bytes ended
  std::uint64_t opcodes() const { return opcodes_; }  // read so far
  std::size_t values() const { return nodes_.size(); }
  std::size_t calls() const { return calls_.size(); }  // values of this kind
  // The names of all globals, "module.name", each once, in the order of their first mention. A part of a name that a
  // call makes is "?". An opcode of a registered extension is "copyreg.extension_N".
  const std::vector<std::string>& globals() const { return globals_; }

  // The calls below must fit the kind of the value, which is below values().
  Kind kind(Value value) const { return nodes_[value].kind; }
  bool boolean(Value value) const { return nodes_[value].first != 0; }
  std::int64_t integer(Value value) const;
  // Any bytes. Of a number that is beyond 64 bits and in binary: its bytes, the lowest first.
  std::string_view text(Value value) const;
  Range bytes(Value value) const { return {nodes_[value].first, nodes_[value].second}; }  // of a text too
  std::string_view global(Value value) const { return globals_[nodes_[value].first]; }
  const Call& call(Value value) const { return calls_[nodes_[value].first]; }
  // Views, which copy nothing: values that are shared would be copied for each use. Valid until the next read_next().
  Items items(Value value) const;  // of a list, a tuple or a persistent value
  Pairs pairs(Value dict) const;

 private:
  friend class PickleMachine;

  // The two numbers of a node: the value itself, a place in bytes_, a run of pool_, the first and last chunk of a list
  // or dict (plus one; 0: there is none), an index of globals_ or calls_.
  struct Node {
    Kind kind = Kind::none;
    std::uint32_t first = 0;
    std::uint32_t second = 0;
  };
  // A part of the items of a list or dict: a run of pool_.
  struct Chunk {
    std::uint32_t begin = 0, count = 0;
    std::uint32_t next = 0;  // plus one; 0: the last one
  };

  std::string bytes_;
  std::size_t position_ = 0;
  bool ran_out_ = false;
  std::uint64_t opcodes_ = 0;
  std::vector<Node> nodes_;
  std::vector<Value> pool_;
  std::vector<Chunk> chunks_;
  std::vector<Call> calls_;
  std::vector<std::string> globals_;
  std::unordered_map<std::string, std::uint32_t> global_numbers_;
};

class Pickle::Items {
 public:
  class Iterator {
   public:
    using value_type = Value;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;  // the end
    Iterator(const Pickle& pickle, std::uint32_t begin, std::uint32_t count, std::uint32_t next);
    Value operator*() const { return pickle_->pool_[at_]; }
    Iterator& operator++();
    Iterator operator++(int);
    bool operator==(const Iterator&) const = default;

   private:
    void enter(std::uint32_t chunk);

    const Pickle* pickle_ = nullptr;
    std::uint32_t at_ = 0, end_ = 0;  // of pool_
    std::uint32_t next_ = 0;          // as Chunk::next
  };

  explicit Items(Iterator begin) : begin_(begin) {}
  Iterator begin() const { return begin_; }
  static Iterator end() { return {}; }
  std::vector<Value> first(std::size_t count) const;  // at most so many

 private:
  Iterator begin_;
};

class Pickle::Pairs {
 public:
  class Iterator {
   public:
    using value_type = std::pair<Value, Value>;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;  // the end
    explicit Iterator(Items::Iterator key);
    value_type operator*() const { return {*key_, *value_}; }
    Iterator& operator++();
    Iterator operator++(int);
    bool operator==(const Iterator&) const = default;

   private:
    Items::Iterator key_, value_;
  };

  explicit Pairs(Iterator begin) : begin_(begin) {}
  Iterator begin() const { return begin_; }
  static Iterator end() { return {}; }

 private:
  Iterator begin_;
};

}  // namespace weft
