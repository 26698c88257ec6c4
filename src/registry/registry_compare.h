// The differences between a list of the registry and what a store, or an origin, knows. A registry never goes back:
// each state of a version and of a tag has a time or a stamp that grows. So a registry that lacks anything of a store
// that mirrors it has lost history. For one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "registry/impossible.h"
#include "registry/registry_list.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store/store.h"
#include "weft/store_rows.h"

namespace weft {

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
  void read_removers(Store& store);
  Result<MirroredVersion> completed(Store& store, VersionRow row) const;
  void compare_tag(MirroredTag tag);
  bool will_be_live(const std::string& model, const Uuid& uid);

  RegistryList& list_;
  const RegistryKeys& keys_;
  Lacking lacking_;
  std::vector<VersionRow> rows_;  // of the store, with their numbers in the registry: for lacking_.versions
  std::map<std::pair<std::string, std::uint64_t>, Author> removers_;  // by model and time: of its removed ones
  std::set<VersionKey> lacking_live_;                                 // of them, those that will be live
};

}  // namespace weft
