#include "drafts/import_fields.h"

namespace weft {
namespace {

void fields(JsonFields& f, Durability& durability) {
  std::string name(durability_name(durability));
  f("durability", name);
  const auto read = parse_durability(name, "\"durability\"");
  if (read.ok())
    durability = *read;
  else
    f.refuse(read.error().message);
}

}  // namespace

void fields(JsonFields& f, std::pair<std::string, std::string>& metric) {
  f("key", metric.first)("value", metric.second);
}

void fields(JsonFields& f, Provenance& m) {
  f("endpoint", m.endpoint)("repository", m.repository)("revision", m.revision)("commit", m.commit);
  f("access", m.access)("listed_ns", m.listed_ns)("urls", m.urls)("left_out", m.left_out);
}

void fields(JsonFields& f, ImportOptions& m) {
  f("name", m.name)("inherit", m.inherit)("add", m.add)("dataset", m.dataset);
  auto take = static_cast<std::uint64_t>(m.take);
  f("take", take, static_cast<std::uint64_t>(Take::share));
  m.take = static_cast<Take>(take);
  fields(f, m.durability);
  f("keep", m.keep)("parents", m.parents)("find_parent", m.find_parent)("tags", m.tags);
  f("default_message", m.default_message)("source", m.source);
  f("message", m.message)("metrics", m.metrics, JsonFields::Form::row);
}

}  // namespace weft
