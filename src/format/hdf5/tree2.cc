#include "format/hdf5/tree2.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/limits.h"

namespace weft {
namespace {

constexpr std::string_view kTree2Header = "tree header";
constexpr std::string_view kTree2Node = "tree node";
constexpr std::uint64_t kTree2NodeHead = 6;  // signature, version, type
constexpr std::uint64_t kTree2Sum = 4;
constexpr std::uint64_t kTree2DepthMax = 16;

class Hdf5Tree2 {
 public:
  Hdf5Tree2(Hdf5File& file, Hdf5Tree2Type type, const Hdf5Record& record) : file_(file), type_(type), record_(record) {}
  Status read(std::uint64_t header);

 private:
  // Nodes of one depth, where leaves have depth 0.
  struct Level {
    std::uint64_t records_max = 0;    // of a node
    std::uint64_t subtree_max = 0;    // of a node and all nodes below
    std::uint64_t pointer_bytes = 0;  // of a child
  };

  Status size_levels(std::uint64_t header, std::uint64_t node_bytes, std::uint64_t depth);
  Status read_node(std::uint64_t at, std::uint64_t count, std::size_t depth);
  std::size_t count_bytes() const { return hdf5_width(levels_.front().records_max); }

  Hdf5File& file_;
  const Hdf5Tree2Type type_;
  const Hdf5Record& record_;
  std::uint64_t record_bytes_ = 0;
  std::vector<Level> levels_;
};

Status Hdf5Tree2::read(std::uint64_t header) {
  const Hdf5Widths widths = file_.widths();
  WEFT_TRY(const Hdf5Block bytes, file_.block(kTree2Header, header, 22 + widths.address + widths.length));
  WEFT_CHECK(Hdf5File::check_signature(kTree2Header, header, bytes, "BTHD"));
  WEFT_CHECK(file_.check_sum(kTree2Header, header, bytes));
  Hdf5Fields fields = file_.fields(bytes);
  fields.skip(5);
  const std::uint64_t type = fields.number(1), node_bytes = fields.number(4);
  record_bytes_ = fields.number(2);
  const std::uint64_t depth = fields.number(2);
  fields.skip(2);  // percentages of splits and merges
  const std::uint64_t root = fields.address(), count = fields.number(2);
  if (type != static_cast<std::uint64_t>(type_))
    return hdf5_error(
        fmt::format("{} at {}: expected type {}, got {}", kTree2Header, header, static_cast<int>(type_), type));
  WEFT_CHECK(size_levels(header, node_bytes, depth));
  return root == kHdf5Undefined ? Status{} : read_node(root, count, depth);
}

Status Hdf5Tree2::size_levels(std::uint64_t header, std::uint64_t node_bytes, std::uint64_t depth) {
  const Error broken = hdf5_error(fmt::format("{} at {}: its sizes contradict one another", kTree2Header, header));
  const std::uint64_t fixed = kTree2NodeHead + kTree2Sum;
  if (record_bytes_ == 0 || depth > kTree2DepthMax || node_bytes > limits::kHdf5BlockMax || node_bytes < fixed)
    return broken;
  const std::uint64_t in_leaf = (node_bytes - fixed) / record_bytes_;
  levels_.push_back({in_leaf, in_leaf, 0});
  for (std::uint64_t d = 1; d <= depth; ++d) {
    const Level below = levels_.back();
    Level level;
    level.pointer_bytes = file_.widths().address + count_bytes() + (d > 1 ? hdf5_width(below.subtree_max) : 0);
    if (node_bytes < fixed + level.pointer_bytes) return broken;
    level.records_max = (node_bytes - fixed - level.pointer_bytes) / (record_bytes_ + level.pointer_bytes);
    if (__builtin_mul_overflow(level.records_max + 1, below.subtree_max, &level.subtree_max) ||
        __builtin_add_overflow(level.subtree_max, level.records_max, &level.subtree_max))
      return broken;
    levels_.push_back(level);
  }
  return {};
}

Status Hdf5Tree2::read_node(std::uint64_t at, std::uint64_t count, std::size_t depth) {
  const Level& level = levels_[depth];
  if (count > level.records_max)
    return hdf5_error(
        fmt::format("{} at {}: expected at most {} records, got {}", kTree2Node, at, level.records_max, count));
  const std::uint64_t pointers = depth > 0 ? (count + 1) * level.pointer_bytes : 0;
  WEFT_TRY(const Hdf5Block bytes,
           file_.block(kTree2Node, at, kTree2NodeHead + count * record_bytes_ + pointers + kTree2Sum));
  WEFT_CHECK(Hdf5File::check_signature(kTree2Node, at, bytes, depth > 0 ? "BTIN" : "BTLF"));
  WEFT_CHECK(file_.check_sum(kTree2Node, at, bytes));
  Hdf5Fields records = file_.fields(bytes);
  records.skip(kTree2NodeHead);
  Hdf5Fields children = records.rest();
  children.skip(count * record_bytes_);
  for (std::uint64_t i = 0; i <= count; ++i) {
    if (depth > 0) {
      const std::uint64_t child = children.address(), child_count = children.number(count_bytes());
      children.skip(level.pointer_bytes - file_.widths().address - count_bytes());
      WEFT_CHECK(read_node(child, child_count, depth - 1));
    }
    if (i < count) WEFT_CHECK(record_(records.part(record_bytes_)));
  }
  return {};
}

}  // namespace

Status read_tree2(Hdf5File& file, std::uint64_t header, Hdf5Tree2Type type, const Hdf5Record& record) {
  return Hdf5Tree2(file, type, record).read(header);
}

}  // namespace weft
