// Runs a command under ptrace and stops it, or fails its calls, at a system call that is named by its number:
//   weft_campaign_tracer list PREFIX REPORT COMMAND…
//   weft_campaign_tracer kill PREFIX REPORT N COMMAND…
//   weft_campaign_tracer fail PREFIX REPORT N ERRNO once|on COMMAND…
// Calls are numbered from 1, over all threads, from the first one whose path begins with PREFIX; `fail` numbers only
// those that a file can make fail. `kill` sends SIGKILL before call N. `fail` answers call N with ERRNO in place of
// making it, and with `on` all later ones too. REPORT gets the name of call N, or with `list` a line for each call.
// Exits as the command does.
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "tracer_calls.h"

namespace {

using campaign::Arguments;
using campaign::Call;

enum class Mode { list, kill, fail };

struct Plan {
  Mode mode = Mode::list;
  std::string_view prefix;
  std::FILE* report = nullptr;
  unsigned long number = 0;
  int error = 0;
  bool goes_on = false;
  char** command = nullptr;
};

// Puts another value into a register of a stopped thread: the number of the call, or what it returns.
void set_registers(pid_t thread, bool skip, long result) {
#if defined(__x86_64__)
  user_regs_struct registers{};
  ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
  if (skip) registers.orig_rax = ~0ULL;
  if (!skip) registers.rax = static_cast<unsigned long long>(result);
  ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
#elif defined(__aarch64__)
  int no_call = -1;
  user_regs_struct registers{};
  iovec part = skip ? iovec{&no_call, sizeof no_call} : iovec{&registers, sizeof registers};
  if (!skip) {
    ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &part);
    registers.regs[0] = static_cast<unsigned long long>(result);
  }
  ptrace(PTRACE_SETREGSET, thread, skip ? NT_ARM_SYSTEM_CALL : NT_PRSTATUS, &part);
#endif
}

std::string read_text(pid_t thread, std::uint64_t address) {
  char text[256] = {};
  iovec here{text, sizeof text - 1};
  // A path may end right before unmapped memory. Then a shorter read succeeds.
  for (size_t length = sizeof text - 1; length > 0; length /= 2) {
    iovec there{reinterpret_cast<void*>(address), length};  // NOLINT(performance-no-int-to-ptr)
    if (process_vm_readv(thread, &here, 1, &there, 1, 0) > 0) break;
  }
  return text;
}

class Tracer {
 public:
  explicit Tracer(const Plan& plan) : plan_(plan) {}

  // The exit status of the command, as a shell has it.
  int run() {
    process_ = fork();
    if (process_ == 0) start_command();
    int status = 0;
    waitpid(process_, &status, 0);
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    ptrace(PTRACE_SETOPTIONS, process_, nullptr, options);
    ptrace(PTRACE_SYSCALL, process_, nullptr, nullptr);
    for (;;) {
      pid_t thread = waitpid(-1, &status, __WALL);
      if (thread < 0) return result_;
      handle(thread, status);
    }
  }

 private:
  [[noreturn]] void start_command() const {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    execvp(plan_.command[0], plan_.command);
    std::perror(plan_.command[0]);
    _exit(127);
  }

  void handle(pid_t thread, int status) {
    if (!WIFSTOPPED(status)) {
      failing_.erase(thread);
      if (thread == process_) result_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      return;
    }
    int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      at_call(thread);
      signal = 0;
    } else if (status >> 16 != 0 || signal == SIGSTOP || signal == SIGTRAP) {
      signal = 0;  // ptrace's own stops
    }
    ptrace(PTRACE_SYSCALL, thread, nullptr, static_cast<long>(signal));
  }

  void at_call(pid_t thread) {
    __ptrace_syscall_info info{};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
      Arguments arguments{};
      for (size_t i = 0; i < arguments.size(); ++i) arguments[i] = info.entry.args[i];
      enter(thread, info.entry.nr, arguments);
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && failing_.erase(thread) > 0) {
      set_registers(thread, false, -plan_.error);
    }
  }

  void enter(pid_t thread, std::uint64_t number, const Arguments& arguments) {
    const Call* call = campaign::find_call(number);
    std::string path;
    if (call != nullptr && call->path >= 0) path = read_text(thread, arguments[static_cast<size_t>(call->path)]);
    if (!begun_ && path.compare(0, plan_.prefix.size(), plan_.prefix) == 0) begun_ = true;
    if (!begun_) return;
    bool fallible = call != nullptr && campaign::can_fail(*call, arguments);
    if (plan_.mode == Mode::fail && !fallible) return;
    ++count_;
    bool reached = plan_.mode != Mode::list && count_ == plan_.number;
    if (plan_.mode == Mode::list || reached) describe(number, call, fallible, path);
    if (reached && plan_.mode == Mode::kill) kill(process_, SIGKILL);
    if (plan_.mode == Mode::fail && (reached || (plan_.goes_on && count_ > plan_.number))) {
      failing_.insert(thread);
      set_registers(thread, true, 0);
    }
  }

  void describe(std::uint64_t number, const Call* call, bool fallible, const std::string& path) const {
    std::string name = call != nullptr ? std::string(call->name) : "call-" + std::to_string(number);
    std::fprintf(plan_.report, "%lu %s %s %s\n", count_, fallible ? "fallible" : "other", name.c_str(), path.c_str());
    std::fflush(plan_.report);
  }

  const Plan& plan_;
  pid_t process_ = 0;
  int result_ = 1;
  unsigned long count_ = 0;
  bool begun_ = false;
  std::set<pid_t> failing_;  // threads in a call that gets an error
};

bool parse(int argc, char** argv, Plan& plan) {
  if (argc < 5) return false;
  std::string_view mode = argv[1];
  int next = 4;
  plan.prefix = argv[2];
  if (mode == "kill" || mode == "fail") plan.number = std::strtoul(argv[next++], nullptr, 10);
  if (mode == "fail") {
    if (argc < 8) return false;
    plan.error = static_cast<int>(std::strtol(argv[next++], nullptr, 10));
    plan.goes_on = std::string_view(argv[next++]) == "on";
  }
  plan.mode = mode == "kill" ? Mode::kill : mode == "fail" ? Mode::fail : Mode::list;
  plan.command = argv + next;
  plan.report = std::fopen(argv[3], "we");
  return plan.report != nullptr && next < argc && (mode == "list" || plan.number > 0);
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  if (!parse(argc, argv, plan)) {
    std::fprintf(stderr, "usage: weft_campaign_tracer list|kill|fail PREFIX REPORT [N] [ERRNO once|on] COMMAND...\n");
    return 2;
  }
  return Tracer(plan).run();
}
