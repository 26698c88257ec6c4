// Programs: how weft's find each other, a child that runs with the rights of a user, and facts about other processes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "weft/result.h"
#include "weft/store/publish.h"

namespace weft {

// Returns the path of program `name`. Searches `own_directory`, the bin/ and sbin/ beside it, the directories of `path`
// (as $PATH), /usr/sbin and /sbin. Pass "" if the own directory is unknown.
std::optional<std::string> find_program(const std::string& name, const std::string& own_directory,
                                        const std::string& path);
std::string own_program_directory();  // "" if unknown

// A program that this process starts as its child, with the rights of a user. The descriptors stay the caller's.
struct ChildProgram {
  std::string program;             // its path
  std::vector<std::string> words;  // argv
  UserIds user{};                  // used if this process is root
  int directory = -1;              // its working directory
  int input = -1, output = -1;     // its standard input and output
  int lock = -1;                   // stays open in it: the lock of this open file description lives as long
};

// Starts the program in a session of its own. It gets this process's environment, but not root's: users can read the
// environment of their processes. If it cannot run, the child exits with 127.
Result<pid_t> start_program(ChildProgram child);

// True if the child runs. Collects it if it has ended. Kills it if a signal has stopped it.
bool is_running(pid_t child);

void interrupt_program(pid_t child);  // SIGINT

// True if a SIGKILL is pending for the thread, as after a signal whose default action ends the process. False also if
// /proc cannot be read.
bool is_being_killed(pid_t thread);

}  // namespace weft
