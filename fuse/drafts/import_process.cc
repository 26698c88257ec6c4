#include "fuse/drafts/import_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <grp.h>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/argv.h"
#include "os/sys.h"

namespace weft {
namespace {

std::vector<std::string> words_of(const ImportCommandLine& line) {
  std::vector<std::string> words{line.program, "import",   "--json", "--quiet", "--move",
                                 "--store",    line.store, "--name", line.model};
  if (line.linked) words.emplace_back("--linked");
  if (line.trust_store) words.emplace_back("--trust-store");
  const auto add = [&words](const char* option, const std::string& value) {
    if (!value.empty()) words.push_back(std::string(option) + "=" + value);
  };
  add("--tag", line.tag);
  for (const std::string& tag : line.facts.tags) add("--tag", tag);
  for (const std::string& parent : line.facts.parents) add("--parent", parent);
  for (const auto& [key, value] : line.facts.metrics) add("--metric", key + "=" + value);
  add("--inherit", line.facts.inherit);
  add("--message", line.facts.message);
  add("--durability", line.facts.durability);
  if (line.facts.keep != 0) add("--keep", fmt::format("{}", line.facts.keep));
  words.emplace_back("--");
  words.emplace_back(".");
  return words;
}

// Runs in the child of a process with threads: system calls only. Users can read the environment of their processes, so
// the import does not get root's.
[[noreturn]] void become(const char* program, char* const* words, const UserIds& user, const ImportEnds& ends) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  std::array<char*, 1> nothing{};
  const bool own = ::geteuid() == 0 && user.uid != 0;
  const bool ready = ::fchdir(ends.content) == 0 && ::dup2(ends.answer, STDOUT_FILENO) >= 0 &&
                     ::fcntl(ends.lock, F_SETFD, 0) == 0 &&
                     (::geteuid() != 0 || (::setgroups(user.groups.size(), user.groups.data()) == 0 &&
                                           ::setgid(user.gid) == 0 && ::setuid(user.uid) == 0));
  if (ready) ::execve(program, words, own ? nothing.data() : environ);
  ::_exit(127);
}

}  // namespace

Result<pid_t> start_import(const ImportCommandLine& line, const UserIds& user, const ImportEnds& ends) {
  if (::flock(ends.lock, LOCK_EX | LOCK_NB) != 0) return sys_error(errno, "locking a draft");
  std::vector<std::string> words = words_of(line);
  const std::vector<char*> argv = argv_of(words);
  const pid_t child = ::fork();
  if (child == 0) become(line.program.c_str(), argv.data(), user, ends);
  if (child < 0) return sys_error(errno, "starting an import");
  return child;
}

}  // namespace weft
