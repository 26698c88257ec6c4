// The system calls that the tracer can make fail: those with a file, and the index of the path argument.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace campaign {

using Arguments = std::array<std::uint64_t, 6>;

struct Call {
  std::uint64_t number = 0;
  std::string_view name;
  int path = -1;        // the argument that is a path
  int descriptor = -1;  // the argument that is a file descriptor
};

// The call of this number; null if it is none that works on files.
const Call* find_call(std::uint64_t number);

// True if a file can make this call fail: locks of fcntl, clones of ioctl, mappings of files, nothing of standard
// streams.
bool can_fail(const Call& call, const Arguments& arguments);

}  // namespace campaign
