#include "weft/model/lineage.h"

#include <fmt/core.h>

#include <compare>
#include <set>

#include "base/json.h"
#include "base/text.h"

namespace weft {
namespace {

// The identity of a tensor, apart from its name.
struct Content {
  ContentId id;
  const Tensor* tensor;

  bool operator<(const Content& other) const {
    if (auto order = id <=> other.id; order != 0) return order < 0;
    if (tensor->dtype != other.tensor->dtype) return tensor->dtype < other.tensor->dtype;
    if (tensor->shape != other.tensor->shape) return tensor->shape < other.tensor->shape;
    return tensor->descr < other.tensor->descr;
  }
};

template <class Visit>
void each_content(const Manifest& manifest, const Visit& visit) {
  for (const File& file : manifest.files)
    for (const Tensor& tensor : file.tensors)
      if (const ContentId id = tensor_content(manifest, file, tensor); id.length > 0) visit(Content{id, &tensor});
}

}  // namespace

std::string edge_text(const ParentRef& parent, std::uint64_t tensors) {
  if (!parent.verified()) return "declared";
  std::string of = tensors == 0 ? std::string() : fmt::format(" of {}", tensors);
  return fmt::format("{}verified ({}{} tensor{}, {})", parent.declared ? "declared, " : "", parent.same_tensors, of,
                     tensors == 1 || (tensors == 0 && parent.same_tensors == 1) ? "" : "s",
                     human_bytes(parent.same_bytes));
}

std::string edge_json(const ParentRef& parent) {
  JsonWriter json;
  json.begin_object().member("model", std::string_view(parent.model)).member("version", parent.number);
  json.member("declared", parent.declared).member("same_tensors", parent.same_tensors);
  return json.member("same_bytes", parent.same_bytes).end_object().take();
}

std::string source_json(const Provenance& source) {
  if (source.empty()) return "null";
  JsonWriter json;
  json.begin_object();
  const auto text = [&json](std::string_view key, const std::string& value) {
    if (!value.empty()) json.member(key, std::string_view(value));
  };
  text("endpoint", source.endpoint);
  text("repository", source.repository);
  text("revision", source.revision);
  text("commit", source.commit);
  text("access", source.access);
  if (source.listed_ns != 0) text("time", utc_time(source.listed_ns));
  if (!source.urls.empty()) {
    json.key("urls").begin_array();
    for (const std::string& url : source.urls) json.value(std::string_view(url));
    json.end_array();
  }
  if (source.left_out != 0) json.member("left_out", source.left_out);
  return json.end_object().take();
}

Shared shared_tensors(const Manifest& child, const Manifest& parent) {
  std::set<Content> have;
  each_content(parent, [&](const Content& content) { have.insert(content); });
  Shared shared;
  each_content(child, [&](const Content& content) {
    if (!have.contains(content)) return;
    ++shared.tensors;
    shared.bytes += content.id.length;
  });
  return shared;
}

}  // namespace weft
