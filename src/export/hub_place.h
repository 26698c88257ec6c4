// A repository in a cache of the Hugging Face hub (huggingface_hub, file_download.py), which an export adds a version
// to:
//
//   CACHE/models--ORG--NAME/blobs/<SHA-256>           the bytes of a file, in 64 hexadecimal digits
//   CACHE/models--ORG--NAME/snapshots/<commit>/PATH   a relative link to a blob
//   CACHE/models--ORG--NAME/refs/<revision>           the commit, 40 hexadecimal digits without a newline
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "export/export_place.h"
#include "os/beneath.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

struct HubNames {
  std::string repository;         // hub_name()
  std::string commit;             // kCommitDigits hexadecimal digits
  std::vector<std::string> refs;  // names of one component
};

// As an ExportTarget, it writes in a hidden directory of mode 0700 that is reached by descriptors alone. publish()
// moves the blobs into place, then the snapshot as a whole, then the refs. If it fails on the way, complete blobs stay,
// which the next export uses. It also removes the hidden directories of exports that were killed. A file with the name
// of a blob and the right size counts as this blob.
class HubPlace final : public ExportPlace {
 public:
  // Opens the cache, or makes it. Adds the ref `main` if the repository has none.
  static Result<std::unique_ptr<HubPlace>> open(const std::string& cache, const HubNames& names);
  HubPlace(const HubPlace&) = delete;
  HubPlace& operator=(const HubPlace&) = delete;
  ~HubPlace() override;

  Result<bool> reuse(const ExportedFile& file) override;
  Result<Fd> create(const ExportedFile& file) override;
  Status complete(const ExportedFile& file, const Fd& written) override;
  Status make_directory(std::string_view path) override;
  // Errc::exists: the snapshot is there, with other files.
  Status publish() override;

  const std::string& where() const { return repository_.path(); }
  const std::vector<std::string>& refs() const { return names_.refs; }
  // The files whose bytes the repository had, and those with the bytes of another file of this version.
  std::uint64_t reused_files() const { return reused_files_; }
  std::uint64_t reused_bytes() const { return reused_bytes_; }

 private:
  explicit HubPlace(HubNames names) : names_(std::move(names)) {}
  struct Link {
    std::string_view path;  // in the snapshot
    Digest blob;
  };
  struct Made {
    const Beneath* above;
    std::string name;
    Inode inode;
  };
  Status open_cache(const std::string& path);
  Status enter(const Beneath& above, const std::string& name, Beneath& into);
  void lock_stage();
  void remove_left_stages() const;
  Status make_links();
  Status place_blobs();
  Status place_snapshot();
  Status check_snapshot() const;
  Status place_refs();

  HubNames names_;
  Beneath above_;  // the parent of cache_; closed if the cache existed before
  Beneath cache_;
  Beneath repository_;
  Beneath blobs_, refs_, snapshots_;
  std::string stage_name_;  // in repository_
  Inode stage_inode_;
  Beneath stage_;           // has blobs by their digests, the files "lock" and "written", and the directory "snapshot"
  Fd lock_;                 // locked while this process lives
  std::vector<Made> made_;  // directories that did not exist, outermost first
  std::set<Digest> staged_;
  std::vector<Link> links_;
  std::vector<std::string_view> directories_;
  std::uint64_t reused_files_ = 0, reused_bytes_ = 0;
};

}  // namespace weft
