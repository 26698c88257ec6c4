// Restores the names of a registry that was lost or set back, from the stores and the origin that still have them. Any
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "registry/etcd_names.h"
#include "registry/own_registry.h"
#include "registry/registry_compare.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

class EtcdRestore {
 public:
  // Both outlive this. `retry_max`: how long a change is retried after lost races and missing answers.
  EtcdRestore(OwnRegistry& own, EtcdNames& names, std::chrono::milliseconds retry_max)
      : own_(own), names_(names), client_(own.client()), keys_(own.keys()), retry_max_(retry_max) {}

  // See Registry::bring_back().
  Result<bool> bring_back(const MirrorChange& change, bool check_only);
  // Brings back all that the registry lacks according to a list of revision `listed`. A version whose number another
  // version has gets the next number of its model, and the tags of `lacking` follow it. A purged version comes back
  // with its purge. The caller lists and compares again afterwards: others may have changed the registry meanwhile, and
  // then this ends early. Adds to `impossible` each change that the registry cannot have, and calls `refused` with the
  // reason. After other errors the change can succeed later.
  Status reconcile(const Lacking& lacking, std::uint64_t listed, Impossible& impossible, const RefusalSink& refused);
  // Makes the next number of a model at least that of `ahead`.
  Status raise(const std::string& model, const Lacking::Ahead& ahead);

 private:
  using Clock = etcd::Client::Clock;
  // The fate of a version that etcd lacks, if another version has its number.
  enum class OfNumber : std::uint8_t { refused, renumbered };
  struct Placed {
    std::uint64_t number = 0;
    std::uint64_t revision = 0;
  };
  struct Returning;  // etcd_restore.cc
  Result<Returning> read_returning(const MirroredVersion& version);
  static MirroredVersion joined(const MirroredVersion& version, MirroredVersion there);
  Result<std::optional<std::uint64_t>> try_return(const MirroredVersion& version, const Returning& now,
                                                  const PurgedVersion* purge);
  Result<std::optional<std::uint64_t>> stay_removed(const VersionRow& row, const Returning& now);
  Result<std::optional<Placed>> try_place(MirroredVersion version, const Returning& now, OfNumber taken,
                                          const PurgedVersion* purge);
  Result<std::optional<bool>> try_bring_back(const MirroredVersion& version, bool check_only);
  Result<std::optional<bool>> try_bring_back(const MirroredTag& tag, bool check_only);
  Result<std::optional<std::uint64_t>> merge(const MirroredVersion& version, const PurgedVersion* purge,
                                             std::uint64_t listed, std::uint64_t& head_put);

  OwnRegistry& own_;
  EtcdNames& names_;
  etcd::Client& client_;
  const RegistryKeys& keys_;
  const std::chrono::milliseconds retry_max_;
};

}  // namespace weft
