#include "cli/shared/mounts.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/argv.h"
#include "base/text.h"
#include "os/sys.h"

namespace weft {
std::optional<std::string> find_program(const CliEnvironment& environment, const std::string& name) {
  std::string along = environment.variable("PATH").value_or("") + ":/usr/sbin:/sbin";
  if (const std::string& own = environment.program_directory; !own.empty())
    along = own + ":" + own + "/../sbin:" + along;
  for (std::string_view directory : split(along, ':')) {
    if (directory.empty()) continue;
    std::string path = std::string(directory) + "/" + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return std::nullopt;
}

Result<int> run_program(std::vector<std::string> words) {
  std::vector<char*> argv = argv_of(words);
  pid_t child = 0;
  if (int error = ::posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ); error != 0)
    return sys_error(error, words[0]);
  int status = 0;
  if (::waitpid(child, &status, 0) < 0) return sys_error(errno, words[0]);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Error become_program(std::vector<std::string> words) {
  ::execv(words[0].c_str(), argv_of(words).data());
  return sys_error(errno, words[0]);
}

}  // namespace weft
