#include "diskformat/pack_names.h"

#include <charconv>
#include <system_error>

#include <fmt/core.h>

#include "os/sys.h"

namespace weft {
namespace {

constexpr PackId kManifestsBit = PackId{1} << 63U;

}  // namespace

PackId new_pack_id(PackKind kind) {
  return with_kind(*pack_of_name(random_hex(8), ""), kind);
}

PackId with_kind(PackId id, PackKind kind) {
  return kind == PackKind::manifests ? id | kManifestsBit : id & ~kManifestsBit;
}

PackKind kind_of_pack(PackId pack) {
  return (pack & kManifestsBit) != 0 ? PackKind::manifests : PackKind::blobs;
}

std::string pack_name(PackId pack) {
  return fmt::format("{:016x}", pack);
}
SafePath packs_dir(const SafePath& store_path) {
  return store_path / "packs";
}
SafePath pack_path(const SafePath& store_path, PackId pack) {
  return pack_in(packs_dir(store_path), pack);
}
SafePath toc_path(const SafePath& store_path, PackId pack) {
  return toc_in(packs_dir(store_path), pack);
}
SafePath pack_in(const SafePath& directory, PackId pack) {
  return directory / fmt::format("{:016x}.pack", pack);
}
SafePath toc_in(const SafePath& directory, PackId pack) {
  return directory / fmt::format("{:016x}.toc", pack);
}
SafePath copy_in(const SafePath& directory, PackId pack) {
  return directory / fmt::format("{:016x}.copy", pack);
}
SafePath lost_toc_path(const SafePath& store_path, PackId pack) {
  return toc_path(store_path, pack) + ".lost";
}

std::optional<PackId> pack_of_name(std::string_view name, std::string_view suffix) {
  if (name.size() != 16 + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  PackId pack = 0;
  const char* end = name.data() + 16;
  auto [stop, failure] = std::from_chars(name.data(), end, pack, 16);
  if (failure != std::errc() || stop != end || pack_name(pack) != name.substr(0, 16)) return std::nullopt;
  return pack;
}

}  // namespace weft
