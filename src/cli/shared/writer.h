// The changes that commands make to a store, executed by the store's daemon or by this process. Context::writer()
// chooses. Long operations show their progress.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/shared/context.h"
#include "daemon_api/control_messages.h"
#include "weft/store/fsck.h"

namespace weft {

class StoreWriter {
 public:
  virtual ~StoreWriter() = default;
  // Imports as run_import() does. Without a daemon, creates a missing store, and removes it if the import fails.
  virtual Result<ImportReport> import(const ImportOptions& options) = 0;
  virtual Result<VersionName> tag(const TagRequest& request) = 0;
  virtual Result<VersionName> note(const NoteRequest& request) = 0;  // returns the version
  virtual Status rename(const RenameRequest& request) = 0;
  // Calls `removed` after each removal, because a later one may fail.
  virtual Result<RemoveReport> remove(const RemoveRequest& request,
                                      const std::function<void(const VersionName&)>& removed) = 0;
  // Calls `undeleted` after each undelete, because a later one may fail.
  virtual Status undelete(const UndeleteRequest& request,
                          const std::function<void(const UndeletedVersion&)>& undeleted) = 0;
  virtual Result<GcOutcome> collect(const GcOptions& options) = 0;
  virtual Status pin(const PinRequest& request) = 0;
  // Repairs each blob from the `from` paths, else from the origin, else from peers (through a daemon only). `store` is
  // open to read. Returns a line for each blob that stays damaged: DamagedBlob::what, then the reason.
  virtual Result<std::vector<std::string>> repair(Store& store, const std::vector<DamagedBlob>& damaged,
                                                  std::vector<std::string> from) = 0;
  // Takes versions of a bundle over as weft::import_bundle() does. Creates a missing store as import() does.
  virtual Result<BundleImportReport> import_bundle(const BundleFiles& files, const BundleImportOptions& options) = 0;
};

std::unique_ptr<StoreWriter> make_local_writer(const Context& context);
std::unique_ptr<StoreWriter> make_daemon_writer(const Context& context, std::unique_ptr<control::Client> daemon);

}  // namespace weft
