#include "bundle/received.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_set>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/sha256.h"
#include "weft/names.h"
#include "weft/programs/operations.h"

namespace weft {
namespace {

constexpr std::uint64_t kReceiveAtOnce = 8 * kDigestChunk;

Error not_its_digest(const std::string& where, std::string_view what) {
  return Error{Errc::corrupt, fmt::format("{}: {}: expected the bytes of its digest, got others", where, what)};
}

}  // namespace

SafePath ReceivedBundle::manifest_path(const Digest& digest) const {
  return into_ / to_hex(digest);
}

SafePath ReceivedBundle::path_of(const Home& home) const {
  return into_ / fmt::format("{}-{}", home.version, home.file);
}

Status ReceivedBundle::read(BundleSource& source, const std::string& where, const StoredVersions& stored,
                            Progress& progress) {
  const std::vector<BundleMember> members = members_of(list_);
  std::uint64_t total = 0;
  for (const BundleMember& member : members) total += member.size;
  progress.phase("verifying the bundle");
  progress.total(total);
  bool any_blobs = false;
  for (const BundleMember& member : members) {
    WEFT_CHECK(check_cancelled(progress));
    if (!member.is_manifest && !std::exchange(any_blobs, true)) WEFT_CHECK(find_homes(stored, progress));
    WEFT_CHECK(source.begin(member.name, member.size));
    WEFT_CHECK(member.is_manifest ? read_manifest(source, member, where) : read_blobs(source, member, where, progress));
    if (member.is_manifest) progress.advance(member.size);
  }
  if (!any_blobs) WEFT_CHECK(find_homes(stored, progress));
  fd_ = Fd();
  return source.end();
}

Status ReceivedBundle::read_manifest(BundleSource& source, const BundleMember& member, const std::string& where) {
  const VersionRow& row = list_.versions[member.version].row;
  std::vector<std::byte> bytes;
  while (bytes.size() < member.size) {  // in pieces: memory follows the bytes that arrive
    const std::size_t at = bytes.size();
    bytes.resize(at + std::min<std::uint64_t>(kReceiveAtOnce, member.size - at));
    WEFT_CHECK(source.read(std::span(bytes).subspan(at)));
  }
  if (sha256(bytes) != row.manifest) return not_its_digest(where, member.name);
  bytes_ += bytes.size();
  WEFT_TRY(const Fd fd, open_file(manifest_path(row.manifest), O_WRONLY | O_CREAT | O_EXCL, 0600));
  return append_exact(fd.get(), bytes, where);
}

Result<std::vector<std::byte>> ReceivedBundle::manifest(std::size_t version) const {
  const BundledVersion& of = list_.versions[version];
  WEFT_TRY(std::vector<std::byte> bytes, read_file(manifest_path(of.row.manifest), limits::kManifestMax));
  return bytes;
}

// A manifest that the bundle lacks is written beside the others, so that manifest() has it. Memory: the blobs of the
// list and of one manifest, whatever number of versions has it.
Status ReceivedBundle::find_homes(const StoredVersions& stored, Progress& progress) {
  std::unordered_set<ContentId> bundled;
  for (const BundledVersion& version : list_.versions) bundled.insert(version.blobs.begin(), version.blobs.end());
  std::unordered_set<Digest> seen;
  for (const std::size_t index : wanted_) {
    WEFT_CHECK(check_cancelled(progress));
    const VersionRow& row = list_.versions[index].row;
    if (!seen.insert(row.manifest).second) continue;
    if (!stat_file(manifest_path(row.manifest)).ok()) {
      WEFT_TRY(const auto bytes, stored.manifest(row));
      WEFT_TRY(const Fd fd, open_file(manifest_path(row.manifest), O_WRONLY | O_CREAT | O_EXCL, 0600));
      WEFT_CHECK(append_exact(fd.get(), bytes, row.model_name));
    }
    WEFT_TRY(const auto bytes, manifest(index));
    auto content = content_decoder()(bytes);
    if (!content.ok()) return Error{Errc::corrupt, fmt::format("{}: {}", spec_of(row), content.error().message)};
    std::unordered_set<ContentId> lacking;
    for (std::size_t file = 0; file < content->files.size(); ++file)
      for (const Extent& extent : content->files[file].extents) {
        if (bundled.contains(extent.id))
          homes_.try_emplace(extent.id, Home{index, file});
        else
          lacking.insert(extent.id);
      }
    WEFT_CHECK(stored.has(row, {lacking.begin(), lacking.end()}));
  }
  return {};
}

Status ReceivedBundle::read_blobs(BundleSource& source, const BundleMember& member, const std::string& where,
                                  Progress& progress) {
  for (const ContentId& id : list_.versions[member.version].blobs) {
    const auto home = homes_.find(id);
    const bool keep = keeps_ && home != homes_.end();
    if (keep) WEFT_CHECK(open_home(home->second));
    if (!keep) fd_ = Fd();
    if (!keep) open_ = {SIZE_MAX, SIZE_MAX};
    WEFT_CHECK(read_blob(source, id, fmt::format("{}: {}", where, member.name), progress));
    if (keep) written_[home->second].push_back(id);
  }
  return {};
}

Status ReceivedBundle::open_home(const Home& home) {
  if (open_ == home) return {};
  WEFT_TRY(fd_, open_file(path_of(home), O_WRONLY | O_CREAT | O_APPEND, 0600));
  open_ = home;
  return {};
}

Status ReceivedBundle::read_blob(BundleSource& source, const ContentId& id, const std::string& where,
                                 Progress& progress) {
  std::vector<Digest> chunks;
  for (std::uint64_t at = 0; at < id.length; at += kReceiveAtOnce) {
    WEFT_CHECK(check_cancelled(progress));
    buffer_.resize(std::min(kReceiveAtOnce, id.length - at));
    WEFT_CHECK(source.read(buffer_));
    std::vector<Digest> some(chunk_count(buffer_.size()));
    sha256_chunks(buffer_, some);
    chunks.insert(chunks.end(), some.begin(), some.end());
    if (fd_.valid()) WEFT_CHECK(append_exact(fd_.get(), buffer_, where));
    progress.advance(buffer_.size());
  }
  bytes_ += id.length;
  return tree_root(id.length, chunks) == id.root ? Status{} : Status{not_its_digest(where, "a blob")};
}

std::vector<BundledFile> ReceivedBundle::files(std::size_t version) const {
  std::vector<BundledFile> files;
  for (auto at = written_.lower_bound({version, 0}); at != written_.end() && at->first.version == version; ++at)
    files.push_back({path_of(at->first), at->second});
  return files;
}

}  // namespace weft
