#include "os/programs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/argv.h"
#include "base/text.h"
#include "os/memory_file.h"
#include "os/sys.h"
#include "os/unix_socket.h"

namespace weft {
namespace {

constexpr long kGuardPauseNs = 200'000'000;  // between two checks that nobody traces the program
constexpr int kPausesToKill = 50;            // from SIGINT to SIGKILL
constexpr int kKillsToStop = 10;             // then a thread that its tracer stops is in its last stop
// Fields of /proc/PID/status. The name of the process stands before them, without line ends.
constexpr std::string_view kState = "\nState:\t";
constexpr std::string_view kTracer = "\nTracerPid:\t";
constexpr std::string_view kDeleted = " (deleted)";  // what the kernel adds to the path of a file without a name

bool is_in_this_file([[maybe_unused]] std::string_view name) {
#ifdef WEFT_STATIC
  return name == "weft" || name == "mount.weft";
#else
  return false;
#endif
}

// The functions up to guard() run in a child of a process with threads: they make system calls only.
bool takes_rights(const UserIds& user) {
  return ::geteuid() != 0 || (::setgroups(user.groups.size(), user.groups.data()) == 0 && ::setgid(user.gid) == 0 &&
                              ::setuid(user.uid) == 0);
}

[[noreturn]] void become(const ChildProgram& child, char* const* words) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::array<char*, 1> nothing{};
  const bool own = ::geteuid() == 0 && child.user.uid != 0;
  const int nowhere = ::open("/dev/null", O_RDWR);
  // A change of rights clears the signal of the guard's death.
  const bool ready = ::fchdir(child.directory) == 0 && ::dup2(child.input, STDIN_FILENO) >= 0 &&
                     ::dup2(child.output, STDOUT_FILENO) >= 0 && ::dup2(nowhere, STDERR_FILENO) >= 0 &&
                     ::close_range(STDERR_FILENO + 1, ~0U, 0) == 0 && takes_rights(child.user) &&
                     ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
  if (ready) ::execve(child.program.c_str(), words, own ? nothing.data() : environ);
  ::_exit(127);
}

// A path below /proc, made without an allocation.
class ProcPath {
 public:
  // /proc/PID/NAME; `name` is short.
  ProcPath(pid_t process, std::string_view name) {
    char* const digits = std::copy_n("/proc/", 6, text_.data());
    char* const slash = std::to_chars(digits, text_.data() + 20, process).ptr;
    *slash = '/';
    std::copy(name.begin(), name.end(), slash + 1);
  }
  const char* get() const { return text_.data(); }

 private:
  std::array<char, 64> text_{};
};

// The beginning of a status file of /proc: empty if it cannot be opened.
class StatusText {
 public:
  StatusText(int directory, const char* path) {
    const int file = ::openat(directory, path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? 0 : ::read(file, text_.data(), text_.size());
    if (file >= 0) ::close(file);
    size_ = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  // Returns the first character of a value. 0: the file lacks the field. `field`: with a line end before it.
  char first_of(std::string_view field) const {
    const std::string_view lines(text_.data(), size_);
    const auto at = lines.find(field);
    return at == std::string_view::npos || at + field.size() >= size_ ? '\0' : lines[at + field.size()];
  }

 private:
  std::array<char, 1024> text_{};
  std::size_t size_ = 0;
};

bool is_traced(pid_t program) {
  const char tracer = StatusText(AT_FDCWD, ProcPath(program, "status").get()).first_of(kTracer);
  return tracer != '\0' && tracer != '0';
}

// `stopped`: a thread in a stop of its tracer counts as dead.
bool is_dead(int tasks, std::string_view thread, bool stopped) {
  std::array<char, 32> path{};
  if (thread.size() > 20) return false;
  std::copy_n("/status", 8, std::copy(thread.begin(), thread.end(), path.data()));
  const char state = StatusText(tasks, path.data()).first_of(kState);
  return state == 'Z' || state == 'X' || (stopped && state == 't');
}

// True if all threads of a child are dead, although its tracer has not collected them. `killed`: SIGKILL was sent a
// while ago, so a thread that its tracer stops is in the stop before its end, and runs no code of the program any more.
bool is_dead(pid_t program, bool killed) {
  const int tasks = ::open(ProcPath(program, "task").get(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (tasks < 0) return false;
  bool dead = true;
  alignas(dirent64) std::array<char, 4096> entries{};
  for (long got = 1; dead && got > 0;) {
    got = ::syscall(SYS_getdents64, tasks, entries.data(), entries.size());
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      if (entry->d_name[0] != '.') dead = dead && is_dead(tasks, entry->d_name, killed);
      at += entry->d_reclen;
    }
    dead = dead && got >= 0;
  }
  ::close(tasks);
  return dead;
}

// True once the program has ended. The end of a traced program reaches its parent only when the tracer has collected
// it, which may be never.
bool has_ended(pid_t program, int kills) {
  int status = 0;
  const pid_t changed = ::waitpid(program, &status, WNOHANG | WUNTRACED);
  if (changed > 0 && WIFSTOPPED(status)) ::kill(program, SIGKILL);
  if (changed == 0) return is_traced(program) && is_dead(program, kills > kKillsToStop);
  return changed < 0 || !WIFSTOPPED(status);
}

[[noreturn]] void guard(const ChildProgram& child, char* const* words) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::setsid();
  const pid_t program = ::fork();
  if (program == 0) become(child, words);
  if (program < 0 || ::dup2(child.lock, 0) < 0 || ::close_range(1, ~0U, 0) != 0) ::_exit(127);
  sigset_t heard;
  ::sigemptyset(&heard);
  ::sigaddset(&heard, SIGCHLD);
  ::sigaddset(&heard, SIGINT);
  int kills = 0;
  for (int pauses = 0; !has_ended(program, kills);) {  // pauses since SIGINT
    const timespec pause{0, kGuardPauseNs};
    const bool interrupted = ::sigtimedwait(&heard, nullptr, &pause) == SIGINT;
    if (interrupted && pauses == 0) ::kill(program, SIGINT);
    if (interrupted || pauses > 0) ++pauses;
    if (pauses <= kPausesToKill && !is_traced(program)) continue;
    ::kill(program, SIGKILL);
    ++kills;
  }
  ::_exit(0);
}

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

// Returns the environment of this process with other values of these variables.
std::vector<std::string> environment_with(const SideProgram::Variables& variables) {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view name = std::string_view(*line).substr(0, std::string_view(*line).find('='));
    if (std::ranges::find(variables, name, [](const auto& one) { return std::string_view(one.first); }) ==
        variables.end())
      lines.emplace_back(*line);
  }
  for (const auto& [name, value] : variables) lines.push_back(fmt::format("{}={}", name, value));
  return lines;
}

sigset_t passed_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) ::sigaddset(&set, signal);
  return set;
}

// True if one of the signals waits for the thread or its process.
bool has_pending(pid_t thread, std::initializer_list<int> signals) {
  std::uint64_t wanted = 0;
  for (const int signal : signals) wanted |= std::uint64_t{1} << static_cast<unsigned>(signal - 1);
  std::ifstream status(fmt::format("/proc/{}/status", thread));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigPnd:\t") && !line.starts_with("ShdPnd:\t")) continue;
    std::uint64_t pending = 0;
    std::from_chars(line.data() + 8, line.data() + line.size(), pending, 16);
    if ((pending & wanted) != 0) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> find_program(const std::string& name, const std::string& own_program,
                                        const std::string& path) {
  if (is_in_this_file(name) && ::access(own_program.c_str(), X_OK) == 0) return own_program;
  std::string along = path + ":/usr/sbin:/sbin";
  if (const std::string own = std::filesystem::path(own_program).parent_path().string(); !own.empty())
    along = own + ":" + own + "/../sbin:" + own + "/../bin:" + along;
  for (const std::string_view directory : split(along, ':')) {
    if (directory.empty()) continue;
    std::string candidate = std::string(directory) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

void terminate_own_process() {
  ::kill(::getpid(), SIGTERM);
}

std::string own_program() {
  std::error_code unknown;
  std::string path = std::filesystem::read_symlink("/proc/self/exe", unknown).string();
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

Result<pid_t> start_program(ChildProgram child) {
  const std::vector<char*> argv = argv_of(child.words);
  const pid_t pid = ::fork();
  if (pid == 0) guard(child, argv.data());
  if (pid < 0) return sys_error(errno, "starting " + child.program);
  return pid;
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

Error become_program(const std::string& program, std::vector<std::string> words) {
  ::execv(program.c_str(), argv_of(words).data());
  return sys_error(errno, program);
}

struct SideProgram::Start {
  std::string program;
  std::vector<std::string> words, environment;
  bool is_silent = false;  // the standard descriptors are /dev/null, and `errors`
  int errors = -1;

  // Runs in a child of a process with threads: it makes system calls only.
  [[noreturn]] void become(char* const* argv, char* const* variables, pid_t parent) const {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);  // the parent ended before prctl()
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int nowhere = is_silent ? ::open("/dev/null", O_RDWR) : -1;
    const bool ready = !is_silent || (::dup2(nowhere, STDIN_FILENO) >= 0 && ::dup2(nowhere, STDOUT_FILENO) >= 0 &&
                                      ::dup2(errors, STDERR_FILENO) >= 0);
    if (ready && ::close_range(STDERR_FILENO + 1, ~0U, 0) == 0) ::execve(program.c_str(), argv, variables);
    ::_exit(127);
  }
};

Result<SideProgram> SideProgram::start(Start start) {
  const std::vector<char*> argv = argv_of(start.words);
  const std::vector<char*> variables = argv_of(start.environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) start.become(argv.data(), variables.data(), parent);
  if (pid < 0) return sys_error(errno, "starting " + start.program);
  Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (ended.valid()) return SideProgram(std::move(start.program), pid, std::move(ended));
  const Error error = sys_error(errno, "waiting for " + start.program);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return error;
}

Result<SideProgram> SideProgram::start(const std::string& program, std::vector<std::string> words,
                                       const Variables& variables, int errors) {
  return start({program, std::move(words), environment_with(variables), true, errors});
}

Result<SideProgram> SideProgram::start_shell(const std::string& command, const Variables& variables) {
  return start({"/bin/sh", {"sh", "-c", command}, environment_with(variables)});
}

void SideProgram::send(int signal) const {
  ::kill(pid_, signal);
}

Result<std::string> SideProgram::wait() const {
  int status = 0;
  if (retry([&] { return ::waitpid(pid_, &status, 0); }) < 0) return sys_error(errno, "waiting for " + name_);
  if (status == 0) return std::string();
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

Result<std::unique_ptr<FrontCommand>> FrontCommand::start(std::vector<std::string> words) {
  std::unique_ptr<FrontCommand> out(new FrontCommand);
  out->name_ = words.front();
  const sigset_t passed = passed_signals();
  ::pthread_sigmask(SIG_BLOCK, &passed, &out->before_);
  out->signals_ = Fd(::signalfd(-1, &passed, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!out->signals_.valid()) return sys_error(errno, out->name_ + ": signalfd");
  WEFT_CHECK(out->spawn(words));
  return out;
}

// The command inherits neither the ignored SIGXFSZ (survive_size_limit()) nor the raised limit on open files.
Status FrontCommand::spawn(std::vector<std::string>& words) {
  sigset_t usual;
  ::sigemptyset(&usual);
  ::sigaddset(&usual, SIGXFSZ);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &before_);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const UsualFileLimit usual_limit;
  const int failed = ::posix_spawnp(&pid_, name_.c_str(), nullptr, &attributes, argv_of(words).data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) return sys_error(failed, name_);
  ended_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  return ended_.valid() ? Status{} : Status{sys_error(errno, name_ + ": pidfd_open")};
}

Result<std::optional<int>> FrontCommand::wait(std::chrono::milliseconds longest) {
  const auto until = std::chrono::steady_clock::now() + longest;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    std::array<pollfd, 2> entries{pollfd{signals_.get(), POLLIN, 0}, pollfd{ended_.get(), POLLIN, 0}};
    wait_for(entries, std::max(left, std::chrono::milliseconds(0)));
    if (entries[0].revents != 0) pass_on_signals();
    if (entries[1].revents != 0) break;
    if (left.count() <= 0) return std::optional<int>();
  }
  int status = 0;
  if (retry([&] { return ::waitpid(pid_, &status, 0); }) < 0) return sys_error(errno, name_ + ": wait");
  return std::optional(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

// A code above 0 means that the kernel sent the signal: the terminal did, to the whole process group.
void FrontCommand::pass_on_signals() const {
  signalfd_siginfo signal{};
  while (retry([&] { return ::read(signals_.get(), &signal, sizeof signal); }) == sizeof signal)
    if (signal.ssi_code <= 0) ::kill(pid_, static_cast<int>(signal.ssi_signo));
}

FrontCommand::~FrontCommand() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

// /proc/self/stat: the fields 48 and 49, counted from 1, are the addresses of the arguments in the memory of this
// process. The second field is the program's name in parentheses, which may have blanks.
void hide_argument(std::string_view word) {
  constexpr std::size_t kBegin = 48 - 3, kEnd = 49 - 3;
  const auto text = read_kernel_file("/proc/self/stat", 16U << 10U);
  if (!text.ok() || word.empty()) return;
  const std::string_view line = *text;
  const auto name_end = line.rfind(") ");
  if (name_end == std::string_view::npos) return;
  const auto fields = split(line.substr(name_end + 2), ' ');
  if (fields.size() <= kEnd) return;
  const auto begin = parse_u64(fields[kBegin]), end = parse_u64(trimmed(fields[kEnd], "\n"));
  if (!begin || !end || *begin == 0 || *begin >= *end) return;
  auto* at = reinterpret_cast<char*>(*begin);         // NOLINT(performance-no-int-to-ptr)
  auto* const after = reinterpret_cast<char*>(*end);  // NOLINT(performance-no-int-to-ptr)
  while (at < after) {
    char* const stop = std::find(at, after, '\0');
    if (std::string_view(at, static_cast<std::size_t>(stop - at)) == word) std::fill(at, stop, 'x');
    at = stop + 1;
  }
}

bool is_running(pid_t guard) {
  return ::waitpid(guard, nullptr, WNOHANG) == 0;
}

void interrupt_program(pid_t guard) {
  ::kill(guard, SIGINT);
}

bool is_being_killed(pid_t thread) {
  return has_pending(thread, {SIGKILL});
}

bool is_told_to_end(pid_t thread) {
  return has_pending(thread, {SIGKILL, SIGINT, SIGTERM, SIGHUP, SIGQUIT});
}

// The file has -1 in place of the number of a system call.
bool is_in_page_fault(pid_t thread) {
  std::ifstream file(fmt::format("/proc/{}/syscall", thread));
  std::string call;
  return static_cast<bool>(file >> call) && call == "-1";
}

}  // namespace weft
