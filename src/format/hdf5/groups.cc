#include "format/hdf5/groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "format/hdf5/heap.h"
#include "format/hdf5/tree1.h"
#include "format/hdf5/tree2.h"

namespace weft {
namespace {

constexpr std::string_view kLocalHeap = "name heap";
constexpr std::string_view kSymbolNode = "symbol table node";

class Hdf5GroupReader {
 public:
  explicit Hdf5GroupReader(Hdf5File& file) : file_(file) {}

  Status read_symbol_table(const Hdf5Message& message);
  Status read_link_info(const Hdf5Message& message);
  Status add_link(std::span<const std::byte> message);
  std::vector<Hdf5Link> take() { return std::move(links_); }

 private:
  Result<Hdf5Block> read_names(std::uint64_t heap);
  Status read_symbols(std::uint64_t at, const Hdf5Block& names);
  Status add(std::string_view name, std::uint64_t header, bool hard);

  Hdf5File& file_;
  std::vector<Hdf5Link> links_;
};

Status Hdf5GroupReader::add(std::string_view name, std::uint64_t header, bool hard) {
  name = name.substr(0, limits::kTensorNameMax + 1);
  WEFT_CHECK(file_.keep_link(name.size()));
  links_.push_back({std::string(name), header, hard});
  return {};
}

Status Hdf5GroupReader::read_symbol_table(const Hdf5Message& message) {
  Hdf5Fields fields = file_.fields(message.body);
  const std::uint64_t tree = fields.address(), heap = fields.address();
  if (fields.ended()) return hdf5_short("symbol table", message.address);
  WEFT_TRY(const Hdf5Block names, read_names(heap));
  return read_tree1(file_, tree, Hdf5Tree1Type::group, file_.widths().length,
                    [&](const Hdf5Fields&, std::uint64_t child) { return read_symbols(child, names); });
}

Result<Hdf5Block> Hdf5GroupReader::read_names(std::uint64_t heap) {
  const Hdf5Widths widths = file_.widths();
  WEFT_TRY(const Hdf5Block head, file_.block(kLocalHeap, heap, 8 + 2 * widths.length + widths.address));
  WEFT_CHECK(Hdf5File::check_signature(kLocalHeap, heap, head, "HEAP"));
  Hdf5Fields fields = file_.fields(head);
  fields.skip(8);
  const std::uint64_t length = fields.length();
  fields.length();  // place of the free space
  return file_.more(kLocalHeap, fields.address(), length);
}

Status Hdf5GroupReader::read_symbols(std::uint64_t at, const Hdf5Block& names) {
  constexpr std::uint64_t kHeadBytes = 8;
  const std::uint64_t entry_bytes = 2 * file_.widths().address + 24;
  WEFT_TRY(const Hdf5Block head, file_.block(kSymbolNode, at, kHeadBytes));
  WEFT_CHECK(Hdf5File::check_signature(kSymbolNode, at, head, "SNOD"));
  Hdf5Fields fields = file_.fields(head);
  fields.skip(6);
  const std::uint64_t count = fields.number(2);
  WEFT_TRY(const Hdf5Block entries, file_.more(kSymbolNode, at + kHeadBytes, count * entry_bytes));
  for (std::uint64_t i = 0; i < count; ++i) {
    Hdf5Fields entry = file_.fields(std::span(entries).subspan(i * entry_bytes, entry_bytes));
    const std::uint64_t name_at = entry.address(), header = entry.address(), kind = entry.number(4);
    Hdf5Fields rest = file_.fields(names);
    rest.skip(name_at);
    const std::string_view text = rest.text(rest.remaining());
    const std::size_t end = text.substr(0, limits::kTensorNameMax + 1).find('\0');
    if (rest.ended() || (end == std::string_view::npos && text.size() <= limits::kTensorNameMax))
      return hdf5_error(fmt::format("{} at {}: a name is past its heap", kSymbolNode, at));
    WEFT_CHECK(add(text.substr(0, end), header, kind != 2));
  }
  return {};
}

Status Hdf5GroupReader::read_link_info(const Hdf5Message& message) {
  Hdf5Fields fields = file_.fields(message.body);
  fields.skip(1);
  fields.skip((fields.number(1) & 1U) != 0 ? 8 : 0);  // the largest number of a link
  const std::uint64_t heap_at = fields.address(), index = fields.address();
  if (fields.ended()) return hdf5_short("link info", message.address);
  if (heap_at == kHdf5Undefined || index == kHdf5Undefined) return {};
  WEFT_TRY(Hdf5Heap heap, Hdf5Heap::open(file_, heap_at));
  return read_tree2(file_, index, Hdf5Tree2Type::links_by_name, [&](Hdf5Fields record) -> Status {
    record.skip(4);  // hash of the name
    WEFT_TRY(const auto link, heap.object(record.bytes(record.remaining())));
    return add_link(link);
  });
}

Status Hdf5GroupReader::add_link(std::span<const std::byte> message) {
  Hdf5Fields fields = file_.fields(message);
  const std::uint64_t version = fields.number(1), flags = fields.number(1);
  if (version != 1) return hdf5_error(fmt::format("link: expected version 1, got {}", version));
  const bool hard = (flags & 8U) == 0 || fields.number(1) == 0;
  fields.skip((flags & 4U) != 0 ? 8 : 0);   // its number
  fields.skip((flags & 16U) != 0 ? 1 : 0);  // character set
  const std::string_view name = fields.text(fields.number(1ULL << (flags & 3U)));
  const std::uint64_t header = hard ? fields.address() : kHdf5Undefined;
  if (fields.ended()) return hdf5_error("a link is shorter than its fields");
  return add(name, header, hard);
}

}  // namespace

bool is_hdf5_group(const Hdf5Header& header) {
  using enum Hdf5MessageType;
  return header.find(layout) == nullptr &&
         (header.find(symbol_table) != nullptr || header.find(link_info) != nullptr || header.find(link) != nullptr);
}

Result<std::vector<Hdf5Link>> read_links(Hdf5File& file, const Hdf5Header& group) {
  Hdf5GroupReader reader(file);
  for (const Hdf5Message& message : group.messages()) {
    if (message.type == Hdf5MessageType::symbol_table) WEFT_CHECK(reader.read_symbol_table(message));
    if (message.type == Hdf5MessageType::link_info) WEFT_CHECK(reader.read_link_info(message));
    if (message.type == Hdf5MessageType::link) WEFT_CHECK(reader.add_link(message.body));
  }
  return reader.take();
}

}  // namespace weft
