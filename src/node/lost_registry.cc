// What a registry said that is lost, from what its nodes and its origin know.
#include <cstring>
#include <map>
#include <utility>
#include <variant>

#include "base/sha256.h"
#include "node/mirrored_names.h"
#include "node/origin_names.h"
#include "node/origin_survey.h"
#include "store/uuid.h"
#include "weft/origin.h"

namespace weft {
namespace {

// The origin's id in the form of a node's: no node has it.
std::string publisher_of(const OriginDir& origin) {
  const Digest digest = sha256(std::as_bytes(std::span(origin.uuid())));
  Uuid uuid;
  static_assert(sizeof uuid <= sizeof digest.bytes);
  std::memcpy(&uuid, digest.bytes.data(), sizeof uuid);
  return uuid_text(uuid);
}

LostRegistry of_nodes(const MirroredNames& here) {
  LostRegistry out;
  std::map<OriginNames::Name, VersionRow> rows;
  for (const auto& [name, version] : here.versions) rows.emplace(name, version.version);
  for (const VersionRow* row : in_order(rows))
    out.changes.emplace_back(here.versions.at({row->model_name, row->number}));
  for (const MirroredTag& tag : here.tags) out.changes.emplace_back(tag);
  return out;
}

}  // namespace

Result<LostRegistry> lost_registry(Snapshot& mirror, const std::string& origin, bool accept_loss, Progress& progress) {
  WEFT_TRY(MirroredNames here, mirrored_names(mirror));
  if (origin.empty()) return of_nodes(here);
  WEFT_TRY(OriginDir dir, OriginDir::open_existing(origin));
  const std::string publisher = publisher_of(dir);
  OriginSurvey found(std::move(dir), accept_loss, progress, here);
  WEFT_CHECK(found.look());
  if (found.refuses()) return LostRegistry{{}, found.report()};
  LostRegistry out{found.changes(), {}};
  for (MirrorChange& change : out.changes) {
    auto* version = std::get_if<MirroredVersion>(&change);
    if (version == nullptr) continue;
    version->packs.clear();
    if (version->version.removed) version->tree_nodes = 1;  // a registry has none without; nobody numbers them
    if (!here.versions.contains({version->version.model_name, version->version.number}))
      version->version.publisher = publisher;
  }
  out.report = found.finish();
  return out;
}

}  // namespace weft
