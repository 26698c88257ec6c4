// Files in memory, without a name in any directory (memfd).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "os/sys.h"

namespace weft {

Result<Fd> memory_file(const std::string& name);  // empty; `name` is for messages
Result<Fd> memory_file(const std::string& name, std::span<const std::byte> bytes);

// A file in memory whose descriptor other users may get. They can read the file and cannot change it. The destructor
// empties it, so a process that still has it open or mapped holds no memory.
class LentMemory {
 public:
  static Result<std::unique_ptr<LentMemory>> make(const std::string& name, std::span<const std::byte> bytes);
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;
  int fd() const { return lent_.get(); }  // O_RDONLY; owned by this object

 private:
  LentMemory(Fd own, Fd lent) : own_(std::move(own)), lent_(std::move(lent)) {}
  const Fd own_;  // can shrink the file
  const Fd lent_;
};

// Returns the last 4096 bytes that a program wrote into the file; "" if it cannot be read.
std::string message_in(const Fd& file);

}  // namespace weft
