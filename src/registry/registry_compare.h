// The differences between a list of the registry and what a store, or an origin, knows. A registry never goes back:
// each state of a version and of a tag has a time or a stamp that grows. So a registry that lacks anything of a store
// that mirrors it has lost history. For one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"
#include "registry/registry_list.h"
#include "registry/registry_records.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store/store.h"
#include "weft/store_rows.h"

namespace weft {

// True if the registry cannot have the change, whenever it is tried. A value that does not verify stops no others.
inline bool is_permanent(const Error& error) {
  return error.code == Errc::exists || error.code == Errc::invalid || error.code == Errc::absent ||
         error.code == Errc::corrupt || error.code == Errc::unsupported;
}

// True if etcd refuses each change, for lack of space or of rights. After other errors etcd may still have made the
// change.
inline bool is_refused(const Error& error) {
  return error.code == Errc::no_space || error.code == Errc::permission;
}

// The changes of a store, or of an origin, that a registry cannot have, such as a version of a name that would hide
// another model's, with the reasons. A record of the registry names the first ones, and has numbers of the rest. For
// one thread.
class Impossible {
 public:
  void add(RefusedChange change) {
    reasons_[{std::move(change.model), std::move(change.tag), change.uid, change.purge}] = std::move(change.why);
  }
  void add(const VersionRow& version, std::string why) { add({version.model_name, {}, version.uid, std::move(why)}); }
  void add(const MirroredTag& tag, std::string why) { add({tag.model, tag.name, {}, std::move(why)}); }
  void add(const PurgedVersion& purge, std::string why) {
    add({purge.name.model, {}, purge.uid, std::move(why), true});
  }
  void add(const RegistryShare& share);
  bool has(const VersionRow& version) const { return has(Key{version.model_name, {}, version.uid, false}); }
  // Also if the tag leads to such a version.
  bool has(const MirroredTag& tag) const {
    return has(Key{tag.model, tag.name, {}, false}) || (!tag.uid.empty() && has(Key{tag.model, {}, tag.uid, false}));
  }
  bool has(const PurgedVersion& purge) const { return has(Key{purge.name.model, {}, purge.uid, true}); }
  bool empty() const { return reasons_.empty() && others_.empty(); }
  // Sets the changes of a share: the first ones with shortened reasons, and numbers of as many further ones as a record
  // takes.
  void list(RegistryShare& share) const;

  static std::string one_line(const std::string& why) { return printable(why, kReasonMax); }

 private:
  static constexpr std::size_t kReasonMax = 300;
  using Key = std::tuple<std::string, std::string, Uuid, bool>;  // model, tag, identity, a purge

  static std::uint64_t number_of(const Key& key);
  bool has(const Key& key) const {
    return reasons_.contains(key) || (!others_.empty() && others_.contains(number_of(key)));
  }

  std::map<Key, std::string> reasons_;
  std::set<std::uint64_t> others_;  // of a share: changes without reasons
};

// The changes that etcd lacks, in an order in which they can be written. A version that etcd has under another number
// has that number here. Parents and tags still have the numbers of the store.
struct Lacking {
  std::vector<MirroredVersion> versions;  // etcd lacks them, or has an earlier state of them
  std::vector<MirroredTag> tags;          // etcd has earlier settings, or none
  // The models of these versions whose next numbers in etcd are too small.
  struct Ahead {
    std::uint64_t next_number = 0;  // must be at least this
    std::uint64_t created_ns = 0;   // of the model
  };
  std::map<std::string, Ahead> ahead;
  std::map<VersionKey, PurgedVersion> purged;  // of these versions, those that are purged
  std::vector<PurgedVersion> purges;           // of versions that etcd has: it lacks their keys
  std::map<VersionName, std::uint64_t> moved;  // versions that etcd has under another number than the store
  bool empty() const { return count() == 0; }
  std::size_t count() const;  // numbers count only if nothing else is lacking
  void leave_out(const Impossible& impossible);
  std::string text() const;  // "3 changes, such as a@2"
};

// True if `one` is a later state of a version than `other`: removed or live. The state with the larger time is true.
bool is_decided_later(const VersionRow& one, const VersionRow& other);

class RegistryCompare {
 public:
  explicit RegistryCompare(RegistryList& list) : list_(list), keys_(list.keys()) {}

  // Marks the items that the store has, and finds what the list lacks. Only the caller may change the store meanwhile.
  Result<Lacking> compare(Store& store);
  // The same for versions, live and removed, and then tags: of an origin.
  Result<Lacking> compare(std::span<const MirrorChange> changes);

 private:
  enum class Has : std::uint8_t { all, less, nothing, unreadable };  // of the registry about a version
  Has look(const VersionRow& row, std::uint64_t& number);
  Has compare_state(const VersionRow& row, const MirroredVersion& said, RegistryList::Item& item);
  void note_ahead(const std::string& model, const Lacking::Ahead& wanted);
  Status compare_model(Store& store, const ModelRow& model);
  Status compare_tags(Store& store, const ModelRow& model, const std::map<std::uint64_t, Uuid>& identities);
  Status compare_memory(Store& store);
  Status compare_purges(Store& store);
  void read_authors(Store& store);
  Result<MirroredVersion> completed(Store& store, VersionRow row) const;
  void compare_tag(MirroredTag tag);
  bool will_be_live(const std::string& model, const Uuid& uid);

  RegistryList& list_;
  const RegistryKeys& keys_;
  Lacking lacking_;
  std::vector<VersionRow> rows_;  // of the store, with their numbers in the registry: for lacking_.versions
  // Authors of removals and purges that etcd lacks, by model and time.
  std::map<std::pair<std::string, std::uint64_t>, Author> removers_, purgers_;
  std::set<VersionKey> lacking_live_;  // of them, those that will be live
};

}  // namespace weft
