#include "peers/swarm/version_source.h"

#include <utility>

#include "base/log.h"
#include "weft/store/walk.h"

namespace weft {

std::string VersionSource::find(const Digest& manifest) {
  if (std::string node = publisher(manifest); !node.empty() && is_member_(node)) return node;
  for (std::string& node : directory_.find(manifest))
    if (is_member_(node)) return std::move(node);
  return "";
}

// Returns "" if no version has the manifest, or its publisher is not known.
std::string VersionSource::publisher(const Digest& manifest) {
  const Deadline begun = time_.now();
  {
    const MutexLock lock(mutex_);
    if (const auto known = publishers_.find(manifest); known != publishers_.end()) return known->second;
    if (begun < search_at_) return "";
  }
  std::string found = search(manifest);
  const Deadline now = time_.now();
  const MutexLock lock(mutex_);
  if (found.empty()) {
    search_at_ = now + kPauseMin + kPauseParts * (now - begun);
    return found;
  }
  if (publishers_.size() >= kPublishersMax) publishers_.clear();
  publishers_.emplace(manifest, found);
  return found;
}

std::string VersionSource::search(const Digest& manifest) {
  std::string found;
  const auto compare = [&](const VersionRow& row) -> Status {
    if (!row.removed && row.manifest == manifest) found = row.publisher;
    return {};
  };
  const Status walked = each_row(
      store_, list_models(), [&](const ModelRow& model) { return each_row(store_, list_versions(model.id), compare); });
  if (!walked.ok()) log_warning("the source of a swarm is not found: {}", walked.error().message);
  return found;
}

}  // namespace weft
