#include "registry/node_records.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "os/sys.h"
#include "registry/registry_records.h"

namespace weft {
namespace {

constexpr unsigned kDrainTries = 8;  // the node itself puts its record every few minutes

}  // namespace

// A node that joins again at the same time puts its record again with the next lease or some minutes later.
Status delete_node_record(OwnRegistry& own, const std::vector<KnownNode>& known, const std::string& node) {
  const auto found = std::ranges::find(known, node, &KnownNode::node);
  if (found == known.end()) return Error{Errc::not_found, fmt::format("the cluster knows no node {}", node)};
  if (found->present) return Error{Errc::busy, fmt::format("{} is a member of the cluster", found->name)};
  etcd::Txn txn;
  txn.compares.push_back({{own.keys().member(node), {}}, etcd::Target::version, etcd::Relation::equal, 0});
  txn.then.emplace_back(etcd::Delete{{own.keys().node(node), {}}});
  WEFT_TRY(const etcd::TxnAnswer answer, own.change(std::move(txn)));
  if (answer.succeeded) return {};
  return Error{Errc::busy, fmt::format("{} has just come back to the cluster", found->name)};
}

// The node itself may put its record at the same time.
Status record_drain(OwnRegistry& own, const std::string& node) {
  const std::string key = own.keys().node(node);
  for (unsigned tries = 1;; ++tries) {
    WEFT_TRY(const etcd::RangeAnswer now, own.client().range(etcd::query_of(key)));
    if (now.items.empty()) return Error{Errc::not_found, fmt::format("the cluster knows no node {}", node)};
    WEFT_TRY(KnownNode record, open_node(now.items[0].value, own.keys().bound(key)));
    record.drained_ns = now_ns();
    etcd::Txn txn;
    txn.compares.push_back({{key, {}}, etcd::Target::mod_revision, etcd::Relation::equal, now.items[0].mod_revision});
    txn.then.emplace_back(etcd::Put{key, seal(record, own.keys().bound(key)), 0});
    WEFT_TRY(const etcd::TxnAnswer answer, own.change(std::move(txn)));
    if (answer.succeeded) return {};
    if (tries == kDrainTries) return Error{Errc::busy, fmt::format("{}: it changes all the time", key)};
  }
}

Status delete_own_records(OwnRegistry& own, const std::string& node) {
  etcd::Txn txn;
  txn.then.emplace_back(etcd::Delete{{own.keys().member(node), {}}});
  txn.then.emplace_back(etcd::Delete{{own.keys().node(node), {}}});
  WEFT_CHECK(own.change(std::move(txn)));
  return {};
}

}  // namespace weft
