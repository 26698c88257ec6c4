#include "cli/shared/mounts.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "os/programs.h"
#include "os/sys.h"
#include "publish/mounted_specs.h"
#include "weft/store/snapshot.h"

namespace weft {

std::optional<std::string> find_program(const CliEnvironment& environment, const std::string& name) {
  return find_program(name, environment.program, environment.variable("PATH").value_or(""));
}

std::string mounted_path(Store& store, std::string_view model, std::uint64_t number) {
  const auto mounts = mounts_of(store.path());
  if (!mounts.ok() || mounts->empty()) return "";
  const auto snapshot = store.snapshot();
  const auto row = snapshot.ok() ? (*snapshot)->model(model) : Result<ModelRow>(snapshot.error());
  const bool dataset = row.ok() && row->kind == VersionKind::dataset;
  return fmt::format("{}/{}/{}/{}", mounts->front().directory, dataset ? "datasets" : "models", model, number);
}

Result<std::string> spec_at(Store& store, const std::string& path) {
  std::error_code failed;
  std::string real = std::filesystem::canonical(path, failed).string();
  const bool gone = failed == std::errc::no_such_file_or_directory;
  std::error_code ignored;
  if (gone) real = std::filesystem::weakly_canonical(path, ignored).string();
  if (failed && !gone) return sys_error(failed.value(), path);
  WEFT_TRY(const auto mounts, mounts_of(store.path()));
  std::vector<std::string> directories;
  for (const WeftMount& mount : mounts) directories.push_back(mount.directory);
  WEFT_TRY(const auto snapshot, store.snapshot());
  WEFT_TRY(auto spec, mounted_spec(*snapshot, directories, real));
  if (spec && gone) WEFT_CHECK(resolve_version(*snapshot, *spec));  // the model may have another name by now
  if (gone) return sys_error(failed.value(), path);
  if (spec) return *std::move(spec);
  return Error{Errc::not_found, fmt::format("{}: expected the path of a version in a mount of {}", path, store.path())};
}

}  // namespace weft
