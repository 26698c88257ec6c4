#include "catalog/manifests.h"

#include <fcntl.h>

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/sha256.h"
#include "os/file_ops.h"
#include "packs/manifest_packs.h"

namespace weft {
namespace {

constexpr std::string_view kTemporary = "new-";
constexpr int kMoves = 16;  // attempts to open a manifest that gc moves meanwhile; after that, it is damaged

class MappedManifest final : public ManifestReader {
 public:
  explicit MappedManifest(MappedFile file) : file_(std::move(file)) {}
  std::span<const std::byte> bytes() const override { return file_.bytes(); }

 private:
  MappedFile file_;
};

class ReadManifest final : public ManifestReader {
 public:
  explicit ReadManifest(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::span<const std::byte> bytes() const override { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

Result<std::shared_ptr<const ManifestReader>> not_in_pack() {
  return Error{Errc::not_found, "in no pack"};
}

}  // namespace

StagedManifest::~StagedManifest() {
  if (fd_.valid()) static_cast<void>(remove_file(path_));
}

// Writes the file and maps it: bytes() reads from the map.
Status StagedManifest::write(std::span<const std::byte> bytes) {
  WEFT_CHECK(append_exact(fd_.get(), bytes, path_));
  WEFT_TRY(MappedFile file, MappedFile::map(fd_.get(), bytes.size(), path_));
  bytes_ = std::make_shared<MappedManifest>(std::move(file));
  return {};
}

void StagedManifest::begin_sync() const {
  if (fd_.valid()) start_writeback(fd_.get(), 0, 0);
}

Status StagedManifest::sync() const {
  return fd_.valid() ? sync_file(fd_.get(), path_) : Status{};
}

Status StagedManifest::place(const SafePath& path) {
  if (!fd_.valid()) return Error{Errc::not_found, fmt::format("{}: nothing is staged for it", path)};
  WEFT_CHECK(rename_file(path_, path));
  fd_.reset();
  return {};
}

Status Manifests::create() const {
  return make_directories(dir_);
}

Result<std::optional<ManifestRow>> Manifests::packed_row(const Digest& digest) const {
  if (!packed_) return std::optional<ManifestRow>();
  WEFT_TRY(Txn txn, packed_->index.read());
  WEFT_TRY(const std::optional<ManifestRow> row, find_manifest(txn, digest));
  return row && row->packed() ? row : std::nullopt;
}

Result<std::shared_ptr<const ManifestReader>> Manifests::open_packed(const Digest& digest,
                                                                     const ManifestRow& row) const {
  WEFT_TRY(const auto pack, packed_->packs.open(row.place.pack));
  const SafePath where = packed_->packs.pack_file(row.place.pack);
  if (row.place.offset > pack->size() || row.length > pack->size() - row.place.offset)
    return Error{Errc::corrupt, fmt::format("{}: manifest {} lies behind its end", where, to_hex(digest))};
  WEFT_TRY(std::vector<std::byte> bytes, read_manifest(pack->fd(), row.place.offset, row.length, digest, where));
  return std::shared_ptr<const ManifestReader>(std::make_shared<ReadManifest>(std::move(bytes)));
}

// Opens the second copy, for a pack that is damaged or lost.
Result<std::shared_ptr<const ManifestReader>> Manifests::open_copy(const Digest& digest, const ManifestRow& row) const {
  const SafePath where = packed_->packs.copy_file(row.place.pack);
  WEFT_TRY(const Fd copy, open_file(where, O_RDONLY));
  WEFT_TRY(std::vector<std::byte> bytes, read_manifest(copy.get(), row.place.offset, row.length, digest, where));
  return std::shared_ptr<const ManifestReader>(std::make_shared<ReadManifest>(std::move(bytes)));
}

Result<std::shared_ptr<const ManifestReader>> Manifests::open_file_of(const Digest& digest) const {
  const SafePath path = path_of(digest);
  WEFT_TRY(const OpenedFile opened, open_with_stat(path, O_RDONLY));
  auto size = static_cast<std::uint64_t>(opened.st.st_size);
  if (size > limits::kManifestMax)
    return Error{Errc::corrupt, fmt::format("{}: expected at most {} bytes, got {}", path, limits::kManifestMax, size)};
  WEFT_TRY(MappedFile file, MappedFile::map(opened.fd.get(), size, path));
  if (Digest got = sha256(file.bytes()); got != digest)
    return Error{Errc::corrupt, fmt::format("{}: expected bytes of this digest, got {}", path, to_hex(got))};
  return std::shared_ptr<const ManifestReader>(std::make_shared<MappedManifest>(std::move(file)));
}

// Repeats if gc moves the manifest between the lookups in the index and in the files. If the pack is damaged, a repair
// may have written the file again.
Result<std::shared_ptr<const ManifestReader>> Manifests::open(const Digest& digest) const {
  for (int attempt = 1;; ++attempt) {
    WEFT_TRY(const std::optional<ManifestRow> row, packed_row(digest));
    auto packed = row ? open_packed(digest, *row) : not_in_pack();
    if (packed.ok()) return packed;
    if (row)
      if (auto copy = open_copy(digest, *row); copy.ok()) return copy;
    auto file = open_file_of(digest);
    if (file.ok() || (!row && file.error().code != Errc::not_found)) return file;
    if (row && packed.error().code != Errc::not_found) return packed;
    if (attempt == kMoves) return Error{Errc::corrupt, packed.error().message + "; run `weft fsck --rebuild`"};
    WEFT_TRY(const std::optional<ManifestRow> now, packed_row(digest));
    if (!now) return file;
  }
}

Result<std::shared_ptr<const ManifestReader>> Manifests::find(const Digest& digest, Kept kept) const {
  return kept == Kept::as_file ? open_file_of(digest) : open(digest);
}

Result<StagedManifest> Manifests::stage(const Digest& digest, std::span<const std::byte> bytes, Kept kept) const {
  auto there = find(digest, kept);
  return there.ok() ? StagedManifest(*std::move(there)) : write_staged(bytes);
}

Result<StagedManifest> Manifests::write_staged(std::span<const std::byte> bytes) const {
  const SafePath temporary = dir_ / fmt::format("{}{}", kTemporary, random_hex(8));
  WEFT_TRY(Fd fd, open_file(temporary, O_RDWR | O_CREAT | O_EXCL));
  StagedManifest written(temporary, std::move(fd), nullptr);  // deletes the file on an error
  WEFT_CHECK(written.write(bytes));
  return written;
}

// Writes the manifest again if gc deleted the staged file as a leftover, or the manifest that existed at stage().
Status Manifests::place(StagedManifest staged, const Digest& digest, Kept kept) const {
  if (has(digest, kept)) return {};
  if (staged.place(path_of(digest)).ok()) return {};
  return write_file_of(digest, staged.bytes());
}

Status Manifests::sync() const {
  return sync_directory(dir_);
}

bool Manifests::has(const Digest& digest, Kept kept) const {
  if (!find(digest, kept).ok()) return false;
  if (const auto fd = open_file(path_of(digest), O_RDONLY); fd.ok()) touch_file(fd->get());
  return true;
}

Status Manifests::write_file_of(const Digest& digest, std::span<const std::byte> bytes) const {
  WEFT_TRY(StagedManifest staged, write_staged(bytes));
  WEFT_CHECK(staged.sync());
  WEFT_CHECK(staged.place(path_of(digest)));
  return sync();
}

Status Manifests::put(const Digest& digest, std::span<const std::byte> bytes) const {
  if (has(digest, Kept::anywhere)) return sync();  // its writer may have died before the sync
  return write_file_of(digest, bytes);
}

Result<std::vector<Digest>> Manifests::list() const {
  WEFT_TRY(std::vector<std::string> names, list_directory(dir_));
  std::vector<Digest> digests;
  for (const std::string& name : names)
    if (std::optional<Digest> digest = digest_from_hex(name)) digests.push_back(*digest);
  return digests;
}

Result<std::uint64_t> Manifests::remove_temporaries(bool dry_run) const {
  WEFT_TRY(std::vector<std::string> names, list_directory(dir_));
  std::uint64_t count = 0;
  for (const std::string& name : names) {
    if (!name.starts_with(kTemporary)) continue;
    ++count;
    if (!dry_run) WEFT_CHECK(remove_file(dir_ / name));
  }
  return count;
}

Result<std::vector<Digest>> Manifests::mend() const {
  std::map<Digest, std::vector<std::byte>> strays;
  WEFT_TRY(const std::vector<Digest> names, list());
  for (const Digest& name : names) {
    auto bytes = read_file(path_of(name), limits::kManifestMax);
    if (!bytes.ok() && bytes.error().code != Errc::invalid) return std::move(bytes).error();  // invalid: too large
    if (!bytes.ok()) continue;
    if (const Digest got = sha256(*bytes); got != name) strays.emplace(got, std::move(*bytes));
  }
  std::vector<Digest> mended;
  for (const auto& [digest, bytes] : strays) {
    if (std::ranges::find(names, digest) == names.end() || open(digest).ok()) continue;
    WEFT_CHECK(put(digest, bytes));
    mended.push_back(digest);
  }
  return mended;
}

Status Manifests::remove(const Digest& digest) const {
  return remove_file(path_of(digest));
}

}  // namespace weft
