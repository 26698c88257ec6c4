#include "cli/shared/mounts.h"

#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/argv.h"
#include "base/text.h"
#include "os/memory_file.h"
#include "os/programs.h"
#include "os/sys.h"
#include "publish/mounted_specs.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

Result<int> run_with_stderr(const std::string& program, std::vector<std::string>& words, int errors) {
  std::vector<char*> argv = argv_of(words);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return sys_error(failed, program);
  int status = 0;
  if (::waitpid(child, &status, 0) < 0) return sys_error(errno, program);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::optional<std::string> find_program(const CliEnvironment& environment, const std::string& name) {
  return find_program(name, environment.program, environment.variable("PATH").value_or(""));
}

Result<int> run_program(const std::string& program, std::vector<std::string> words) {
  return run_with_stderr(program, words, STDERR_FILENO);
}

Result<int> run_program(const std::string& program, std::vector<std::string> words, std::string& errors) {
  WEFT_TRY(const Fd file, memory_file("stderr of " + program));
  WEFT_TRY(const int code, run_with_stderr(program, words, file.get()));
  errors = message_in(file);
  return code;
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

Error become_program(const std::string& program, std::vector<std::string> words) {
  ::execv(program.c_str(), argv_of(words).data());
  return sys_error(errno, program);
}

}  // namespace weft
