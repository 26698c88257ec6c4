// Restores the names of a lost registry into a new one, from the stores and the origin that still have them. Any
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "registry/etcd_names.h"
#include "registry/own_registry.h"
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
  // Raises the model's next number to at least `next_number`. A registry that was set back would otherwise use numbers
  // again that this node's store has.
  Status raise(const std::string& model, std::uint64_t next_number);

 private:
  using Clock = etcd::Client::Clock;
  struct Returning;  // etcd_restore.cc
  Result<Returning> read_returning(const MirroredVersion& version);
  Result<std::optional<bool>> try_bring_back(const MirroredVersion& version, bool check_only);
  Result<std::optional<bool>> try_bring_back(const MirroredTag& tag, bool check_only);

  OwnRegistry& own_;
  EtcdNames& names_;
  etcd::Client& client_;
  const RegistryKeys& keys_;
  const std::chrono::milliseconds retry_max_;
};

}  // namespace weft
