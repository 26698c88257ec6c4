// What a mounted tree knows of assembled files: whether any are made, and if not, why. Any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/json.h"
#include "node/assembly.h"
#include "node/open_file.h"
#include "weft/vfs.h"

namespace weft {

class VfsAssembly {
 public:
  explicit VfsAssembly(Store& store) : store_(store) {}

  void start(const AssemblyOptions& options, std::function<void(Ino)> tell);
  void start_nothing(std::string reason);
  void stop();

  // `source`, the file `known.file`, as one file if there is one, else composed of its blobs, and assembled later.
  Result<std::shared_ptr<OpenFile>> open(AssembledSource source, Remembered known, const ReadAhead& ahead);
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
