#include "format/hdf5/tree1.h"

#include <fmt/core.h>

#include <optional>

#include "base/limits.h"

namespace weft {
namespace {

constexpr std::string_view kTreeNode = "tree node";

class Hdf5Tree1 {
 public:
  Hdf5Tree1(Hdf5File& file, Hdf5Tree1Type type, std::size_t key_bytes, const Hdf5Leaf& leaf)
      : file_(file), type_(type), key_bytes_(key_bytes), leaf_(leaf) {}

  // `level`: the one that the parent asks for; the root says its own.
  Status read(std::uint64_t at, std::optional<std::uint64_t> level);

 private:
  Hdf5File& file_;
  const Hdf5Tree1Type type_;
  const std::size_t key_bytes_;
  const Hdf5Leaf& leaf_;
};

Status Hdf5Tree1::read(std::uint64_t at, std::optional<std::uint64_t> level) {
  const Hdf5Widths widths = file_.widths();
  const std::uint64_t head_bytes = 8 + 2 * widths.address;
  WEFT_TRY(const Hdf5Block head, file_.block(kTreeNode, at, head_bytes));
  WEFT_CHECK(Hdf5File::check_signature(kTreeNode, at, head, "TREE"));
  Hdf5Fields fields = file_.fields(head);
  fields.skip(4);
  const std::uint64_t type = fields.number(1), here = fields.number(1), count = fields.number(2);
  if (type != static_cast<std::uint64_t>(type_))
    return hdf5_error(fmt::format("{} at {}: expected type {}, got {}", kTreeNode, at, static_cast<int>(type_), type));
  if (here != level.value_or(here) || here > limits::kHdf5DepthMax)
    return hdf5_error(
        fmt::format("{} at {}: expected level {}, got {}", kTreeNode, at, level.value_or(limits::kHdf5DepthMax), here));
  WEFT_TRY(const Hdf5Block entries, file_.more(kTreeNode, at + head_bytes, count * (key_bytes_ + widths.address)));
  Hdf5Fields entry = file_.fields(entries);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Hdf5Fields key = entry.part(key_bytes_);
    const std::uint64_t child = entry.address();
    WEFT_CHECK(here == 0 ? leaf_(key, child) : read(child, here - 1));
  }
  return {};
}

}  // namespace

Status read_tree1(Hdf5File& file, std::uint64_t root, Hdf5Tree1Type type, std::size_t key_bytes, const Hdf5Leaf& leaf) {
  return Hdf5Tree1(file, type, key_bytes, leaf).read(root, std::nullopt);
}

}  // namespace weft
