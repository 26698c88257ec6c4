// Values of the registry's keys: FlatBuffers (registry.fbs), sealed like the store's records and bound to their key.
// Pure. Errc::corrupt, with the key: the value does not verify, or has content that weft never writes.
// Errc::unsupported: another version of weft wrote it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "registry/mirror_mark.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

// 18: a purge says who made it, and a share has the changes beyond those that it names. 17: the share of a node in a
// reconciliation has the changes that the registry refused. 16: the nodes of the cluster have records that outlive
// their leases; versions have the user who published them; tags have an owner, who has protected them; members have a
// process and a place; the keys g and p/; the registry has generations and a history; versions and purges have
// identities; tags of removed versions keep their keys
inline constexpr std::uint32_t kRegistryFormat = 18;

// Inode numbers of a tombstone whose writer did not know them: an origin, or a node that had freed the content.
inline constexpr std::uint64_t kTreeUnknown = 1;

struct RegistryMeta {
  std::uint32_t format = kRegistryFormat;
  std::string cluster;  // its uuid
  std::uint64_t created_ns = 0;
  std::uint64_t generation = 0;  // grows with each reconciliation
  std::string lost = {};         // says which node found that the registry has lost history; "": it has all
};

struct RegistryHead {
  std::uint64_t next_number = 1;
  std::uint64_t created_ns = 0;
  std::optional<VersionKind> kind = {};  // kind of the model's versions; empty if unknown
};

struct RegistryTombstone {
  MirroredVersion version;     // version.removed and .removed_ns are set; `tags` are those of before
  std::uint64_t revision = 0;  // revision of its publish
};

struct RegistryTag {
  std::uint64_t number = 0;  // 0: the tag was deleted
  std::uint64_t time_ns = 0;
  Author by = {};
  Uuid uid = {};  // of the version
  std::uint64_t generation = 0;
  std::uint64_t changed_at = 0;  // revision of the change, if it was brought back; 0: that of the key
  std::string owner = {};        // as TagRow::owner
  RegistryStamp stamp(std::uint64_t mod_revision) const {
    return {generation, changed_at != 0 ? changed_at : mod_revision};
  }
  TagOrder order(std::uint64_t mod_revision) const { return {stamp(mod_revision), time_ns, uid}; }
};

struct RegistryMoment {
  std::uint64_t time_ns = 0;
  Uuid uid = {};  // of a version in memory
};

struct RegistryPurge {
  std::uint64_t time_ns = 0;
  Author by = {};
  Uuid uid = {};  // of the version
};

// Changes that the share of a node names, and those that it lists as numbers after them.
inline constexpr std::size_t kRefusedMax = 500;
inline constexpr std::size_t kRefusedOthersMax = 50'000;

// A change that a node has and the registry cannot have.
struct RefusedChange {
  std::string model;
  std::string tag = {};  // "": a version
  Uuid uid = {};         // of the version; zeros of a tag
  std::string why = {};
  bool purge = false;  // a purge of the version
};

// The reconciliation of a node.
struct RegistryShare {
  std::uint64_t generation = 0;  // the last one that the node has completed
  std::vector<RefusedChange> refused = {};
  std::vector<std::uint64_t> others = {};  // further ones, as Impossible::number_of()
};

// `bound` is RegistryKeys::bound() of the key.
std::vector<std::byte> seal(const RegistryMeta& meta, std::string_view bound);
std::vector<std::byte> seal(const RegistryHead& head, std::string_view bound);
// Without the tags, which have keys of their own, and without model_name and number, which are in the key.
std::vector<std::byte> seal(const MirroredVersion& version, std::string_view bound);
std::vector<std::byte> seal(const RegistryTombstone& tombstone, std::string_view bound);
std::vector<std::byte> seal(const RegistryTag& tag, std::string_view bound);
std::vector<std::byte> seal(const Member& member, std::string_view bound);   // without `node`
std::vector<std::byte> seal(const KnownNode& node, std::string_view bound);  // without `node` and `present`
std::vector<std::byte> seal(const ClaimHolder& holder, std::string_view bound);
std::vector<std::byte> seal(const OriginCollection& collection, std::string_view bound);
std::vector<std::byte> seal(const RegistryMoment& moment, std::string_view bound);
std::vector<std::byte> seal(const RegistryPurge& purge, std::string_view bound);
std::vector<std::byte> seal(const RegistryShare& share, std::string_view bound);

Result<RegistryMeta> open_meta(std::span<const std::byte> value, std::string_view bound);
Result<RegistryHead> open_head(std::span<const std::byte> value, std::string_view bound);
Result<MirroredVersion> open_version(std::span<const std::byte> value, std::string_view bound);
Result<RegistryTombstone> open_tombstone(std::span<const std::byte> value, std::string_view bound);
Result<RegistryTag> open_tag(std::span<const std::byte> value, std::string_view bound);
Result<RegistryMoment> open_moment(std::span<const std::byte> value, std::string_view bound);
Result<RegistryPurge> open_purge(std::span<const std::byte> value, std::string_view bound);
Result<RegistryShare> open_share(std::span<const std::byte> value, std::string_view bound);
Result<Member> open_member(std::span<const std::byte> value, std::string_view bound);
Result<KnownNode> open_node(std::span<const std::byte> value, std::string_view bound);
Result<ClaimHolder> open_claim(std::span<const std::byte> value, std::string_view bound);
Result<OriginCollection> open_collection(std::span<const std::byte> value, std::string_view bound);

// The content of the file STORE/registry.
std::vector<std::byte> seal(const MirrorMark& mark);
Result<MirrorMark> open_mark(std::span<const std::byte> bytes);

}  // namespace weft
