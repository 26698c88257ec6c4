#include <map>
#include <utility>
#include <vector>

#include "weft/programs/match.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

// Caches a manifest and a graph by outline (outline_of()). A query has one answer for all manifests of an outline, so
// fine-tunes of a model share the first manifest that was loaded.
class Outlines {
 public:
  Outlines(Store& store, ManifestResolver& resolver) : store_(store), resolver_(resolver) {}

  struct Outline {
    Manifest manifest;
    ArchGraph graph;
  };
  Result<const Outline*> of(const VersionRow& row) {
    WEFT_TRY(auto snapshot, store_.snapshot());
    WEFT_TRY(const LocalRow local, snapshot->local(row.id));
    snapshot.reset();
    if (local.outline != Digest{}) {
      if (const auto known = known_.find(local.outline); known != known_.end()) return &known->second;
    }
    WEFT_TRY(Manifest manifest, load_manifest(store_, resolver_, row));
    if (known_.size() == kKnownMax) known_.clear();
    Outline& outline = known_[local.outline];
    outline.graph = graph_of(manifest);
    outline.manifest = std::move(manifest);
    return &outline;
  }

 private:
  static constexpr std::size_t kKnownMax = 16;
  Store& store_;
  ManifestResolver& resolver_;
  std::map<Digest, Outline> known_;
};

Result<bool> fits(Outlines& outlines, const Query& query, FindSubject subject) {
  if (!query.needs_manifest()) return query.matches(subject);
  auto outline = outlines.of(subject.version);
  if (!outline.ok() && outline.error().code == Errc::not_found) return false;  // removed meanwhile
  if (!outline.ok()) return std::move(outline).error();
  subject.manifest = &(*outline)->manifest;
  subject.graph = &(*outline)->graph;
  return query.matches(subject);
}

}  // namespace

Status find_versions(Store& store, ManifestResolver& resolver, const Query& query, Progress& progress,
                     const std::function<Status(const VersionRow&)>& found) {
  Outlines outlines(store, resolver);
  const auto visit_model = [&](const ModelRow& model) -> Status {
    return each_row(store, list_versions(model.id), [&](const VersionRow& row) -> Status {
      if (row.removed) return {};
      if (progress.cancelled()) return Error{Errc::cancelled, "interrupted"};
      std::vector<std::string> tags;
      if (model.tags != 0) {
        Renewed renewed(store);
        WEFT_TRY(tags, tags_of(renewed, row));
      }
      if (model.latest == row.number) tags.emplace_back("latest");
      WEFT_TRY(const bool fit, fits(outlines, query, {row, std::move(tags)}));
      return fit ? found(row) : Status{};
    });
  };
  return each_row(store, list_models(), visit_model);
}

}  // namespace weft
