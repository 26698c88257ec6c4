// What a mounted tree knows of assembled files: whether any are made, and if not, why. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "assembly/assembly.h"
#include "base/json.h"
#include "reading/open_file.h"
#include "weft/vfs.h"

namespace weft {

// What opening a published file needs, and takes long to find out from its version: kept from one open to the next.
struct PublishedFile {
  std::shared_ptr<const AssembledSource> source;
  std::vector<std::uint64_t> borders;         // where its tensors begin, ascending
  mutable std::atomic<bool> has_pack{false};  // it was a pack of its own when it was last opened
};

class VfsAssembly {
 public:
  explicit VfsAssembly(Store& store) : store_(store) {}

  void start(const AssemblyOptions& options, std::function<void(Ino)> tell);
  void start_nothing(std::string reason);
  void stop();

  // `file`, which is `known.file`, as one file if there is one, else composed of its blobs, and assembled later.
  Result<std::shared_ptr<OpenFile>> open(const PublishedFile& file, Remembered known, Prefetcher* prefetcher);
  bool has(const AssembledSource& source) const;

  // The member "assembly" of .weft/status.
  void write_status(JsonWriter& json) const;

 private:
  Result<std::shared_ptr<Assembly>> make(const AssemblyOptions& options, std::function<void(Ino)> tell);
  std::shared_ptr<Assembly> current() const;

  Store& store_;
  mutable std::mutex mutex_;
  std::shared_ptr<Assembly> assembly_;                  // guarded by mutex_
  std::string reason_ = "the mount is not set up yet";  // guarded by mutex_; why there is none
};

}  // namespace weft
