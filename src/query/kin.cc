#include "query/kin.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "base/limits.h"
#include "weft/node.h"

namespace weft {
namespace {

class KinWalk {
 public:
  KinWalk(Snapshot& snapshot, KinWay way, std::size_t shown_max, std::uint64_t clock)
      : snapshot_(snapshot), way_(way), shown_max_(shown_max), clock_(clock) {}

  Result<GatheredKin> run(VersionId version) {
    find(version);
    while (!queue_.empty()) {
      if (visited_ == limits::kKinCountedMax) {
        out_.graph.uncounted = true;
        break;
      }
      const VersionId next = queue_.front();
      queue_.pop_front();
      WEFT_CHECK(visit(next));
    }
    return std::move(out_);
  }

 private:
  void find(VersionId version) {
    if (version != 0 && seen_.insert(version).second) queue_.push_back(version);
  }

  void note(std::uint64_t tick, std::uint64_t time_ns) {
    if (tick < out_.clock) return;
    out_.clock = tick;
    out_.changed_ns = time_ns;
  }

  Status visit(VersionId id) {
    auto row = snapshot_.version(id);
    if (!row.ok() && row.error().code == Errc::not_found && visited_ > 0) return {};  // its record was lost
    if (!row.ok()) return std::move(row).error();
    if (row->born > clock_) return {};
    ++visited_;
    const bool removed = row->removed && row->died <= clock_;
    note(row->born, row->time_ns);
    if (removed) note(row->died, row->removed_ns);
    if (way_ != KinWay::descendants)
      for (const ParentRef& parent : row->parents) find(parent.id);
    if (way_ != KinWay::ancestors) {
      WEFT_TRY(const auto children, snapshot_.children(id, limits::kKinCountedMax));
      for (const VersionId child : children) find(child);
    }
    if (out_.graph.versions.size() < shown_max_)
      out_.graph.versions.push_back(version_of(*row, removed));
    else
      ++out_.graph.left_out;
    return {};
  }

  static KinVersion version_of(const VersionRow& row, bool removed) {
    return {row.id, facts_of(row), row.logical_bytes, row.tensors, row.tensor_bytes, removed ? row.removed_ns : 0};
  }

  Snapshot& snapshot_;
  const KinWay way_;
  const std::size_t shown_max_;
  const std::uint64_t clock_;
  std::size_t visited_ = 0;
  std::deque<VersionId> queue_;
  std::unordered_set<VersionId> seen_;
  GatheredKin out_;
};

}  // namespace

Result<GatheredKin> gather_kin(Snapshot& snapshot, VersionId version, KinWay way, std::size_t shown_max,
                               std::uint64_t clock) {
  return KinWalk(snapshot, way, shown_max, clock).run(version);
}

Result<KinGraph> kin_of(Store& store, const VersionRow& version, KinWay way) {
  const std::size_t shown_max = way == KinWay::both ? limits::kKinDrawnMax : limits::kKinCountedMax;
  WEFT_TRY(const auto snapshot, store.snapshot());
  WEFT_TRY(GatheredKin kin, gather_kin(*snapshot, version.id, way, shown_max));
  return std::move(kin.graph);
}

namespace {

// By tensor ordinal: the version that first had the tensor's content, as "MODEL@NUMBER".
Result<std::vector<std::string>> owners_of(Store& store, const VersionRow& version) {
  WEFT_TRY(const auto snapshot, store.snapshot());
  WEFT_TRY(const LocalRow local, snapshot->local(version.id));
  std::unordered_map<VersionId, std::string> names;
  std::vector<std::string> owners;
  owners.reserve(local.view_inos.size());
  for (const Ino ino : local.view_inos) {
    WEFT_TRY(const InodeRow view, snapshot->inode(ino));
    auto [name, unknown] = names.try_emplace(view.view_first, "-");
    if (unknown && view.view_first != 0) {
      WEFT_TRY(const VersionRow first, snapshot->version(view.view_first));
      name->second = spec_of(first.model_name, first.number);
    }
    owners.push_back(name->second);
  }
  return owners;
}

}  // namespace

Result<std::string> owners_text(Store& store, const VersionRow& version) {
  WEFT_TRY(const LoadedVersion loaded, load_version(store, version));
  const Manifest& manifest = loaded.tree->manifest();
  WEFT_TRY(const auto owners, owners_of(store, version));
  WEFT_TRY(const auto labels, tensor_labels(manifest));
  if (owners.size() != labels.size())
    return Error{Errc::corrupt, fmt::format("{}@{}: expected {} views, got {} (run `weft fsck --rebuild`)",
                                            version.model_name, version.number, labels.size(), owners.size())};
  return render_owners(manifest, labels, owners);
}

}  // namespace weft
