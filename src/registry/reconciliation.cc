#include "registry/reconciliation.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "registry/registry_compare.h"
#include "registry/registry_list.h"
#include "weft/names.h"

namespace weft {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(100);
constexpr int kOriginRoundsMax = 100;  // lists; each follows a change of another node

const RefusalSink kUnread = [](const Error& /*error*/) {};  // the mirror reports unreadable values

void add(const Lacking& lacking, std::vector<std::string>& lines) {
  for (const MirroredVersion& version : lacking.versions) lines.push_back(spec_of(version.version));
  for (const MirroredTag& tag : lacking.tags) lines.push_back(fmt::format("tag {} of {}", tag.name, tag.model));
  for (const PurgedVersion& purge : lacking.purges)
    lines.push_back(fmt::format("purge of {}", spec_of(purge.name.model, purge.name.number)));
}

}  // namespace

Status Reconciliation::wait(const std::function<Result<bool>()>& done, std::string_view what) const {
  const auto end = Mirror::Clock::now() + request_.wait;
  for (;;) {
    WEFT_TRY(const bool is_done, done());
    if (is_done) return {};
    if (request_.cancelled()) return Error{Errc::cancelled, "interrupted; the nodes go on"};
    if (Mirror::Clock::now() >= end) return Error{Errc::timed_out, std::string(what)};
    std::this_thread::sleep_for(kLookAgain);
  }
}

// Compares the registry with this node's store and the origin.
Result<ReconcileReport> Reconciliation::try_out() {
  RegistryList list(own_.keys(), kUnread);
  WEFT_CHECK(list.read(own_.client()));
  WEFT_TRY(const Lacking here, RegistryCompare(list).compare(store_));
  add(here, report_.returned);
  WEFT_TRY(const Lacking there, RegistryCompare(list).compare(request_.at_origin));
  add(there, report_.returned);
  std::ranges::sort(report_.returned);
  report_.returned.erase(std::unique(report_.returned.begin(), report_.returned.end()), report_.returned.end());
  report_.generation = own_.generation();
  return std::move(report_);
}

// True if some node has changes that the registry has refused. The registry may be able to have these changes now, for
// instance because another model was removed.
Result<bool> Reconciliation::has_refusals() {
  WEFT_TRY(const auto shares, own_.shares());
  return std::ranges::any_of(shares, [this](const auto& share) {
    return share.second.generation == own_.generation() && !share.second.refused.empty();
  });
}

// A registry that has lost nothing, and has refused nothing, keeps its generation.
Status Reconciliation::begin() {
  RegistryStatus status;
  mirror_.fill(status);
  if (!store_.cluster())
    return Error{Errc::unreachable, "etcd has not answered yet: this node does not know its cluster"};
  std::uint64_t known = status.generation;
  if (status.connected && status.lost.empty()) {
    report_.generation = own_.generation();
    // While a node is connected, it lacks the generation only if etcd refused its share, for instance for lack of
    // space.
    WEFT_TRY(bool again, has_refusals());
    again = again || known < report_.generation;
    if (!again && own_.read({}).ok()) return {};  // etcd may have a loss that the mirror has not received yet
    known = std::max(known, report_.generation);
  }
  WEFT_TRY(report_.generation, own_.begin_generation(store_.cluster()->cluster, known));
  return {};
}

// Ends at once if etcd refuses what this node brings back.
Status Reconciliation::wait_for_own() {
  return wait(
      [this, begun = Mirror::Clock::now()]() -> Result<bool> {
        RegistryStatus status;
        mirror_.fill(status);
        if (status.connected && status.generation >= report_.generation) return true;
        if (const auto refused = mirror_.refusal_since(begun))
          return Error{refused->code, fmt::format("etcd does not take the versions of this node: {}; nothing is lost, "
                                                  "and the node goes on when etcd takes them",
                                                  refused->message)};
        return false;
      },
      "this node has not brought back its versions in time; it goes on");
}

Status Reconciliation::bring_back_origin() {
  if (request_.at_origin.empty()) return {};
  std::string lacks;
  for (int round = 0; round < kOriginRoundsMax; ++round) {
    if (request_.cancelled()) return Error{Errc::cancelled, "interrupted; the nodes go on"};
    RegistryList list(own_.keys(), kUnread);
    WEFT_CHECK(list.read(own_.client()));
    WEFT_TRY(Lacking lacking, RegistryCompare(list).compare(request_.at_origin));
    lacking.leave_out(impossible_);
    if (lacking.empty()) return {};
    lacks = lacking.text();
    WEFT_CHECK(restore_.reconcile(lacking, list.revision(), impossible_,
                                  [this](const Error& error) { report_.problems.push_back(error.message); }));
  }
  return Error{Errc::busy, fmt::format("other nodes change the registry all the time, and it lacks {} of the origin; "
                                       "try again",
                                       lacks)};
}

// Names live nodes that take longer.
Status Reconciliation::wait_for_others() {
  const auto done = [this]() -> Result<bool> {
    WEFT_TRY(const auto shares, own_.shares());
    report_.waits_for.clear();
    for (const Member& member : mirror_.members())
      if (const auto share = shares.find(member.node);
          share == shares.end() || share->second.generation < report_.generation)
        report_.waits_for.push_back(member.name);
    return report_.waits_for.empty();
  };
  const Status waited = wait(done, "");
  return waited.ok() || waited.error().code == Errc::timed_out ? Status{} : waited;
}

// Adds the changes that the registry has refused to nodes, with the names of the nodes.
Status Reconciliation::read_refused() {
  WEFT_TRY(const auto shares, own_.shares());
  std::map<std::string, std::vector<std::string>> nodes;
  for (const KnownNode& known : mirror_.nodes()) {
    const auto share = shares.find(known.node);
    if (share == shares.end() || share->second.generation != report_.generation) continue;
    for (const RefusedChange& change : share->second.refused) nodes[change.why].push_back(known.name);
    if (const std::size_t more = share->second.others.size(); more != 0)
      report_.problems.push_back(
          fmt::format("node {} has {} further changes that the registry cannot have", known.name, more));
  }
  for (const auto& [why, names] : nodes)
    report_.problems.push_back(fmt::format("{} (only on {})", why, fmt::join(names, ", ")));
  return {};
}

// The records of the registry say which versions were brought back.
Status Reconciliation::read_report() {
  RegistryList list(own_.keys(), kUnread);
  WEFT_CHECK(list.read(own_.client()));
  list.order();
  for (std::vector<MirrorChange> some = list.take(1'000); !some.empty(); some = list.take(1'000))
    for (const MirrorChange& change : some) {
      const auto* version = std::get_if<MirroredVersion>(&change);
      if (version == nullptr || version->returned != report_.generation) continue;
      const VersionRow& row = version->version;
      report_.returned.push_back(spec_of(row));
      if (!version->former.empty()) report_.renumbered.push_back({row.model_name, version->former.back(), row.number});
    }
  return {};
}

Result<ReconcileReport> Reconciliation::run() {
  if (request_.dry_run) return try_out();
  WEFT_CHECK(begin());
  WEFT_CHECK(wait_for_own());
  WEFT_CHECK(bring_back_origin());
  WEFT_CHECK(wait_for_others());
  WEFT_CHECK(read_refused());
  WEFT_CHECK(read_report());
  return std::move(report_);
}

}  // namespace weft
