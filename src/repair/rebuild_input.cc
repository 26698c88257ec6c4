#include "repair/rebuild_input.h"

#include <memory>

#include <fmt/core.h>

namespace weft {

bool is_own(const RebuildInput& input, const VersionRow& version) {
  return !input.node.empty() && version.publisher == input.node;
}

bool may_lack(const RebuildInput& input, const VersionRow& version) {
  return !version.publisher.empty() && !is_own(input, version);
}

Result<VersionContent> read_content(const RebuildInput& input, const VersionRow& version) {
  WEFT_TRY(std::shared_ptr<const ManifestReader> manifest, input.manifests.open(version.manifest));
  return input.decode(manifest->bytes());
}

bool is_damage(const Error& error) {
  return error.code == Errc::corrupt || error.code == Errc::not_found;
}

Status tell(FsckReport& report, Status status, const std::string& what) {
  if (status.ok() || !is_damage(status.error())) return status;
  report.problems.push_back(fmt::format("{}: {}", what, status.error().message));
  return {};
}

}  // namespace weft
