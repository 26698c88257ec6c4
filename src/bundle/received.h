// A bundle in the store's tmp/: the manifests and blobs that an import needs, verified, until they are published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bundle/members.h"
#include "bundle/source.h"
#include "diskformat/bundle_list.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/content.h"
#include "weft/model/version_content.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// A file of blobs, one after another, which the import of a version adds as one source.
struct BundledFile {
  SafePath path;
  std::vector<ContentId> blobs;
};

// One thread.
class ReceivedBundle {
 public:
  // `into`: an empty directory, for the manifests and, if `keeps`, for the blobs; without it blobs are only verified.
  // `wanted`: indexes of the versions to publish, ascending. `list` outlives this.
  ReceivedBundle(const BundleList& list, std::vector<std::size_t> wanted, SafePath into, bool keeps)
      : list_(list), wanted_(std::move(wanted)), into_(std::move(into)), keeps_(keeps) {}

  struct StoredVersions {
    // Returns the manifest of a version that is not in the bundle.
    std::function<Result<std::vector<std::byte>>(const VersionRow& version)> manifest;
    // Fails if the store lacks one of these blobs, which the version needs and the bundle lacks.
    std::function<Status(const VersionRow& version, const std::vector<ContentId>& blobs)> has;
  };
  // Reads all members behind the list. Asks `stored` behind the manifests, once for each; its error ends the read.
  // Errc::corrupt: bytes that do not match their digest; Errc::cancelled.
  Status read(BundleSource& source, const std::string& where, const StoredVersions& stored, Progress& progress);

  std::uint64_t bytes() const { return bytes_; }  // that were verified
  // Of a wanted version: its encoded manifest, and the files with the blobs that no earlier wanted version has.
  Result<std::vector<std::byte>> manifest(std::size_t version) const;
  std::vector<BundledFile> files(std::size_t version) const;

 private:
  // The file that takes a blob: the published file, of a wanted version, that has the blob first.
  struct Home {
    std::size_t version = 0, file = 0;
    auto operator<=>(const Home&) const = default;
  };

  SafePath manifest_path(const Digest& digest) const;
  SafePath path_of(const Home& home) const;
  Status read_manifest(BundleSource& source, const BundleMember& member, const std::string& where);
  Status find_homes(const StoredVersions& stored, Progress& progress);
  Status read_blobs(BundleSource& source, const BundleMember& member, const std::string& where, Progress& progress);
  Status read_blob(BundleSource& source, const ContentId& id, const std::string& where, Progress& progress);
  Status open_home(const Home& home);

  const BundleList& list_;
  const std::vector<std::size_t> wanted_;
  const SafePath into_;
  const bool keeps_;
  std::uint64_t bytes_ = 0;
  std::unordered_map<ContentId, Home> homes_;
  std::map<Home, std::vector<ContentId>> written_;
  Home open_{SIZE_MAX, SIZE_MAX};
  Fd fd_;  // of open_
  std::vector<std::byte> buffer_;
};

}  // namespace weft
