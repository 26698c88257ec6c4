// Manifests by their digest. A publish makes each a file, manifests/<sha256>, which never changes. gc moves small ones
// into packs (packs/manifest_packs.h): the index has the new place before the file goes. A reader that has one open
// keeps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "index/manifests.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "packs/packs.h"
#include "weft/content.h"
#include "weft/pack.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// A manifest on its way to its place: written under a name that means nothing, and removed with this unless it is
// placed; or it was there already.
class StagedManifest {
 public:
  StagedManifest() = default;
  explicit StagedManifest(std::shared_ptr<const ManifestReader> there) : bytes_(std::move(there)) {}
  StagedManifest(SafePath path, Fd fd, std::shared_ptr<const ManifestReader> bytes)
      : path_(std::move(path)), fd_(std::move(fd)), bytes_(std::move(bytes)) {}
  StagedManifest(StagedManifest&&) = default;
  StagedManifest& operator=(StagedManifest&&) = default;
  ~StagedManifest();
  std::span<const std::byte> bytes() const { return bytes_->bytes(); }
  Status write(std::span<const std::byte> bytes);
  void begin_sync() const;
  Status sync() const;
  Status place(const SafePath& path);  // Errc::not_found: nothing was staged

 private:
  SafePath path_;
  Fd fd_;  // none: nothing was staged, or it is placed
  std::shared_ptr<const ManifestReader> bytes_;
};

// Manifests in packs, and the index that says where.
struct PackedManifests {
  PackDir& packs;
  Env& index;
};

// Where a publish needs a manifest to be. A publish that a registry decides on relies on it before any row of the index
// does, so a place in a pack does not keep it.
enum class Kept : std::uint8_t { anywhere, as_file };

// Any thread.
class Manifests {
 public:
  // Without `packed` it knows files alone.
  explicit Manifests(const SafePath& store_path, std::optional<PackedManifests> packed = {})
      : dir_((store_path / "manifests").held()), packed_(packed) {}

  Status create() const;
  // From its pack, or else its file. Errc::not_found; Errc::corrupt when its bytes are not what its name says.
  Result<std::shared_ptr<const ManifestReader>> open(const Digest& digest) const;
  Result<std::shared_ptr<const ManifestReader>> open_packed(const Digest& digest, const ManifestRow& row) const;
  Result<std::shared_ptr<const ManifestReader>> open_file_of(const Digest& digest) const;
  // Makes sure that its bytes are there, durably. Under the writer lock, against gc. A file that is there already is
  // young again (is_young()).
  Status put(const Digest& digest, std::span<const std::byte> bytes) const;
  // put() in two steps, so that it shares its waits for the disk with what else a publish makes durable: begun here by
  // anyone, to be synced by the caller, then placed under the writer lock. sync() ends it.
  Result<StagedManifest> stage(const Digest& digest, std::span<const std::byte> bytes, Kept kept) const;
  Status place(StagedManifest staged, const Digest& digest, Kept kept) const;
  Status sync() const;
  Result<std::vector<Digest>> list() const;  // those that are files
  SafePath path_of(const Digest& digest) const { return dir_ / to_hex(digest); }
  Status remove(const Digest& digest) const;  // the file; for gc
  // Gives manifests that lie under the names of others their own names. Under the writer lock, for a rebuild. Returns
  // those that are whole again.
  Result<std::vector<Digest>> mend() const;
  // Removes what put() left when its process died; returns how many. Under the writer lock.
  Result<std::uint64_t> remove_temporaries(bool dry_run) const;

 private:
  Result<std::optional<ManifestRow>> packed_row(const Digest& digest) const;
  Result<std::shared_ptr<const ManifestReader>> find(const Digest& digest, Kept kept) const;
  bool has(const Digest& digest, Kept kept) const;
  Result<StagedManifest> write_staged(std::span<const std::byte> bytes) const;
  Status write_file_of(const Digest& digest, std::span<const std::byte> bytes) const;
  SafePath dir_;
  std::optional<PackedManifests> packed_;
};

}  // namespace weft
