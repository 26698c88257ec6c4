// The inodes that are open now. All opens of one inode at one time share one OpenFile, one way of reading (the kernel
// refuses an inode that is open cached and passthrough at once), and one backing id. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "passthrough.h"
#include "weft/vfs.h"

namespace weft {

enum class ReadWay : std::uint8_t {
  cached,       // through us, kept in the page cache
  direct,       // through us, never kept
  passthrough,  // by the kernel, from backing_id
};

struct OpenAnswer {
  ReadWay way = ReadWay::cached;
  std::int32_t backing_id = 0;
};

class OpenFiles {
 public:
  OpenFiles(Vfs& vfs, Passthrough& passthrough) : vfs_(vfs), passthrough_(passthrough) {}

  // The device that backing ids belong to; before the first open.
  void set_device(int device) { device_ = device; }

  // Counts one more open of `ino`; each success is paid back by one close().
  Result<OpenAnswer> open(Ino ino);
  void close(Ino ino);

  std::shared_ptr<OpenFile> find(Ino ino) const;  // nullptr when it is not open
  // What an inode was when it was opened: it may be gone from the store by now.
  std::optional<Attr> attr(Ino ino) const;
  std::uint64_t refused() const { return refused_; }  // opens that the kernel would not pass through

 private:
  struct Entry {
    std::uint64_t opens = 0;         // guarded by OpenFiles::mutex_
    std::mutex opening;              // before OpenFiles::mutex_; one thread opens, the others wait for it
    std::shared_ptr<OpenFile> file;  // written under both, so either suffices to read; the rest alike
    Attr attr;
    OpenAnswer answer;
  };
  std::shared_ptr<Entry> enter(Ino ino);
  Status fill(Ino ino, Entry& entry);
  OpenAnswer choose(const OpenFile& file);

  Vfs& vfs_;
  Passthrough& passthrough_;
  int device_ = -1;
  std::atomic<std::uint64_t> refused_{0};
  mutable std::mutex mutex_;
  std::unordered_map<Ino, std::shared_ptr<Entry>> entries_;  // guarded by mutex_
};

}  // namespace weft
