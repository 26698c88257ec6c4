// hub/: the models and data sets in the layout of the Hugging Face hub's cache (huggingface_hub, file_download.py). A
// library with HF_HUB_CACHE=<mount>/hub finds them by name, offline:
//
//   hub/models--<org>--<model>/refs/<revision>         40 hex digits, without a newline
//   hub/models--<org>--<model>/snapshots/<40 digits>/  the published directories, with links to the files of models/
//   hub/models--<org>--<model>/snapshots/<commit>      a link to the snapshot of the version that has this source
//   hub/datasets--<org>--<name>/                       the same of a data set, with links to the files of datasets/
//
// A revision is `main` (the tag main, or else the newest version), a tag, a version's number, or a source commit, which
// is the newest version that has it. A tag of the same name, or a snapshot's digits, hide a commit. The digits are the
// first ones of the digest of a version's manifest, so versions with the same content share a snapshot. It leads to the
// files of the oldest of them. hub/ shows only models and data sets whose names the hub accepts (weft/names.h).
//
// The revision `safetensors` is there if the version of `main` needs the view safetensors/ (SafetensorsView::replaces)
// and no tag has this name. It names a snapshot of the view, with links to the files of safetensors/. Its digits are
// those of the version's snapshot from the last to the first, so a program takes them for a commit. Any version that
// needs the view has such a snapshot; a listing has that of the revision alone, and neither entry while the manifest of
// `main` is not local, so that a listing fetches none.
//
// The files of a snapshot are links, as in the hub's own cache: a file with two names would have two hard links, which
// some programs refuse, and a second inode would be counted and copied twice.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "vfs/datasets.h"
#include "vfs/numbers.h"
#include "vfs/subtree.h"
#include "vfs/versions.h"

namespace weft {

// Any thread.
class Hub final : public Subtree {
 public:
  Hub(Store& store, Versions& versions, Datasets& datasets) : store_(store), versions_(versions), datasets_(datasets) {}

  Result<Attr> attr(const MountInode& inode) override;
  Result<Attr> lookup(const MountInode& dir, std::string_view name) override;
  Result<DirPage> list(const MountInode& dir, ListPlace from) override;
  Result<Ino> parent(const MountInode& inode) override;
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override;
  Result<std::string> readlink(const MountInode& inode) override;

 private:
  // The content of a file in refs/.
  struct Named {
    std::string snapshot;
    std::uint64_t time_ns = 0;  // when the file began to name it
  };

  Result<DirPage> list_models(ListPlace from);
  Result<Attr> lookup_in(InoKind part, const ModelRow& model, std::string_view name);  // in refs/ or snapshots/
  Result<Named> named(Ino ref);
  // Returns the version that the revision `safetensors` names; Errc::not_found if there is none.
  Result<ModelRevision> viewed(const ModelRow& model);
  bool is_view_local(const ModelRow& model);
  Result<Attr> lookup_view_snapshot(const ModelRow& model, std::string_view name);
  // Returns the view's entry in refs/ or snapshots/, for a listing.
  std::optional<DirEntry> view_entry(InoKind part, const ModelRow& model);

  // A file or directory of models/, datasets/ or safetensors/, and the subtree that serves it.
  struct Published {
    Subtree* subtree = nullptr;
    MountInode inode;
    std::shared_ptr<const TreeVersion> version;
    VersionRow row;    // of the version, with its model's present name
    std::string path;  // in the version or the view
  };
  Result<Published> published(Ino ino);  // what `ino`, a snapshot or an entry below it, shows

  Store& store_;
  Versions& versions_;
  Datasets& datasets_;
};

}  // namespace weft
