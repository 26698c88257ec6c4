#include "publish/import_hints.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/text.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "publish/mounted_files.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHubSnapshots = "snapshots";
constexpr std::string_view kHubMain = "main";

bool is_a_directory(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// Returns the commit that refs/main names; "" if there is none.
std::string main_commit(const fs::path& repository) {
  const std::string commit(
      read_line(open_file((repository / "refs" / kHubMain).string(), O_RDONLY), kCommitDigits + 1));
  return is_commit_hash(commit) ? commit : std::string();
}

HubSnapshot snapshot_of(const fs::path& repository, const HubName& name, const std::string& commit) {
  HubSnapshot snapshot{(repository / kHubSnapshots / commit).string(), name.name, name.kind, "", ""};
  if (is_in_mount(repository.string())) return snapshot;
  if (main_commit(repository) == commit) snapshot.revision = kHubMain;
  snapshot.commit = commit;
  return snapshot;
}

Result<HubSnapshot> main_snapshot(const fs::path& repository, const HubName& name) {
  const std::string commit = main_commit(repository);
  if (!commit.empty() && is_a_directory(repository / kHubSnapshots / commit))
    return snapshot_of(repository, name, commit);
  return Error{Errc::invalid, fmt::format("{}: expected the snapshot that refs/main names, got none; name a directory "
                                          "below snapshots instead",
                                          repository.string())};
}

// True for the name of an entry that the hub's libraries make in a cache.
bool is_in_cache(std::string_view name) {
  constexpr std::string_view kRepositories[] = {"datasets--", "models--", "spaces--"};
  constexpr std::string_view kOthers[] = {".locks", "CACHEDIR.TAG", "version.txt", "version_diffusers_cache.txt"};
  return std::ranges::any_of(kRepositories, [name](std::string_view prefix) { return name.starts_with(prefix); }) ||
         std::ranges::find(kOthers, name) != std::end(kOthers);
}

// Returns the repositories in a cache, by name; empty for any other directory, such as one with files of its own.
std::vector<std::string> repositories_in(const fs::path& cache) {
  std::vector<std::string> found;
  const auto names = list_directory(cache.string());
  if (!names.ok() || !std::ranges::all_of(*names, is_in_cache)) return found;
  for (const std::string& name : *names)
    if (parse_hub_name(name) && is_a_directory(cache / name / kHubSnapshots)) found.push_back(name);
  return found;
}

}  // namespace

Result<std::optional<HubSnapshot>> hub_snapshot(const std::string& path) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  if (failed || !is_a_directory(real)) return std::optional<HubSnapshot>();
  if (const auto name = parse_hub_name(real.filename().string()); name && is_a_directory(real / kHubSnapshots)) {
    WEFT_TRY(HubSnapshot snapshot, main_snapshot(real, *name));
    return std::optional(std::move(snapshot));
  }
  const fs::path repository = real.parent_path().parent_path();
  const auto name = parse_hub_name(repository.filename().string());
  if (name && real.parent_path().filename() == kHubSnapshots)
    return std::optional(snapshot_of(repository, *name, real.filename().string()));
  const std::vector<std::string> repositories = repositories_in(real);
  if (repositories.empty()) return std::optional<HubSnapshot>();
  if (repositories.size() == 1) return hub_snapshot((real / repositories.front()).string());
  return Error{Errc::invalid, fmt::format("{}: expected one repository of the hub, got {}: name {} or another",
                                          real.string(), repositories.size(), repositories.front())};
}

std::string name_of_directory(const std::string& path) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  if (failed || !is_a_directory(real)) return {};
  std::string name = real.filename().string();
  return check_model_name(name).ok() ? name : std::string();
}

}  // namespace weft
