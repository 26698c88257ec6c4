#include "endpoint/served_store.h"

#include <fmt/core.h>

#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

Error no_entry(std::string_view path) {
  return Error{Errc::not_found, fmt::format("no file {}", printable(path))};
}

}  // namespace

Result<ModelRow> ServedStore::model(const HubName& repository) const {
  const Error none{Errc::not_found, fmt::format("no {} {}", kind_name(repository.kind), printable(repository.name))};
  if (!hub_name(repository.name, repository.kind)) return none;
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(ModelRow model, snapshot->model(repository.name));
  if (model.latest == 0 || model.kind != repository.kind) return none;
  return model;
}

bool ServedStore::is_taken(const HubName& repository) const {
  return model({repository.name, repository.kind == VersionKind::model ? VersionKind::dataset : VersionKind::model})
      .ok();
}

Result<ServedVersion> ServedStore::version(const ModelRow& model, std::string_view revision) const {
  if (revision.empty() || revision.size() > limits::kHubRevisionMax)
    return Error{Errc::not_found, fmt::format("{} has no revision {}", model.name, printable(revision))};
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(ModelRevision found, resolve_revision(*snapshot, model, revision));
  using Kind = ModelRevision::Kind;
  const std::string& source = found.version.source.commit;
  const bool is_part = found.version.source.is_part();
  ServedVersion version{found.version, commit_of(found.version)};
  if (is_part && found.kind == Kind::commit && revision != version.commit)
    return Error{Errc::not_found, fmt::format("{} has a part of commit {}", model.name, revision)};
  const bool may_move = found.kind == Kind::main && found.tag_ino == 0 && !source.empty();
  version.is_stand_in = may_move || (is_part && (found.kind == Kind::main || found.kind == Kind::tag));
  if (found.kind == Kind::commit) {
    version.commit = revision;
  } else if (names_ == CommitNames::source && !source.empty() && !is_part) {
    WEFT_TRY(const auto id, snapshot->with_revision(model.id, source));
    if (id == found.version.id) version.commit = source;
  }
  return version;
}

Result<bool> ServedStore::is_of_hub(const ModelRow& model) const {
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(const VersionRow newest, snapshot->version(model.id, model.latest));
  return !newest.source.commit.empty();
}

Result<ServedEntry> ServedStore::entry(const VersionRow& version, std::string_view path) const {
  const std::string_view tree = version.kind == VersionKind::dataset ? "datasets" : "models";
  const std::string directory = fmt::format("{}/{}/{}", tree, version.model_name, version.number);
  Attr attr;
  attr.ino = kRootIno;
  for (const std::string_view name : split(directory, '/')) {
    WEFT_TRY(attr, vfs_.lookup(attr.ino, name));
  }
  if (!path.empty())
    for (const std::string_view name : split(path, '/')) {
      if (attr.type != FileType::directory) return no_entry(path);
      WEFT_TRY(attr, vfs_.lookup(attr.ino, name));
    }
  ServedEntry entry{{std::string(path), attr.type == FileType::directory, attr.size, {}}, attr.ino};
  if (!entry.file.is_directory) {
    WEFT_TRY(entry.file.sha256, vfs_.sha256_of(attr.ino));
  }
  return entry;
}

}  // namespace weft
