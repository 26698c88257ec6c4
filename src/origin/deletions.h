// The files of an origin as collections and repairs change them: lists of freed files, names of manifests, deletions
// and replacements. As origin/dir.h: each call may hang, several nodes may do the same at once, any thread. `origin` is
// the directory.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "diskformat/origin_freed.h"
#include "os/safe_path.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

std::string freed_name(std::uint64_t sequence);  // "freed/<sequence>"
// Returns the newest list; an empty one if there was no collection. `at_least`: looks for this list even if the
// directory does not show it. Errc::busy: the directory shows only lists that are gone.
Result<FreedFiles> read_freed(const SafePath& origin, std::uint64_t at_least);
// Errc::exists: another collection has made a list of this sequence.
Status put_freed(const SafePath& origin, const FreedFiles& freed);

// A name of a manifest, and of its places.
struct ManifestName {
  Digest digest;
  std::uint64_t n = 0;
  auto operator<=>(const ManifestName&) const = default;
};
std::string text_of(const ManifestName& name);
Result<std::vector<ManifestName>> list_manifest_names(const SafePath& folder);  // sorted; skips other files

// Delete a manifest with its places, or a pack. No error if a file is gone already.
Status remove_manifest(const SafePath& origin, const ManifestName& name);
Status remove_pack(const SafePath& origin, PackId pack);

// Writes a whole file below tmp/, syncs it, and renames it to `path`, which may exist.
Status replace_at_origin(const SafePath& origin, const SafePath& path, std::span<const std::byte> bytes);

// Returns the present time by the origin's clock, ns.
Result<std::uint64_t> time_at_origin(const SafePath& origin);
// Deletes the freed names of a manifest that a version needs, if its present name has the manifest and its places. A
// name stays if its places lead to one of the packs `read`, which readers may still use, or cannot be read meanwhile.
Status sweep_names(const SafePath& origin, const FreedFiles& freed, const std::function<bool(const Digest&)>& is_needed,
                   const std::set<PackId>& read);
// Deletes files that writers left unfinished for a day, by the origin's clock. Returns their number. `needed`: packs
// that stay, although their tables of contents may be lost; null: all packs stay. `count_only`: deletes none.
Result<std::uint64_t> sweep_unfinished(const SafePath& origin, const std::set<PackId>* needed, bool count_only);
// Deletes the lists before this one.
Status sweep_freed(const SafePath& origin, std::uint64_t sequence);

}  // namespace weft
