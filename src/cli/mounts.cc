#include "cli/mounts.h"

#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/sys.h"
#include "base/text.h"

namespace weft {
namespace {

// mountinfo writes blanks and backslashes as \ooo.
std::string unescaped(std::string_view text) {
  auto octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) && octal(text[i + 3])) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

Result<std::string> real_path(const std::string& path) {
  std::error_code error;
  auto real = std::filesystem::canonical(path, error);
  if (error) return sys_error(error.value(), path);
  return real.string();
}

}  // namespace

std::vector<WeftMount> parse_mountinfo(std::string_view text) {
  std::vector<WeftMount> mounts;
  for (std::string_view line : split(text, '\n')) {
    // id parent device root DIRECTORY options [optional…] - TYPE SOURCE options
    auto dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    auto before = split(line.substr(0, dash), ' ');
    auto after = split(line.substr(dash + 3), ' ');
    if (before.size() < 6 || after.size() < 2 || after[0] != "fuse.weft") continue;
    mounts.push_back({unescaped(before[4]), unescaped(after[1])});
  }
  return mounts;
}

Result<std::vector<WeftMount>> weft_mounts() {
  std::ifstream file("/proc/self/mountinfo");
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad() || text.empty()) return Error{Errc::io, "/proc/self/mountinfo: cannot be read"};
  return parse_mountinfo(text);
}

Result<std::string> mount_point_path(const std::string& directory) {
  auto real = real_path(directory);
  if (real.ok() || real.error().code == Errc::not_found) return real;
  std::string path = directory;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  auto slash = path.rfind('/');
  std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  WEFT_TRY(std::string above, real_path(parent));
  return (above == "/" ? above : above + "/") + path.substr(slash == std::string::npos ? 0 : slash + 1);
}

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

namespace {

// argv of a program; points into `words`.
std::vector<char*> argv_of(std::vector<std::string>& words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

}  // namespace

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
