// What commands change in a store: this process does it, or the daemon that has the store. Context::writer() chooses.
// What takes long shows its progress.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/shared/context.h"
#include "daemon_api/control_messages.h"
#include "weft/fsck.h"

namespace weft {

class StoreWriter {
 public:
  virtual ~StoreWriter() = default;
  // As import_paths. The store is made when there is none, and goes again if the import fails.
  virtual Result<ImportReport> import(const ImportOptions& options) = 0;
  virtual Result<VersionName> tag(const TagRequest& request) = 0;
  // `removed` is called for each version as it is removed: what comes after may fail.
  virtual Status remove(const RemoveRequest& request, const std::function<void(const VersionName&)>& removed) = 0;
  virtual Result<GcOutcome> collect(const GcOptions& options) = 0;
  virtual Status pin(const PinRequest& request) = 0;
  // Looks for each blob below the paths first, then at the origin, then on peers, which only a daemon asks. `store` is
  // open to read. Returns what is wrong with the blobs that stay damaged, and why they do: lines that begin with
  // DamagedBlob::what.
  virtual Result<std::vector<std::string>> repair(Store& store, const std::vector<DamagedBlob>& damaged,
                                                  std::vector<std::string> from) = 0;
};

std::unique_ptr<StoreWriter> make_local_writer(const Context& context);
std::unique_ptr<StoreWriter> make_daemon_writer(const Context& context, std::unique_ptr<control::Client> daemon);

}  // namespace weft
