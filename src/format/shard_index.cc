// The index of a model in shards: {"metadata": {…}, "weight_map": {tensor name: shard file name}}.
#include <fmt/core.h>

#include "base/limits.h"
#include "base/text.h"
#include "format/cursor.h"
#include "format/layout.h"
#include "format/parse_errors.h"
#include "format/strict_json.h"

namespace weft {
namespace {

using WeightMap = std::map<std::string, std::string>;

class IndexReader final : public StrictHandler {
 public:
  explicit IndexReader(WeightMap& map) : map_(map) {}
  bool has_map() const { return has_map_; }

 private:
  enum class At { document, top, map_value, map, file };

  std::string expected() const override;
  Status on_begin_object() override;
  Status on_end() override;
  Status on_key(std::string_view name) override;
  Status on_text(std::string_view value) override;

  WeightMap& map_;
  At at_ = At::document;
  bool has_map_ = false;
  std::string tensor_;
};

std::string IndexReader::expected() const {
  switch (at_) {
    case At::document:
      return "an object as the index";
    case At::top:
      return "a key of the index";
    case At::map_value:
      return "an object for \"weight_map\"";
    case At::map:
      return "a tensor's name";
    case At::file:
      return "a file name for " + tensor_label(tensor_);
  }
  return {};
}

Status IndexReader::on_begin_object() {
  switch (at_) {
    case At::document:
      at_ = At::top;
      return {};
    case At::map_value:
      at_ = At::map;
      return {};
    default:
      return unexpected("an object");
  }
}

Status IndexReader::on_end() {
  at_ = at_ == At::map ? At::top : At::document;
  return {};
}

Status IndexReader::on_key(std::string_view name) {
  if (at_ == At::map) {
    if (map_.size() >= limits::kTensorsPerFileMax)
      return Error{Errc::invalid, fmt::format("expected at most {} tensors, got more", limits::kTensorsPerFileMax)};
    tensor_ = name;
    at_ = At::file;
    return {};
  }
  if (name != "weight_map") {
    skip_value();
    return {};
  }
  map_.clear();  // of two maps the last counts
  has_map_ = true;
  at_ = At::map_value;
  return {};
}

Status IndexReader::on_text(std::string_view value) {
  if (at_ != At::file) return StrictHandler::on_text(value);
  if (value.empty() || value.size() > limits::kPathMax)
    return Error{Errc::invalid, fmt::format("{}: expected the path of a shard from the index's directory, got \"{}\"",
                                            tensor_label(tensor_), printable(value))};
  map_.insert_or_assign(tensor_, value);
  at_ = At::map;
  return {};
}

Result<WeightMap> parse_index(ByteSource& source) {
  if (source.size() > limits::kIndexJsonMax)
    return Error{Errc::invalid,
                 fmt::format("expected an index of at most {} bytes, got {}", limits::kIndexJsonMax, source.size())};
  HeaderCursor cursor(source, source.size());
  WEFT_TRY(std::string text, cursor.text(source.size()));
  if (!valid_utf8(text)) return Error{Errc::invalid, "expected an index in UTF-8, got other bytes"};
  WeightMap map;
  IndexReader reader(map);
  WEFT_CHECK(parse_json(text, limits::kJsonDepthMax, reader));
  if (!reader.has_map()) return Error{Errc::invalid, "expected a \"weight_map\", got none"};
  return map;
}

}  // namespace

Result<WeightMap> parse_shard_index(std::string_view where, ByteSource& source) {
  auto map = parse_index(source);
  if (!map.ok()) return locate(where, std::move(map).error());
  return map;
}

}  // namespace weft
