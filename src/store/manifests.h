// manifests/<sha256>: content-addressed files. Who uses one holds a shared flock on it; who removes one, the exclusive.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "weft/content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// The bytes of a manifest, written under a name that means nothing; removed with this unless they are placed.
class StagedManifest {
 public:
  StagedManifest() = default;
  StagedManifest(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  StagedManifest(StagedManifest&&) = default;
  StagedManifest& operator=(StagedManifest&&) = default;
  ~StagedManifest();
  int fd() const { return fd_.get(); }
  void begin_sync() const;
  Status sync() const;
  Status place(const std::string& path);

 private:
  std::string path_;
  Fd fd_;  // none: nothing was staged, or it is placed
};

// Any thread.
class Manifests {
 public:
  explicit Manifests(const std::string& store_path, Patience patience = {})
      : dir_(store_path + "/manifests"), patience_(std::move(patience)) {}

  Status create() const;
  // Errc::not_found; Errc::corrupt when its bytes are not what its name says.
  Result<std::shared_ptr<const ManifestReader>> open(const Digest& digest) const;
  // Makes sure that a whole file of these bytes is there, durably. Under the writer lock, against gc.
  Status put(const Digest& digest, std::span<const std::byte> bytes) const;
  // put() in two steps, so that it shares its waits for the disk with what else a publish makes durable: begun here by
  // anyone, to be synced by the caller, then placed under the writer lock. sync() ends it.
  Result<StagedManifest> stage(std::span<const std::byte> bytes) const;
  Status place(StagedManifest staged, const Digest& digest, std::span<const std::byte> bytes) const;
  Status sync() const;
  Result<std::vector<Digest>> list() const;
  std::string path_of(const Digest& digest) const { return dir_ + "/" + to_hex(digest); }
  // Errc::busy while somebody uses it, Errc::not_found. The lock keeps users out until it goes.
  Result<Fd> lock_exclusive(const Digest& digest) const;
  Status remove(const Digest& digest) const;  // under lock_exclusive
  // Removes what put() left when its process died; returns how many. Under the writer lock.
  Result<std::uint64_t> remove_temporaries(bool dry_run) const;

 private:
  std::string dir_;
  Patience patience_;  // with a gc that is at a manifest
};

}  // namespace weft
