#include "query/kin.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "base/limits.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

class KinWalk {
 public:
  KinWalk(Store& store, KinWay way, std::size_t shown_max, std::uint64_t clock)
      : renewed_(store), way_(way), shown_max_(shown_max), clock_(clock) {}

  // The clock of the first snapshot bounds the walk, so that later snapshots add nothing.
  Result<GatheredKin> run(VersionId version) {
    WEFT_TRY(Snapshot * first, renewed_.get());
    clock_ = std::min(clock_, first->lineage_clock());
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

  // Queues the children of a version. Stops after limits::kKinCountedMax children, because the walk visits no more.
  Status find_children(VersionId id) {
    std::size_t count = 0;
    return walk(renewed_, limits::kRowsPerSnapshot, [&](Snapshot* now, std::string_view from) -> Result<std::string> {
      WEFT_TRY(Page<VersionId> page, now->children(id, from));
      for (const VersionId child : page.rows) find(child);
      count += page.rows.size();
      return count < limits::kKinCountedMax ? std::move(page.next) : std::string();
    });
  }

  Status visit(VersionId id) {
    WEFT_TRY(Snapshot * now, renewed_.get());
    auto row = now->version(id);
    if (!row.ok() && row.error().code == Errc::not_found && visited_ > 0) return {};  // the journal lost its record
    if (!row.ok()) return std::move(row).error();
    if (row->born > clock_) return {};
    ++visited_;
    row->removed = row->removed && row->died <= clock_;
    note(row->born, row->time_ns);
    if (row->removed) note(row->died, row->removed_ns);
    if (row->described <= clock_) note(row->described, row->described_ns);
    if (row->renamed <= clock_) note(row->renamed, row->renamed_ns);
    if (row->undeleted <= clock_) note(row->undeleted, row->undeleted_ns);
    if (way_ != KinWay::descendants)
      for (const ParentRef& parent : row->parents) find(parent.id);
    if (way_ != KinWay::ancestors) WEFT_CHECK(find_children(id));
    if (out_.graph.versions.size() < shown_max_)
      out_.graph.versions.push_back(std::move(*row));
    else
      ++out_.graph.left_out;
    return {};
  }

  Renewed renewed_;
  const KinWay way_;
  const std::size_t shown_max_;
  std::uint64_t clock_;
  std::size_t visited_ = 0;
  std::deque<VersionId> queue_;
  std::unordered_set<VersionId> seen_;
  GatheredKin out_;
};

}  // namespace

Result<GatheredKin> gather_kin(Store& store, VersionId version, KinWay way, std::size_t shown_max,
                               std::uint64_t clock) {
  return KinWalk(store, way, shown_max, clock).run(version);
}

Result<KinGraph> kin_of(Store& store, const VersionRow& version, KinWay way) {
  const std::size_t shown_max = way == KinWay::both ? limits::kKinDrawnMax : limits::kKinCountedMax;
  WEFT_TRY(GatheredKin kin, gather_kin(store, version.id, way, shown_max));
  if (way == KinWay::both) WEFT_CHECK(add_marks(store, kin.graph));
  return std::move(kin.graph);
}

Status add_marks(Store& store, KinGraph& kin) {
  Renewed renewed(store);
  kin.marks.assign(kin.versions.size(), {});
  for (std::size_t i = 0; i < kin.versions.size(); ++i) {
    const VersionRow& version = kin.versions[i];
    if (version.removed) continue;
    WEFT_TRY(kin.marks[i].tags, tags_of(renewed, version));
    WEFT_TRY(Snapshot * now, renewed.get());
    WEFT_TRY(const bool bare, now->is_bare(version.id));
    if (bare) continue;
    WEFT_TRY(kin.marks[i].new_bytes, owned_bytes(renewed, version.id));
  }
  return {};
}

namespace {

// Returns, by tensor ordinal, the version that first had the tensor's content, as "MODEL@NUMBER".
Result<std::vector<std::string>> owners_of(Store& store, const VersionRow& version) {
  Renewed renewed(store);
  WEFT_TRY(Snapshot * begin, renewed.get());
  WEFT_TRY(const LocalRow local, begin->local(version.id));
  std::unordered_map<VersionId, std::string> names;
  std::vector<std::string> owners;
  owners.reserve(local.view_inos.size());
  for (const Ino ino : local.view_inos) {
    WEFT_TRY(Snapshot * now, renewed.get(2));
    WEFT_TRY(const InodeRow view, now->inode(ino));
    auto [name, unknown] = names.try_emplace(view.view_first, "-");
    if (unknown && view.view_first != 0) {
      WEFT_TRY(const VersionRow first, now->version(view.view_first));
      name->second = spec_of(first.model_name, first.number);
    }
    owners.push_back(name->second);
  }
  return owners;
}

}  // namespace

Result<std::string> owners_text(Store& store, ManifestResolver& resolver, const VersionRow& version) {
  WEFT_TRY(const Manifest manifest, load_manifest(store, resolver, version));
  WEFT_TRY(const auto owners, owners_of(store, version));
  WEFT_TRY(const auto labels, tensor_labels(manifest));
  if (owners.size() != labels.size())
    return Error{Errc::corrupt, fmt::format("{}@{}: expected {} views, got {} (run `weft fsck --rebuild`)",
                                            version.model_name, version.number, labels.size(), owners.size())};
  return render_owners(manifest, labels, owners);
}

}  // namespace weft
