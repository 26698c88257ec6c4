// Manifests by digest. A publish writes each as a file, manifests/<sha256>, which never changes. gc moves small ones
// into packs (packs/manifest_packs.h): the index has the new place before the file is deleted. An open manifest stays
// readable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "index/manifests.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "packs/packs.h"
#include "weft/bytes/pack.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// A staged manifest: a temporary file, deleted by the destructor unless it was placed. Or a manifest that existed
// already; then no file was staged.
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
  Fd fd_;  // invalid if nothing was staged, or after place()
  std::shared_ptr<const ManifestReader> bytes_;
};

// The packs that may hold manifests, and the index that has their places.
struct PackedManifests {
  PackDir& packs;
  Env& index;
};

// The form in which a publish needs a manifest. A publish that a registry decides on needs a file: no index row refers
// to the manifest yet, so gc may delete its copy in a pack.
enum class Kept : std::uint8_t { anywhere, as_file };

// Any thread.
class Manifests {
 public:
  // Without `packed`, finds manifests in files only.
  explicit Manifests(const SafePath& store_path, std::optional<PackedManifests> packed = {})
      : dir_((store_path / "manifests").held()), packed_(packed) {}

  Status create() const;
  // Opens a manifest in its pack, or else in the pack's copy, or else its file. Errc::not_found; Errc::corrupt if its
  // bytes do not match the digest.
  Result<std::shared_ptr<const ManifestReader>> open(const Digest& digest) const;
  Result<std::shared_ptr<const ManifestReader>> open_packed(const Digest& digest, const ManifestRow& row) const;
  Result<std::shared_ptr<const ManifestReader>> open_file_of(const Digest& digest) const;
  // Stores a manifest durably, unless it is stored already. Under the writer lock, against gc. Makes an existing file
  // young again (is_young()).
  Status put(const Digest& digest, std::span<const std::byte> bytes) const;
  // put() in steps, so that a publish can combine the disk syncs. stage() may run in any thread. The caller then syncs
  // the staged manifest, calls place() under the writer lock, and last sync().
  Result<StagedManifest> stage(const Digest& digest, std::span<const std::byte> bytes, Kept kept) const;
  Status place(StagedManifest staged, const Digest& digest, Kept kept) const;
  Status sync() const;
  Result<std::vector<Digest>> list() const;  // only those in files
  SafePath path_of(const Digest& digest) const { return dir_ / to_hex(digest); }
  Status remove(const Digest& digest) const;  // deletes the file; for gc
  // Repairs manifests whose bytes lie in the file of another manifest: writes them under their own name. Under the
  // writer lock, for a rebuild. Returns the repaired manifests.
  Result<std::vector<Digest>> mend() const;
  // Deletes temporary files left by a process that died, and returns their number. Under the writer lock.
  Result<std::uint64_t> remove_temporaries(bool dry_run) const;

 private:
  Result<std::shared_ptr<const ManifestReader>> open_copy(const Digest& digest, const ManifestRow& row) const;
  Result<std::optional<ManifestRow>> packed_row(const Digest& digest) const;
  Result<std::shared_ptr<const ManifestReader>> find(const Digest& digest, Kept kept) const;
  bool has(const Digest& digest, Kept kept) const;
  Result<StagedManifest> write_staged(std::span<const std::byte> bytes) const;
  Status write_file_of(const Digest& digest, std::span<const std::byte> bytes) const;
  SafePath dir_;
  std::optional<PackedManifests> packed_;
};

}  // namespace weft
