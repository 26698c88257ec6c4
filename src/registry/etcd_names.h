// Changes of names in etcd. Each is one transaction, which compares the keys that were read for it. If two nodes change
// a model at the same time, the revision of the model's head decides, and the loser reads again. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "registry/etcd/etcd_client.h"
#include "registry/own_registry.h"
#include "registry/registry_keys.h"
#include "registry/registry_records.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

struct PublishWish {
  MirroredVersion version;          // number 0: publish() allocates it; else the version keeps its number
  std::vector<std::string> tags;    // tags to set on the version
  Author by;                        // recorded with the tags
  std::vector<VersionName> relies;  // versions that must be live at the publish
  std::uint64_t number_min = 0;     // this node has lower numbers, which a registry set back must not use again
};

struct PublishDecision {
  std::uint64_t number = 0;
  bool made = false;           // false: the newest live version, `number`, has this content already
  std::uint64_t revision = 0;  // a mirror at this revision shows the version with its tags
};

struct UndeleteWish {
  std::vector<VersionName> relies;  // versions that must be live at the undelete
  bool in_memory = false;           // as MirroredVersion::in_memory
  bool from_origin = false;         // the content comes from the origin
  Author by = {};                   // recorded with the tags
  Uuid uid = {};                    // of the version
  // As VersionRow::undeleted_ns; 0: now. Else Errc::exists also if the version was removed at that time or later.
  std::uint64_t undeleted_ns = 0;
};
struct UndeleteDecision {
  UndeletedVersion done;
  std::uint64_t revision = 0;
};

struct EtcdRemoval {
  Tagged tagged = Tagged::removed;
  std::string_view lost;  // the reason, if the version's bytes were lost
  Author by = {};
  Uuid uid = {};  // of the version
  // As VersionRow::removed_ns; 0: now. Else Errc::exists if the version was undeleted later.
  std::uint64_t removed_ns = 0;
  std::optional<PurgedVersion> purge = {};  // the version is purged in the same transaction
};

// Changes of a version take its identity as the caller knows it. If another version has the number, they fail with
// Errc::exists. Zeros mean the version that has the number, whichever it is.
class EtcdNames {
 public:
  // `own` outlives this. `retry_max`: how long a change is retried after lost races and missing answers.
  EtcdNames(OwnRegistry& own, std::chrono::milliseconds retry_max)
      : own_(own), client_(own.client()), keys_(own.keys()), retry_max_(retry_max) {}

  // Reads the facts that decide a publish of the model, while the publish is still being prepared; null after an error.
  struct Facts;  // etcd_facts.h
  std::shared_ptr<const Facts> foresee(const std::string& model);
  // Like foresee(), without a request, for a model that this node has published before. `newest` is its newest live
  // version and `next_number` its next number in the mirror. Null unless `next_number` matches the newest head of the
  // model that this node has seen.
  std::shared_ptr<const Facts> recall(const std::string& model, std::uint64_t next_number, const VersionRow& newest);
  // Publishes a version. Errc::not_found: a version of `relies`, or one to be tagged, was removed. Errc::exists: the
  // name would hide another model's. `ahead` may be null, or out of date; the facts are then read again.
  Result<PublishDecision> publish(const PublishWish& wish, std::shared_ptr<const Facts> ahead = nullptr);
  // Returns the revision of the change. Deletes the tag if there is no number.
  Result<std::uint64_t> set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number,
                                const Author& by = {}, const Uuid& uid = {});
  // As Store::protect_tag. Returns the revision at which the tag is so.
  Result<std::uint64_t> protect_tag(std::string_view model, std::string_view tag, bool on, const Author& by);
  Result<std::uint64_t> describe(std::string_view model, std::uint64_t number, const DescriptionChange& change,
                                 const Uuid& uid = {});
  Result<std::uint64_t> remove_version(std::string_view model, std::uint64_t number, const EtcdRemoval& removal = {});
  // Makes a removed version live again, with its tags that lead to no other version. Errc::exists: it is not removed,
  // or the name would hide another model's or has another kind now. Errc::not_found: no such version, or one of
  // `relies`. Errc::absent: with `from_origin`, a collection of the origin has freed the
  // content, or may have; or the version was purged.
  Result<UndeleteDecision> undelete(const std::string& model, std::uint64_t number, const UndeleteWish& wish);
  // Errc::absent: the removed version was purged. The message says when and by whom.
  Status check_unpurged(const VersionRow& version);
  // Records that the version's bytes are on a disk, and returns the revision. No error if that is recorded already or
  // the version does not exist.
  Result<std::uint64_t> keep_version(std::string_view model, std::uint64_t number, const Uuid& uid = {});
  // Errc::exists: a new version of this name would hide another model, or the live versions have another kind.
  Status check_shows(const std::string& model, VersionKind kind);
  // Adds the condition that a new version of this name hides no other model.
  void compare_shows(etcd::Txn& txn, const std::string& model) const;

 private:
  using Clock = etcd::Client::Clock;
  Result<Facts> read_facts(const std::string& model, std::uint64_t tried = 0);
  void read_tried(const etcd::RangeAnswer& live, const etcd::RangeAnswer& removed, Facts& facts);
  Result<Facts> facts_for(const PublishWish& wish, std::shared_ptr<const Facts>& ahead, std::uint64_t tried);
  Status check_relies(std::span<const VersionName> relies);
  void compare_facts(etcd::Txn& txn, const std::string& model, const Facts& facts,
                     std::span<const VersionName> relies) const;
  Result<std::optional<std::uint64_t>> try_undelete(const std::string& model, std::uint64_t number,
                                                    const UndeleteWish& wish, UndeletedVersion& done, bool may_be_done);
  Status check_uncollected(const VersionRow& row, const etcd::RangeAnswer& collection) const;
  Status check_unpurged(const VersionName& name, const etcd::RangeAnswer& purge) const;
  Result<PublishDecision> repeat(const PublishWish& wish, const Facts& facts);
  Result<std::optional<PublishDecision>> try_publish(const PublishWish& wish, const Facts& facts, std::uint64_t& tried);
  Result<std::optional<std::uint64_t>> try_remove(std::string_view model, std::uint64_t number,
                                                  const EtcdRemoval& removal, bool may_be_done);
  Result<std::optional<std::uint64_t>> try_set_tag(std::string_view model, std::string_view tag, RegistryTag now,
                                                   bool may_be_done);
  Result<std::optional<std::uint64_t>> try_describe(std::string_view model, std::uint64_t number,
                                                    const DescriptionChange& change, const Uuid& uid);
  Result<std::optional<std::uint64_t>> try_protect_tag(std::string_view model, std::string_view tag, bool on,
                                                       const Author& by);
  Result<std::optional<std::uint64_t>> try_keep(std::string_view model, std::uint64_t number, const Uuid& uid);
  Status set_tags(etcd::Txn& txn, const PublishWish& wish, std::uint64_t number);
  Result<std::vector<std::pair<std::string, RegistryTag>>> tags_at(const etcd::RangeAnswer& tags,
                                                                   std::string_view model, std::uint64_t number,
                                                                   const Author& by) const;
  std::string_view bound(std::string_view key) const { return keys_.bound(key); }

  OwnRegistry& own_;
  etcd::Client& client_;
  const RegistryKeys& keys_;
  const std::chrono::milliseconds retry_max_;
};

}  // namespace weft
