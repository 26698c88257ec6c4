// The log of this process, in a file of a test.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/log.h"
#include "testing.h"

namespace weft::testing {

// While this object lives, the lines of these levels go to its file.
class LogFile {
 public:
  explicit LogFile(std::string_view levels) { must(log_setup(path_, levels, "test")); }
  ~LogFile() { must(log_setup("", "info", "test")); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  const std::string& path() const { return path_; }
  bool has(std::string_view part) const { return count(part) != 0; }
  std::size_t count(std::string_view part) const {
    log_flush();
    const std::string text = read_text(path_);
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
    return count;
  }

 private:
  TempDir directory_;
  std::string path_ = directory_ / "log";
};

}  // namespace weft::testing
