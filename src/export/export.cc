#include <fmt/core.h>

#include <algorithm>

#include "export/export_target.h"
#include "export/exporter.h"
#include "export/hub_place.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

// Returns the names that the version gets in a cache. Errc::invalid: no repository of the hub has this name.
Result<HubNames> hub_names_of(Store& store, const VersionRow& row) {
  const auto repository = hub_name(row.model_name, row.kind);
  if (!repository)
    return Error{Errc::invalid, fmt::format("{}: expected a name that the hub accepts, ORG/NAME or NAME without '+', "
                                            "\"--\" and \"..\"; `weft mv` renames a model",
                                            row.model_name)};
  HubNames names{*repository, row.source.commit.empty() ? commit_of(row) : row.source.commit, {}};
  {
    WEFT_TRY(const auto snapshot, store.snapshot());
    WEFT_TRY(const ModelRow model, snapshot->model(row.model));
    WEFT_TRY(const ModelRevision main, resolve_revision(*snapshot, model, kMainRevision));
    if (main.version.id == row.id) names.refs.emplace_back(kMainRevision);
  }
  Renewed renewed(store);
  WEFT_TRY(const std::vector<std::string> tags, tags_of(renewed, row));
  for (const std::string& tag : tags)
    if (tag != kMainRevision) names.refs.push_back(tag);
  names.refs.push_back(std::to_string(row.number));
  return names;
}

}  // namespace

Result<ExportReport> export_version(Store& store, ManifestResolver& resolver, std::string_view spec,
                                    const std::string& directory, Progress& progress) {
  WEFT_TRY(const VersionRow row, version_of(store, spec));
  WEFT_TRY(const LoadedVersion version, load_version(store, resolver, row));
  const Manifest& manifest = version.tree->manifest();
  WEFT_TRY(const std::vector<SmallFile> small, sorted_small_files(store, manifest));
  WEFT_TRY(ExportTarget target, ExportTarget::open(directory));
  WEFT_CHECK(write_files(store, manifest, small, target, directory, progress));
  return ExportReport{published_files(manifest).size() + small.size(), logical_bytes(manifest)};
}

Result<ExportReport> export_as_safetensors(Store& store, ManifestResolver& resolver, std::string_view spec,
                                           const std::string& directory, Progress& progress) {
  WEFT_TRY(const VersionRow row, version_of(store, spec));
  if (row.kind == VersionKind::dataset)
    return Error{Errc::invalid, fmt::format("{}: expected a model, got a data set", spec_of(row))};
  WEFT_TRY(const LoadedVersion version, load_version(store, resolver, row));
  const Manifest& manifest = version.tree->manifest();
  const SafetensorsView& view = version.tree->view();
  WEFT_TRY(ExportTarget target, ExportTarget::open(directory));
  WEFT_CHECK(write_view(store, manifest, view, target, directory, progress));
  const auto shown = static_cast<std::uint64_t>(std::ranges::count(view.shown, true));
  return ExportReport{shown + view.made.size(), view_bytes(manifest, view)};
}

Result<HubExportReport> export_to_hub(Store& store, ManifestResolver& resolver, std::string_view spec,
                                      const std::string& cache, Progress& progress) {
  WEFT_TRY(const VersionRow row, version_of(store, spec));
  WEFT_TRY(const HubNames names, hub_names_of(store, row));
  WEFT_TRY(const LoadedVersion version, load_version(store, resolver, row));
  const Manifest& manifest = version.tree->manifest();
  WEFT_TRY(const std::vector<SmallFile> small, sorted_small_files(store, manifest));
  WEFT_TRY(const auto place, HubPlace::open(cache, names));
  WEFT_CHECK(write_files(store, manifest, small, *place, place->where(), progress));
  return HubExportReport{{published_files(manifest).size() + small.size(), logical_bytes(manifest)},
                         place->where(),
                         names.commit,
                         place->refs(),
                         place->reused_files(),
                         place->reused_bytes()};
}

}  // namespace weft
