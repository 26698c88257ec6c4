// The assembled files of a mounted tree: whether files are assembled and, if not, why. Any thread.
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
#include "weft/programs/vfs.h"

namespace weft {

// Facts for opening a published file. They are slow to compute from the version, so they are cached between opens.
struct PublishedFile {
  std::shared_ptr<const AssembledSource> source;
  std::vector<std::uint64_t> borders;         // offsets of its tensors, ascending
  mutable std::atomic<bool> has_pack{false};  // at the last open the file was a pack of its own
};

class VfsAssembly {
 public:
  explicit VfsAssembly(Store& store) : store_(store) {}

  void start(const AssemblyOptions& options, std::function<void(Ino)> tell);
  void start_nothing(std::string reason);
  void stop();

  // Opens `file`, which is `known.file`: as one file if it is assembled, else composed of its blobs, and assembled
  // later.
  Result<std::shared_ptr<OpenFile>> open(const PublishedFile& file, Remembered known, Prefetcher* prefetcher);
  bool has(const AssembledSource& source) const;

  // Writes the member "assembly" of .weft/status.
  void write_status(JsonWriter& json) const;

 private:
  Result<std::shared_ptr<Assembly>> make(const AssemblyOptions& options, std::function<void(Ino)> tell);
  std::shared_ptr<Assembly> current() const;

  Store& store_;
  mutable std::mutex mutex_;
  std::shared_ptr<Assembly> assembly_;                  // guarded by mutex_
  std::string reason_ = "the mount is not set up yet";  // guarded by mutex_; why assembly_ is empty
};

}  // namespace weft
