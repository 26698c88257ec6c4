// The nodes of a version's trees (weft/model/tree.h): its published files in models/, its layers in layers/, its
// tensors in tensors/, and the view of it in safetensors/. A published file has another inode there, and takes no
// space: a file with two names would have two hard links, which some programs refuse. For a data set, only the large
// published files are here; Datasets has the rest. A node's attributes have two parts: facts of the manifest, and facts
// of a snapshot (owned bytes, links of views). Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/lru_cache.h"
#include "reading/cold_file.h"
#include "reading/prefetch.h"
#include "vfs/assembly.h"
#include "vfs/hidden_files.h"
#include "vfs/numbers.h"
#include "vfs/subtree.h"
#include "vfs/version_files.h"
#include "weft/model/tree.h"
#include "weft/programs/operations.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"

namespace weft {

// The generated files below a version (generated_files.cc): texts, and containers of safetensors in layers/ and
// safetensors/. A container is composed from the stored bytes of its tensors. Any thread.
class GeneratedFiles {
 public:
  // All outlive this object. `prefetcher` also outlives the files that are opened here.
  GeneratedFiles(Store& store, Prefetcher& prefetcher, const Cold& cold, KnownPlaces& places, VersionFiles& files)
      : store_(store), prefetcher_(prefetcher), cold_(cold), places_(places), files_(files) {}

  // True for a text or a container.
  static bool is_generated(NodeKind kind) { return is_container(kind) || is_text(kind); }
  // The size follows from names, types and shapes of the manifest.
  std::uint64_t size(const TreeNode& node);
  Result<std::shared_ptr<OpenFile>> open(const TreeNode& node);
  // Opens a scattered tensor of the version as an .npy file.
  Result<std::shared_ptr<OpenFile>> open_scattered(const TreeVersionPointer& version, const Tensor& tensor);
  void drop_unused(std::chrono::steady_clock::duration age) { containers_.drop_unused(age); }

 private:
  struct Container;
  struct Segment;
  using Sources = std::map<std::uint32_t, std::shared_ptr<OpenFile>>;  // open files of a version, by their index

  static bool is_container(NodeKind kind) {
    return kind == NodeKind::layer_container || kind == NodeKind::made_container;
  }
  static bool is_text(NodeKind kind) { return kind == NodeKind::layer_json || kind == NodeKind::made_text; }
  static Container make_container(const TreeNode& node);
  std::shared_ptr<const Container> container_of(const TreeNode& node);
  static std::string text_of(const TreeNode& node);
  Result<std::shared_ptr<OpenFile>> open_container(const TreeNode& node);
  Result<std::shared_ptr<OpenFile>> open_segment(const TreeNode& node, Segment segment, Remembered known);
  // Opens the file `head` ‖ elements of the tensor.
  Result<std::shared_ptr<OpenFile>> gather(const TreeVersionPointer& version, const Tensor& tensor, std::string head,
                                           Sources& sources);

  Store& store_;
  Prefetcher& prefetcher_;
  const Cold& cold_;
  KnownPlaces& places_;
  VersionFiles& files_;
  // By inode number: stat and each open render a header once. That of 10,000 tensors takes 8 ms and 1 MB.
  LruCache<Container> containers_{8U << 20U};
};

class Versions final : public VersionFiles {
 public:
  // `prefetcher` outlives the files that are opened here.
  Versions(Store& store, Prefetcher& prefetcher, const Cold& cold)
      : store_(store), prefetcher_(prefetcher), cold_(cold) {}

  Result<Attr> attr(const MountInode& inode) override;
  Result<Attr> lookup(const MountInode& dir, std::string_view name) override;
  Result<DirPage> list(const MountInode& dir, ListPlace from) override;
  Result<Ino> parent(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;
  Result<FileVersions> versions(const MountInode& inode) override { return FileVersions{inode.row.version, 0}; }
  Result<std::optional<Digest>> sha256_of(const MountInode& inode) override;
  bool assembled(const MountInode& inode) override;
  Result<Place> place(const MountInode& inode) override;

  Result<TreeVersionPointer> load(VersionId id, Ino base) override;
  Result<std::vector<Attr>> attrs_of(const TreeVersionPointer& version, std::span<const std::uint32_t> nodes) override;
  Result<Ino> name_dir(const TreeVersion& version, InoKind tree) override;
  Result<std::shared_ptr<OpenFile>> open_file(const TreeVersionPointer& version, std::uint32_t file) override;
  ManifestResolver& resolver() const { return cold_.reads == nullptr ? no_resolver() : *cold_.reads; }
  // Opens a scattered tensor of the version as an .npy file.
  Result<std::shared_ptr<OpenFile>> open_scattered(const TreeVersionPointer& version, const Tensor& tensor) {
    return generated_.open_scattered(version, tensor);
  }
  void read_by_record(bool on) { by_record_ = on; }
  VfsAssembly& assembly() { return assembly_; }
  void trim();

 private:
  static constexpr std::chrono::seconds kKeptFor{10};

  Result<TreeNode> node(const MountInode& inode);
  Result<std::shared_ptr<OpenFile>> open_node(const TreeNode& node);
  Result<Ino> parent_of(const TreeNode& node);
  Result<Attr> attr_of(const TreeNode& node);
  Result<TreeVersionPointer> read(VersionId id);
  Status resolve(VersionId id);
  Result<std::shared_ptr<OpenFile>> open_here(const TreeNode& node);
  Result<std::shared_ptr<OpenFile>> open_absent(const TreeNode& node);
  Result<std::shared_ptr<OpenFile>> open_published(const TreeNode& node);

  Attr fixed_attr(const TreeNode& node);
  static Status add_changing(Snapshot& snapshot, const TreeNode& node, Attr& attr);

  std::shared_ptr<const PublishedFile> published(const TreeNode& node) const;

  Store& store_;
  Prefetcher& prefetcher_;
  VfsAssembly assembly_{store_};
  const Cold cold_;
  HiddenFiles hidden_files_{store_, cold_};
  std::atomic<bool> by_record_{false};
  std::mutex loading_;  // one version is read at a time
  LruCache<TreeVersion> versions_{16U << 20U};
  mutable LruCache<PublishedFile> files_{4U << 20U};
  KnownPlaces places_;
  GeneratedFiles generated_{store_, prefetcher_, cold_, places_, *this};
};

}  // namespace weft
