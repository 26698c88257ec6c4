// A reconciliation as one node runs it for a user: begins a generation if the registry has lost history or
// has refused changes, waits until the mirrors of the live nodes have brought back what they have, and brings back what
// the origin has. For one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include "registry/etcd_restore.h"
#include "registry/mirror.h"
#include "registry/own_registry.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

class Reconciliation {
 public:
  // All outlive this.
  Reconciliation(Store& store, OwnRegistry& own, EtcdRestore& restore, Mirror& mirror, const ReconcileRequest& request)
      : store_(store), own_(own), restore_(restore), mirror_(mirror), request_(request) {}

  Result<ReconcileReport> run();

 private:
  Result<ReconcileReport> try_out();  // changes nothing
  Result<bool> has_refusals();
  Status begin();
  Status wait_for_own();
  Status bring_back_origin();
  Status wait_for_others();
  Status read_refused();
  Status read_report();
  Status wait(const std::function<Result<bool>()>& done, std::string_view what) const;

  Store& store_;
  OwnRegistry& own_;
  EtcdRestore& restore_;
  Mirror& mirror_;
  const ReconcileRequest& request_;
  ReconcileReport report_;
  Impossible impossible_;
};

}  // namespace weft
