// Changes of names in etcd: each is one transaction that holds only while what was read before it still does. Two nodes
// that change one model at once are told apart by the revision of its head; who loses reads again. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "registry/etcd_client.h"
#include "registry/registry_keys.h"
#include "registry/registry_records.h"
#include "weft/cluster_store.h"
#include "weft/result.h"

namespace weft {

struct PublishWish {
  MirroredVersion version;          // number 0: it is given here
  std::vector<std::string> tags;    // to set to it
  std::vector<VersionName> relies;  // must live when it is published
  std::uint64_t number_min = 0;  // this node knows of numbers before it: a registry set back gives none of them again
};

struct PublishDecision {
  std::uint64_t number = 0;
  bool made = false;           // false: the newest live version, `number`, has this content already
  std::uint64_t revision = 0;  // a mirror that is so far shows it, with its tags
};

class EtcdNames {
 public:
  // `retry_max`: how long a change is tried again, after lost races and answers that did not come.
  EtcdNames(etcd::Client& client, const RegistryKeys& keys, std::chrono::milliseconds retry_max)
      : client_(client), keys_(keys), retry_max_(retry_max) {}

  // Agrees on what the cluster is: made by the first node that comes and is of none yet (`own` is ""). Errc::not_found:
  // there is none, and this node's is `own`: its registry was lost, or is elsewhere. From then on each change is made
  // in the registry that was found, or fails in the same way.
  Result<RegistryMeta> agree(std::string_view own, etcd::Header& header);

  // What a publish of the model is decided by, read while it is still being prepared; null where that fails.
  struct Facts;  // etcd_publish.cc
  std::shared_ptr<const Facts> foresee(const std::string& model);
  // The same without a message, of a model that was published here before: `newest` is its newest live version, and
  // `next_number` that of its next, as the mirror has them; null unless these go with the head that etcd had last, as
  // far as anybody here knows.
  std::shared_ptr<const Facts> recall(const std::string& model, std::uint64_t next_number, const VersionRow& newest);
  // The watch brought this head.
  void saw_head(const std::string& model, const etcd::Event& event);
  // Errc::not_found: `relies` or what a tag says is gone; Errc::exists: the name would hide another model's. `ahead`
  // may be null; where it is out of date by now, it is read again.
  Result<PublishDecision> publish(const PublishWish& wish, std::shared_ptr<const Facts> ahead = nullptr);
  // The revision. An empty number deletes the tag.
  Result<std::uint64_t> set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number);
  // `lost`: why, if its bytes were lost.
  Result<std::uint64_t> remove_version(std::string_view model, std::uint64_t number, std::string_view lost = {});
  // Its bytes are on a disk. The revision; fine when that is known, or there is no such version.
  Result<std::uint64_t> keep_version(std::string_view model, std::uint64_t number);
  // As Registry::bring_back().
  Result<bool> bring_back(const MirrorChange& change, bool look);
  // No number before `next_number` is given again: somebody here knows it, and a registry that was set back does not.
  Status raise(const std::string& model, std::uint64_t next_number);
  // A revision newer than all that was committed before the call; the watch brings it. `node` is ours.
  // It says `value`, that no other says.
  Result<std::uint64_t> barrier(std::string_view node, std::string_view value);

 private:
  using Clock = etcd::Client::Clock;
  std::vector<std::byte> ours();
  void found_ours(std::vector<std::byte> value);
  Status check_ours(std::span<const etcd::KeyValue> found, std::span<const std::byte> ours) const;
  Result<etcd::TxnAnswer> change(etcd::Txn txn);
  Result<Facts> read_facts(const std::string& model, std::uint64_t tried = 0);
  void read_tried(const etcd::RangeAnswer& live, const etcd::RangeAnswer& removed, Facts& facts);
  Status check_shows(const std::string& model);  // Errc::exists: its name would hide another
  Result<Facts> facts_for(const PublishWish& wish, std::shared_ptr<const Facts>& ahead, std::uint64_t tried);
  Status check_relies(std::span<const VersionName> relies);
  Result<PublishDecision> repeat(const PublishWish& wish, const Facts& facts);
  Result<std::optional<PublishDecision>> try_publish(const PublishWish& wish, const Facts& facts, std::uint64_t& tried);
  Result<std::optional<std::uint64_t>> try_remove(std::string_view model, std::uint64_t number, std::string_view lost,
                                                  bool may_be_done);
  Result<std::optional<std::uint64_t>> try_set_tag(std::string_view model, std::string_view tag, std::uint64_t number);
  struct Returning;  // etcd_restore.cc
  Result<Returning> read_returning(const MirroredVersion& version);
  Result<std::optional<bool>> try_bring_back(const MirroredVersion& version, bool look);
  Result<std::optional<bool>> try_bring_back(const MirroredTag& tag, bool look);
  Result<std::optional<std::uint64_t>> try_delete_tag(std::string_view model, std::string_view tag, bool may_be_done);
  Result<std::vector<std::string>> tags_at(const etcd::RangeAnswer& tags, std::uint64_t number);
  std::string_view bound(std::string_view key) const { return keys_.bound(key); }
  void remember(const std::string& model, const RegistryHead& head, std::uint64_t revision);
  void forget(const std::string& model);

  struct KnownHead {
    RegistryHead head;
    std::uint64_t revision = 0;
  };
  etcd::Client& client_;
  const RegistryKeys& keys_;
  const std::chrono::milliseconds retry_max_;
  std::mutex mutex_;
  std::map<std::string, KnownHead> heads_;  // of models that were published here; guarded by mutex_
  std::vector<std::byte> ours_;             // what the registry says it is; empty: not agreed on yet; guarded by mutex_
};

}  // namespace weft
