#include <map>

#include <fmt/core.h>

#include "weft/listing.h"
#include "weft/match.h"

namespace weft {
namespace {

// A live version with all that is known of it without its manifest.
struct Known {
  VersionRow row;
  FindSubject subject;
};

using TagsByNumber = std::map<std::uint64_t, std::vector<std::string>>;

FindSubject subject_of(const VersionRow& row, const ModelRow& model, const TagsByNumber& tags) {
  FindSubject subject;
  subject.model = row.model_name;
  subject.version = row.number;
  subject.time_ns = row.time_ns;
  subject.message = row.message;
  subject.metrics = row.metrics;
  if (const auto own = tags.find(row.number); own != tags.end()) subject.tags = own->second;
  if (model.latest == row.number) subject.tags.emplace_back("latest");
  for (const ParentRef& parent : row.parents)
    subject.parents.push_back(fmt::format("{}@{}", parent.model, parent.number));
  return subject;
}

Result<std::vector<Known>> live_versions(Store& store) {
  std::vector<Known> known;
  const auto add_model = [&](const ModelRow& model) -> Status {
    TagsByNumber tags;
    WEFT_CHECK(each_tag(store, model.id, [&](TagRow tag) -> Status {
      tags[tag.number].push_back(std::move(tag.name));
      return {};
    }));
    return each_version(store, model.id, [&](VersionRow row) -> Status {
      if (row.removed) return {};
      FindSubject subject = subject_of(row, model, tags);
      known.push_back({std::move(row), std::move(subject)});
      return {};
    });
  };
  WEFT_CHECK(each_model(store, add_model));
  return known;
}

Result<bool> fits(Store& store, const Query& query, Known& known) {
  if (!query.needs_manifest()) return query.matches(known.subject);
  auto loaded = load_version(store, known.row);
  if (!loaded.ok() && loaded.error().code == Errc::not_found) return false;  // removed meanwhile
  if (!loaded.ok()) return std::move(loaded).error();
  ArchGraph graph = graph_of(loaded->tree->manifest());
  known.subject.manifest = &loaded->tree->manifest();
  known.subject.graph = &graph;
  return query.matches(known.subject);
}

}  // namespace

Result<std::vector<VersionRow>> find_versions(Store& store, const Query& query, Progress& progress) {
  WEFT_TRY(std::vector<Known> known, live_versions(store));
  std::vector<VersionRow> found;
  for (Known& one : known) {
    if (progress.cancelled()) return Error{Errc::cancelled, "interrupted"};
    WEFT_TRY(bool fit, fits(store, query, one));
    if (fit) found.push_back(std::move(one.row));
  }
  return found;
}

}  // namespace weft
