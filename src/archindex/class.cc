#include "archindex/class.h"

#include <algorithm>

#include "base/sha256.h"
#include "diskformat/flatbuffer_codec.h"

namespace weft {
namespace {

constexpr std::size_t kPartBytes = 1800;  // two rows fit a page, with their headers and the inputs of the last item

std::string part_key(Bytes key, std::size_t part) {
  return std::string(key) + static_cast<char>(part >> 8U) + static_cast<char>(part);
}

void append_number(std::vector<std::uint8_t>& out, std::uint32_t value) {
  for (; value >= 0x80; value >>= 7U) out.push_back(static_cast<std::uint8_t>(value | 0x80U));
  out.push_back(static_cast<std::uint8_t>(value));
}

// Decodes the numbers of append_number(). A read past the end or a number above UINT32_MAX sets failed().
class Numbers {
 public:
  explicit Numbers(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool done() const { return at_ == bytes_.size(); }
  bool failed() const { return failed_; }
  std::uint32_t next() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 35 && at_ < bytes_.size(); shift += 7) {
      std::uint8_t byte = bytes_[at_++];
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) {
        failed_ |= value > UINT32_MAX;
        return static_cast<std::uint32_t>(value);
      }
    }
    failed_ = true;
    return 0;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

bool append_part(const ArchPart& part, ArchClass& into) {
  into.ids += part.ids;
  Numbers numbers(part.inputs);
  for (std::size_t left = part.ids.size() / kArchKeyBytes; left > 0; --left) {
    auto item = static_cast<std::uint32_t>(into.size());
    auto& inputs = into.inputs.emplace_back();
    std::uint32_t count = numbers.next();
    if (count > item) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t before = numbers.next();
      if (before == 0 || before > item) return false;
      inputs.push_back(item - before);
    }
  }
  return numbers.done() && !numbers.failed();
}

Status put_part(Txn& txn, Bytes key, const ArchPart& part) {
  flat::Builder builder;
  auto ids = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(part.ids.data()), part.ids.size());
  auto inputs = builder.CreateVector(part.inputs.data(), part.inputs.size());
  auto payload = flat::finish(
      builder, records::CreateArchitectureItems(builder, ids, inputs, part.items, part.level_first, part.level_last));
  return put_row(txn, Table::architectures, key, RecordKind::architecture, payload);
}

Error impossible(Txn& txn) {
  return damaged(txn, "a row of architectures is none");
}

}  // namespace

ArchClass class_of(std::span<const ArchItem> items) {
  ArchClass made;
  for (const ArchItem& item : items) {
    made.ids += Bytes(reinterpret_cast<const char*>(item.id.bytes.data()), kArchKeyBytes);
    made.inputs.push_back(item.inputs);
  }
  return made;
}

std::string class_key(const ArchClass& of) {
  std::string text = "weft-class-1" + of.ids;
  return digest_key(sha256(std::as_bytes(std::span(text)))).substr(0, kArchKeyBytes);
}

std::vector<std::uint32_t> levels_of(const ArchClass& of) {
  std::vector<std::uint32_t> levels(of.size());
  for (std::size_t item = 0; item < of.size(); ++item)
    for (std::uint32_t input : of.inputs[item]) levels[item] = std::max(levels[item], levels[input] + 1);
  return levels;
}

Status put_class(Txn& txn, Bytes key, const ArchClass& of) {
  const std::vector<std::uint32_t> levels = levels_of(of);
  std::size_t parts = 0;
  for (std::uint32_t first = 0; first < of.size(); ++parts) {
    std::vector<std::uint8_t> inputs;
    std::uint32_t end = first;
    while (end < of.size() && (end - first + 1) * kArchKeyBytes + inputs.size() <= kPartBytes) {
      append_number(inputs, static_cast<std::uint32_t>(of.inputs[end].size()));
      for (std::uint32_t input : of.inputs[end]) append_number(inputs, end - input);
      ++end;
    }
    Bytes ids = Bytes(of.ids).substr(first * kArchKeyBytes, (end - first) * kArchKeyBytes);
    auto items = static_cast<std::uint32_t>(of.size());
    WEFT_CHECK(put_part(txn, part_key(key, parts), {ids, inputs, items, levels[first], levels[end - 1]}));
    first = end;
  }
  return {};
}

Status erase_class(Txn& txn, Bytes key) {
  std::vector<std::string> keys;
  WEFT_CHECK(each_entry(txn, Table::architectures, key, [&](const Entry& entry) -> Status {
    keys.emplace_back(entry.key);
    return {};
  }));
  for (const std::string& part : keys) WEFT_CHECK(txn.erase(Table::architectures, part));
  return {};
}

Result<bool> has_class(Txn& txn, Bytes key) {
  WEFT_TRY(std::optional<Bytes> value, txn.get(Table::architectures, part_key(key, 0)));
  return value.has_value();
}

Status each_part(Txn& txn, Bytes key, const std::function<Result<bool>(const ArchPart&)>& visit) {
  WEFT_TRY(Cursor cursor, txn.cursor(Table::architectures));
  WEFT_TRY(std::optional<Entry> entry, cursor.seek_exact(part_key(key, 0)));
  std::size_t items = 0;
  for (std::size_t next = 1;; ++next) {
    if (!entry) return damaged(txn, "architectures lacks a row that others name");
    WEFT_TRY(auto payload, open_row(txn, Table::architectures, entry->key, entry->value, RecordKind::architecture));
    const auto* in = flat::root<records::ArchitectureItems>(payload);
    if (in == nullptr || in->ids() == nullptr || in->ids()->size() == 0 || in->ids()->size() % kArchKeyBytes != 0 ||
        in->inputs() == nullptr)
      return impossible(txn);
    Bytes ids(reinterpret_cast<const char*>(in->ids()->data()), in->ids()->size());
    items += ids.size() / kArchKeyBytes;
    if (items > in->items()) return impossible(txn);
    WEFT_TRY(
        bool more,
        visit({ids, {in->inputs()->data(), in->inputs()->size()}, in->items(), in->level_first(), in->level_last()}));
    if (!more || items == in->items()) return {};
    WEFT_TRY(entry, cursor.next());
    if (entry && entry->key != part_key(key, next)) entry.reset();
  }
}

Result<ArchClass> need_class(Txn& txn, Bytes key) {
  ArchClass row;
  WEFT_CHECK(each_part(txn, key, [&](const ArchPart& part) -> Result<bool> {
    if (!append_part(part, row)) return damaged(txn, "a row of architectures has impossible inputs");
    return true;
  }));
  return row;
}

}  // namespace weft
