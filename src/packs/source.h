// A file on its way into the store.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "weft/progress.h"
#include "weft/publish.h"
#include "weft/result.h"

namespace weft {

// One thread. The descriptor stays the caller's.
class Source {
 public:
  using Hook = std::function<void(std::uint64_t offset)>;
  // Errc::invalid: no regular file. `after_read`, if any, is called after each read.
  static Result<Source> open(int fd, std::string_view where, Progress& progress, Hook after_read);

  const std::string& where() const { return where_; }
  std::uint64_t size() const { return static_cast<std::uint64_t>(before_.st_size); }
  std::uint64_t device() const { return before_.st_dev; }
  int fd() const { return fd_; }
  void show_to(SeenBytes seen) { show_to_ = std::move(seen); }
  void read_from(int clone) { reading_ = clone; }  // a file with the same bytes that nobody changes

  // All of `out`. Holes of a sparse file are not read. A file that became shorter is Errc::changed. Asks whether to
  // stop: Errc::cancelled. Bytes that are read for the first time count as progress.
  Status read(std::uint64_t offset, std::span<std::byte> out);
  // Names that this process gave it, and took, are no change. Errc::changed as below.
  Status look_again();
  // Errc::changed when size or times differ from what they were at open().
  Status check_unchanged() const;

 private:
  Source(int fd, std::string where, const struct stat& before, Progress& progress, Hook after_read);
  int fd_;
  int reading_;
  std::string where_;
  struct stat before_;
  Progress* progress_;
  Hook after_read_;
  SeenBytes show_to_;
  bool sparse_;             // it takes fewer blocks than its size
  std::uint64_t seen_ = 0;  // progress was told of the bytes before this
};

}  // namespace weft
