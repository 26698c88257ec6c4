// manifests/<sha256>: content-addressed files, which never change. gc alone removes them. A reader that has one open
// keeps it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/content.h"
#include "weft/pack.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// The bytes of a manifest, written under a name that means nothing; removed with this unless they are placed.
class StagedManifest {
 public:
  StagedManifest() = default;
  StagedManifest(SafePath path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  StagedManifest(StagedManifest&&) = default;
  StagedManifest& operator=(StagedManifest&&) = default;
  ~StagedManifest();
  int fd() const { return fd_.get(); }
  void begin_sync() const;
  Status sync() const;
  Status place(const SafePath& path);  // Errc::not_found: nothing was staged

 private:
  SafePath path_;
  Fd fd_;  // none: nothing was staged, or it is placed
};

// Any thread.
class Manifests {
 public:
  explicit Manifests(const SafePath& store_path) : dir_((store_path / "manifests").held()) {}

  Status create() const;
  // Errc::not_found; Errc::corrupt when its bytes are not what its name says.
  Result<std::shared_ptr<const ManifestReader>> open(const Digest& digest) const;
  // Makes sure that a whole file of these bytes is there, durably. Under the writer lock, against gc. One that is there
  // already is young again (is_young()).
  Status put(const Digest& digest, std::span<const std::byte> bytes) const;
  // put() in two steps, so that it shares its waits for the disk with what else a publish makes durable: begun here by
  // anyone, to be synced by the caller, then placed under the writer lock. sync() ends it.
  Result<StagedManifest> stage(std::span<const std::byte> bytes) const;
  Status place(StagedManifest staged, const Digest& digest, std::span<const std::byte> bytes) const;
  Status sync() const;
  Result<std::vector<Digest>> list() const;
  SafePath path_of(const Digest& digest) const { return dir_ / to_hex(digest); }
  Status remove(const Digest& digest) const;  // for gc, under the writer lock
  // Gives manifests that lie under the names of others their own names. Under the writer lock, for a rebuild. Returns
  // those that are whole again.
  Result<std::vector<Digest>> mend() const;
  // Removes what put() left when its process died; returns how many. Under the writer lock.
  Result<std::uint64_t> remove_temporaries(bool dry_run) const;

 private:
  bool has(const Digest& digest) const;
  SafePath dir_;
};

}  // namespace weft
