// The names of a store's packs on disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "os/safe_path.h"
#include "weft/store_rows.h"

namespace weft {

// Ids are random. The highest bit is set exactly if the pack holds manifests, so that the name alone shows the kind.
enum class PackKind : std::uint8_t { blobs, manifests };
PackId new_pack_id(PackKind kind);
PackKind kind_of_pack(PackId pack);
PackId with_kind(PackId id, PackKind kind);  // the id of a pack of that kind

std::string pack_name(PackId pack);  // 16 hex digits
SafePath packs_dir(const SafePath& store_path);
SafePath pack_path(const SafePath& store_path, PackId pack);
SafePath toc_path(const SafePath& store_path, PackId pack);
SafePath pack_in(const SafePath& directory, PackId pack);
SafePath toc_in(const SafePath& directory, PackId pack);
SafePath copy_in(const SafePath& directory, PackId pack);  // the second copy of a pack of manifests
// A damaged table of contents that a rebuild kept, because it could not recover all entries.
SafePath lost_toc_path(const SafePath& store_path, PackId pack);
// Returns the id in a name such as "0123456789abcdef.pack", with the suffix ".pack"; nothing for other names.
std::optional<PackId> pack_of_name(std::string_view name, std::string_view suffix);

}  // namespace weft
