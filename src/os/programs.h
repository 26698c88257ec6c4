// Programs: how weft's find each other, run others and become others, a child that runs with the rights of a user, and
// facts about other processes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "os/sys.h"
#include "weft/result.h"
#include "weft/store/publish.h"

namespace weft {

// Returns the path of program `name`, which is to be started by that name (argv[0]). A static build is weft and
// mount.weft in one file, and finds itself for either. Else this searches the directory of `own_program`, the sbin/ and
// bin/ beside it, the directories of `path` (as $PATH), /usr/sbin and /sbin. Pass "" if the own program is unknown.
// Installed programs lie in one directory or in bin/ and sbin/; a build folder has links to its programs beside each of
// them (cmake/install.cmake).
std::optional<std::string> find_program(const std::string& name, const std::string& own_program,
                                        const std::string& path);
// Returns the path of this program's file, also after another file took its place. "": unknown.
std::string own_program();
// Sends SIGTERM to this process, as another process would. Any thread.
void terminate_own_process();

// A program with the rights of a user, and a guard above it, which keeps the rights of this process. The caller keeps
// and closes the descriptors. The program gets none but its standard ones.
struct ChildProgram {
  std::string program;             // its path
  std::vector<std::string> words;  // argv
  UserIds user{};                  // used if this process is root
  int directory = -1;              // its working directory
  int input = -1, output = -1;     // its standard input and output
  int lock = -1;                   // stays open in the guard: the lock of this open file description lives as long
};

// Starts the guard, and the program as its child, in a session of their own. The program gets this process's
// environment, but not root's: users can read the environment of their processes. Its standard error is /dev/null. If
// it cannot run, it exits with 127. The guard ends with the program. It kills a program that its user has stopped by a
// signal or traces, since others wait for it. Returns the guard.
Result<pid_t> start_program(ChildProgram child);

// Runs the program at a path and waits for it. `words`: the name that it is started by, then its arguments. Returns its
// exit code, or 128 + the signal that ended it.
Result<int> run_program(const std::string& program, std::vector<std::string> words);
// Stores the program's stderr in `errors` (up to 4 KiB); it does not appear on this process's stderr.
Result<int> run_program(const std::string& program, std::vector<std::string> words, std::string& errors);
// Replaces this process by the program (exec). Returns only after a failure.
Error become_program(const std::string& program, std::vector<std::string> words);

// A program that runs beside this process, with its rights. It gets SIGTERM when the thread that started it ends, and
// has no descriptors but its standard ones.
class SideProgram {
 public:
  // Names and values that the environment of the program has, beside those of this process.
  using Variables = std::vector<std::pair<std::string, std::string>>;
  // Starts the program at a path. `words`: argv. Its standard error is `errors`, which the caller keeps; its standard
  // input and output are /dev/null.
  static Result<SideProgram> start(const std::string& program, std::vector<std::string> words,
                                   const Variables& variables, int errors);
  // Starts a command that /bin/sh runs, with the standard descriptors of this process.
  static Result<SideProgram> start_shell(const std::string& command, const Variables& variables);

  int fd() const { return ended_.get(); }  // readable when the program has ended
  void send(int signal) const;             // not after wait()
  // Waits for the end. Returns "" after exit code 0; else how the program ended, as "ended with exit code 3".
  Result<std::string> wait() const;

 private:
  struct Start;
  static Result<SideProgram> start(Start start);
  SideProgram(std::string name, pid_t pid, Fd ended) : name_(std::move(name)), pid_(pid), ended_(std::move(ended)) {}
  std::string name_;
  pid_t pid_;
  Fd ended_;
};

// A command that runs in the foreground of this process, as under timeout(1). It has the streams, the environment and
// the process group of this process. While this object lives, this thread and the threads that it starts take no
// SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2: wait() passes them on. The kernel sends a signal of the
// terminal to the command as well, so this process does not.
class FrontCommand {
 public:
  // Looks for a command without a slash along PATH. Errc::not_found: there is none. Any other error: it cannot run.
  static Result<std::unique_ptr<FrontCommand>> start(std::vector<std::string> words);
  FrontCommand(const FrontCommand&) = delete;
  FrontCommand& operator=(const FrontCommand&) = delete;
  ~FrontCommand();

  // Waits for the end of the command, at most so long. Returns its exit code, or 128 + the signal that ended it;
  // nothing while it runs. Call it no more after the end.
  Result<std::optional<int>> wait(std::chrono::milliseconds longest);

 private:
  FrontCommand() = default;
  Status spawn(std::vector<std::string>& words);
  void pass_on_signals() const;

  std::string name_;
  sigset_t before_{};  // the signal mask of this thread before
  Fd signals_;
  Fd ended_;
  pid_t pid_ = 0;
};

// Overwrites each command-line argument of this process that equals `word`, which holds a secret: other users can read
// the arguments of a process. Best effort; call it before any thread starts.
void hide_argument(std::string_view word);

// True if the guard runs. Collects it if it has ended.
bool is_running(pid_t guard);

void interrupt_program(pid_t guard);  // sends the program SIGINT, and SIGKILL 10 s later

// True if a SIGKILL is pending for the thread, as after a signal whose default action ends the process. False also if
// /proc cannot be read.
bool is_being_killed(pid_t thread);
// True if a SIGKILL, or a signal by which users end programs (SIGINT, SIGTERM, SIGHUP, SIGQUIT), is pending for the
// thread. False also if /proc cannot be read.
bool is_told_to_end(pid_t thread);

// True if the thread waits in a page fault of its own code, not of a system call. Needs the right to trace the thread:
// without it the function returns false.
bool is_in_page_fault(pid_t thread);

}  // namespace weft
