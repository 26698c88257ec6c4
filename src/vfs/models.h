// The part of the mounted tree that names versions: models/, the directories of names, models, `latest` and tags. Its
// entries change with each publish, tag and removal. All from one snapshot.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/result.h"
#include "weft/snapshot.h"
#include "weft/store_rows.h"
#include "weft/vfs.h"

namespace weft {

// `row` is a namespace_dir, model_dir, latest_link or tag_link.
Result<Attr> catalog_attr(Snapshot& snapshot, const StoreInfo& store, const InodeRow& row);
Result<std::string> catalog_readlink(Snapshot& snapshot, const InodeRow& row);
Result<Ino> catalog_parent(Snapshot& snapshot, const InodeRow& row);

// models/ is the namespace "".
Result<Attr> lookup_in_namespace(Snapshot& snapshot, const StoreInfo& store, std::string_view prefix,
                                 std::string_view name);
Result<std::vector<DirEntry>> list_namespace(Snapshot& snapshot, std::string_view prefix);
Result<Attr> lookup_in_model(Snapshot& snapshot, ModelId model, std::string_view name);
Result<std::vector<DirEntry>> list_model(Snapshot& snapshot, ModelId model);

Attr version_dir_attr(const VersionRow& version, Ino ino);

// Link counts of directories are not kept: 1 says "unknown" to those who would count subdirectories by it.
Attr directory_attr(Ino ino, std::uint64_t mtime_ns);
Attr link_attr(Ino ino, std::uint64_t mtime_ns, std::size_t target_bytes);
DirEntry bare_entry(std::string name, Ino ino, FileType type);

}  // namespace weft
