#include "format/dcp/dcp_metadata.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/limits.h"
#include "format/torch/pickle.h"

namespace weft {
namespace {

using Kind = Pickle::Kind;
using Value = Pickle::Value;

constexpr auto kDcpFields = std::to_array<std::string_view>({
    "state_dict_metadata",
    "storage_data",
    "size",
    "chunks",
    "offsets",
    "sizes",
    "fqn",
    "offset",
    "relative_path",
    "length",
    "transform_descriptors",
});

constexpr std::size_t field_number(std::string_view name) {
  std::size_t number = 0;
  while (kDcpFields[number] != name) ++number;
  return number;
}

// Reads one pickle. Many values of a hostile pickle may share one large part, so each part is read once.
class DcpReader {
 public:
  DcpReader(const Pickle& pickle, DcpMetadata& metadata) : pickle_(pickle), metadata_(metadata) {}

  Status read(Value top);

 private:
  using Fields = std::array<Value, kDcpFields.size()>;
  using Key = std::pair<std::string_view, const Shape*>;  // the name of an item, and its shard's begin

  Value field(Value object, std::string_view name);
  const Shape* shape(Value value);
  std::optional<Shape> read_shape(Value value) const;
  std::optional<std::string_view> text(Value value, std::size_t bytes_max) const;
  std::optional<std::uint64_t> number(Value value) const;

  void add_place(Value index, Value info);
  Status add_item(std::string_view name, Value described);
  Status add_shards(DcpItem& item, Value chunks);
  std::optional<DcpPlace> place_of(std::string_view name, const Shape* begin) const;

  const Pickle& pickle_;
  DcpMetadata& metadata_;
  std::unordered_map<Value, Fields> fields_;        // by the dict of an object's attributes
  std::unordered_map<Value, const Shape*> shapes_;  // by value; nullptr: it is no shape
  std::map<Key, DcpPlace> places_;
  std::uint64_t shards_left_ = 0;
};

Status DcpReader::read(Value top) {
  const Value described = field(top, "state_dict_metadata"), stored = field(top, "storage_data");
  if (pickle_.kind(described) != Kind::dict || pickle_.kind(stored) != Kind::dict)
    return Error{Errc::unsupported, "expected the metadata of a distributed checkpoint, got another pickle"};
  shards_left_ = pickle_.calls();
  for (const auto& [index, info] : pickle_.pairs(stored)) add_place(index, info);
  std::map<std::string_view, Value> last;
  for (const auto& [name, value] : pickle_.pairs(described))
    if (const auto known = text(name, limits::kTensorNameMax)) last.insert_or_assign(*known, value);
  for (const auto& [name, value] : last) WEFT_CHECK(add_item(name, value));
  return {};
}

// Returns an attribute of an object of a dataclass; None if it has none of this name.
Value DcpReader::field(Value object, std::string_view name) {
  if (pickle_.kind(object) != Kind::call) return Pickle::kNone;
  const Value state = pickle_.call(object).state;
  if (pickle_.kind(state) != Kind::dict) return Pickle::kNone;
  const auto [known, fresh] = fields_.try_emplace(state, Fields{});
  if (fresh)
    for (const auto& [key, value] : pickle_.pairs(state)) {
      const auto found =
          pickle_.kind(key) == Kind::text ? std::ranges::find(kDcpFields, pickle_.text(key)) : kDcpFields.end();
      if (found != kDcpFields.end()) known->second[static_cast<std::size_t>(found - kDcpFields.begin())] = value;
    }
  return known->second[field_number(name)];
}

// Returns nullptr if the value is no shape. Equal shapes have one address.
const Shape* DcpReader::shape(Value value) {
  const auto [known, fresh] = shapes_.try_emplace(value, nullptr);
  if (fresh)
    if (auto read = read_shape(value)) known->second = &*metadata_.shapes.insert(*std::move(read)).first;
  return known->second;
}

// A torch.Size: a call with a tuple of numbers; or the tuple itself.
std::optional<Shape> DcpReader::read_shape(Value value) const {
  if (pickle_.kind(value) == Kind::call) {
    const Value arguments = pickle_.call(value).arguments;
    if (pickle_.kind(arguments) != Kind::tuple) return std::nullopt;
    const std::vector<Value> inner = pickle_.items(arguments).first(2);
    if (inner.size() != 1) return std::nullopt;
    value = inner[0];
  }
  if (pickle_.kind(value) != Kind::tuple) return std::nullopt;
  Shape shape;
  for (const Value item : pickle_.items(value)) {
    const auto dimension = number(item);
    if (!dimension || shape.size() == limits::kDimensionsMax) return std::nullopt;
    shape.push_back(*dimension);
  }
  return shape;
}

// Of a longer text one byte more is kept, which shows that it is too long.
std::optional<std::string_view> DcpReader::text(Value value, std::size_t bytes_max) const {
  if (pickle_.kind(value) != Kind::text) return std::nullopt;
  return pickle_.text(value).substr(0, bytes_max + 1);
}

std::optional<std::uint64_t> DcpReader::number(Value value) const {
  if (pickle_.kind(value) != Kind::integer || pickle_.integer(value) < 0) return std::nullopt;
  return static_cast<std::uint64_t>(pickle_.integer(value));
}

// A place without a name, a file or numbers belongs to no item.
void DcpReader::add_place(Value index, Value info) {
  const auto name = text(field(index, "fqn"), limits::kTensorNameMax);
  const auto file = text(field(info, "relative_path"), limits::kPathMax);
  const auto offset = number(field(info, "offset")), length = number(field(info, "length"));
  if (!name || !file || !offset || !length || *length > limits::kVersionBytesMax) return;
  const bool transformed = field(info, "transform_descriptors") != Pickle::kNone;
  auto known = metadata_.files.find(*file);
  if (known == metadata_.files.end()) known = metadata_.files.emplace(*file, 0).first;
  known->second = std::max(known->second, *offset + *length);  // less than 2^64
  places_.insert_or_assign(Key{*name, shape(field(index, "offset"))},
                           DcpPlace{&known->first, *offset, *length, transformed});
}

std::optional<DcpPlace> DcpReader::place_of(std::string_view name, const Shape* begin) const {
  const auto found = places_.find({name, begin});
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

Status DcpReader::add_item(std::string_view name, Value described) {
  DcpItem& item = metadata_.items.emplace_back();
  item.name = name;
  const Value chunks = field(described, "chunks");
  if (pickle_.kind(chunks) == Kind::list) {
    item.shape = shape(field(described, "size"));
    if (item.shape == nullptr) item.why = "its shape is none that weft can read";
    return add_shards(item, chunks);
  }
  item.why = "a pickled value, no tensor";
  item.shards.push_back({nullptr, nullptr, place_of(item.name, nullptr)});
  return {};
}

// A tensor that was saved whole may have a place without a begin. Each shard of a sound pickle is a call of its own.
Status DcpReader::add_shards(DcpItem& item, Value chunks) {
  const std::vector<Value> all = pickle_.items(chunks).first(shards_left_ + 1);
  if (all.size() > shards_left_) return Error{Errc::unsupported, "pickle: its values are shared too often"};
  shards_left_ -= all.size();
  for (const Value chunk : all) {
    const Shape* const begin = shape(field(chunk, "offsets"));
    const Shape* const size = shape(field(chunk, "sizes"));
    if (begin == nullptr || size == nullptr) {
      item.why = "a shard whose place in the tensor weft cannot read";
      return {};
    }
    auto place = place_of(item.name, begin);
    if (!place && all.size() == 1) place = place_of(item.name, nullptr);
    item.shards.push_back({begin, size, place});
  }
  return {};
}

}  // namespace

Status read_dcp_metadata(std::string bytes, DcpMetadata& metadata) {
  Pickle pickle(std::move(bytes));
  const auto top = pickle.read_next();
  metadata.globals = pickle.globals();
  if (!top.ok()) return top.error();
  return DcpReader(pickle, metadata).read(*top);
}

}  // namespace weft
