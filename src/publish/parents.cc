#include "publish/parents.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/limits.h"
#include "publish/mounted_specs.h"
#include "weft/model/lineage.h"
#include "weft/names.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

// Counts the bytes of a version's largest tensors that other versions hold, by some of each tensor's holders.
class Tally {
 public:
  // Returns the best versions by all tensors, and the best by those tensors alone whose holders are all known. A tensor
  // that most versions hold says little, and not all of its holders are read.
  std::set<VersionId> best(std::size_t count_max) const {
    std::set<VersionId> out;
    add_best(&Bytes::all, count_max, out);
    add_best(&Bytes::rare, count_max, out);
    return out;
  }

  Status count(Renewed& renewed, const Manifest& child) {
    for (const ContentId& id : largest_tensors(child)) {
      WEFT_TRY(Snapshot * now, renewed.get(2 * limits::kKinHoldersMax));
      WEFT_CHECK(count_holders(*now, id));
    }
    return {};
  }

 private:
  struct Bytes {
    std::uint64_t all = 0;
    std::uint64_t rare = 0;
  };

  static std::vector<ContentId> largest_tensors(const Manifest& manifest) {
    std::vector<ContentId> largest;
    const auto keep_largest = [&largest] {
      std::ranges::sort(largest, std::greater());  // by length first
      largest.erase(std::unique(largest.begin(), largest.end()), largest.end());
      if (largest.size() > limits::kKinTensorsMax) largest.resize(limits::kKinTensorsMax);
    };
    const auto add = [&](const ContentId& id) {
      largest.push_back(id);
      if (largest.size() == 4 * limits::kKinTensorsMax) keep_largest();
    };
    for (const File& file : manifest.files)
      for (const Tensor& tensor : file.tensors) {
        if (tensor.extent != kNoExtent) add(file.extents[tensor.extent].id);
        for (const TensorRun& run : tensor.runs) add(manifest.files[run.file].extents[run.extent].id);
      }
    keep_largest();
    return largest;
  }

  Status count_holders(Snapshot& snapshot, const ContentId& id) {
    WEFT_TRY(const auto holders, snapshot.some_holders(id, limits::kKinHoldersMax));
    const bool rare = holders.size() < 2 * limits::kKinHoldersMax;
    VersionId last = 0;
    for (const auto& [version, file] : holders) {
      if (version == last) continue;  // another file of the same version
      last = version;
      bytes_[version].all += id.length;
      if (rare) bytes_[version].rare += id.length;
    }
    return {};
  }

  void add_best(std::uint64_t Bytes::*what, std::size_t count_max, std::set<VersionId>& out) const {
    std::vector<std::pair<std::uint64_t, VersionId>> ranked;
    ranked.reserve(bytes_.size());
    for (const auto& [version, bytes] : bytes_) ranked.emplace_back(bytes.*what, version);
    const std::size_t count = std::min(count_max, ranked.size());
    const auto end = ranked.begin() + static_cast<std::ptrdiff_t>(count);
    std::partial_sort(ranked.begin(), end, ranked.end(), std::greater());
    for (auto it = ranked.begin(); it != end; ++it)
      if (it->first > 0) out.insert(it->second);
  }

  std::map<VersionId, Bytes> bytes_;
};

struct Candidate {
  VersionRow row;
  Shared shared;
};

class ParentChoice {
 public:
  ParentChoice(Store& store, ManifestResolver& resolver, const std::string& child_name, const Manifest& child)
      : store_(store), resolver_(resolver), child_name_(child_name), child_(child) {}

  Result<Parents> choose(const ParentWishes& wishes) {
    for (const VersionRow& row : wishes.declared) WEFT_CHECK(add_declared(row));
    WEFT_TRY(const std::vector<Base> bases, bases_of(wishes));
    for (const Base& base : bases) WEFT_CHECK(add_base(base));
    if (parents_.refs.empty() && wishes.find_part) WEFT_CHECK(add_found(*wishes.find_part));
    return std::move(parents_);
  }

 private:
  struct Base {
    std::string text;  // as a file names it
    std::string spec;  // MODEL[@V] if the text is a path in a mount, else the text
  };

  // Returns each base once. Those that name one version come first: another file may name its model alone.
  Result<std::vector<Base>> bases_of(const ParentWishes& wishes) const {
    std::vector<Base> bases;
    WEFT_TRY(const auto snapshot, store_.snapshot());
    for (const std::string& text : wishes.bases) {
      WEFT_TRY(auto mounted, mounted_spec(*snapshot, wishes.mounts, text));
      std::string spec = std::move(mounted).value_or(text);
      if (std::ranges::find(bases, spec, &Base::spec) == bases.end()) bases.push_back({text, std::move(spec)});
    }
    std::stable_partition(bases.begin(), bases.end(), [](const Base& base) {
      const auto spec = parse_version_spec(base.spec);
      return spec.ok() && !spec->version.empty();
    });
    return bases;
  }

  void add(const VersionRow& row, const Shared& shared, bool declared) {
    if (parents_.refs.size() >= limits::kParentsMax) return;
    parents_.refs.push_back({row.model_name, row.number, declared, shared.tensors, shared.bytes});
  }

  Status add_declared(const VersionRow& row) {
    WEFT_TRY(Shared shared, compare(row));
    add(row, shared, true);
    return {};
  }

  Result<Shared> compare(const VersionRow& row) {
    auto reader = manifest_of(store_, resolver_, row);
    if (!reader.ok()) return Error{reader.error().code, fmt::format("parent {}", reader.error().message)};
    WEFT_TRY(Manifest manifest, decode_manifest((*reader)->bytes()));
    return shared_tensors(child_, manifest);
  }

  bool has_parent_of(std::string_view model) const {
    return std::ranges::any_of(parents_.refs, [&](const ParentRef& ref) { return ref.model == model; });
  }

  // The base names a stored model, or is MODEL@V; any other name counts as not stored here.
  Status add_base(const Base& base) {
    const auto spec = parse_version_spec(base.spec);
    if (spec.ok() && has_parent_of(spec->model)) return {};
    auto row = spec.ok() ? version_of(store_, base.spec) : Error{Errc::not_found, "no such name"};
    if (!row.ok() && row.error().code != Errc::not_found) return std::move(row).error();
    if (!row.ok()) {
      if (parents_.elsewhere.size() < limits::kParentsMax) parents_.elsewhere.push_back(base.text);
      return {};
    }
    if (!spec->version.empty()) return add_declared(*row);
    WEFT_CHECK(find_candidates());
    const Candidate* best = best_candidate([&](const Candidate& one) { return one.row.model == row->model; });
    if (best == nullptr) return add_declared(*row);
    add(best->row, best->shared, true);
    return {};
  }

  Status add_found(double part) {
    std::uint64_t all = 0;
    for (const File& file : child_.files)
      for (const Tensor& tensor : file.tensors) all += stored_bytes(file, tensor);
    WEFT_CHECK(find_candidates());
    const Candidate* best = best_candidate([](const Candidate&) { return true; });
    if (best == nullptr || static_cast<double>(best->shared.bytes) <= part * static_cast<double>(all)) return {};
    add(best->row, best->shared, false);
    return {};
  }

  Status find_candidates() {
    if (searched_) return {};
    searched_ = true;
    std::vector<VersionRow> rows;
    {
      Renewed renewed(store_);
      Tally tally;
      WEFT_CHECK(tally.count(renewed, child_));
      for (const VersionId id : tally.best(limits::kKinComparedMax)) {
        WEFT_TRY(Snapshot * now, renewed.get());
        WEFT_TRY(VersionRow row, now->version(id));
        if (!row.removed) rows.push_back(std::move(row));  // a large removed version may be a holder until gc
      }
    }
    for (VersionRow& row : rows) {
      auto shared = compare(row);
      if (!shared.ok() && shared.error().code == Errc::not_found) continue;  // removed and collected just now
      if (!shared.ok()) return std::move(shared).error();
      if (shared->bytes > 0) candidates_.push_back({std::move(row), *shared});
    }
    return {};
  }

  bool better(const Candidate& a, const Candidate& b) const {
    if (a.shared.bytes != b.shared.bytes) return a.shared.bytes > b.shared.bytes;
    const bool own_a = a.row.model_name == child_name_;
    const bool own_b = b.row.model_name == child_name_;
    if (own_a != own_b) return own_a;
    return own_a ? a.row.id > b.row.id : a.row.id < b.row.id;
  }

  template <class Wanted>
  const Candidate* best_candidate(const Wanted& wanted) const {
    const Candidate* best = nullptr;
    for (const Candidate& one : candidates_)
      if (wanted(one) && (best == nullptr || better(one, *best))) best = &one;
    return best;
  }

  Store& store_;
  ManifestResolver& resolver_;
  const std::string& child_name_;
  const Manifest& child_;
  Parents parents_;
  bool searched_ = false;
  std::vector<Candidate> candidates_;
};

}  // namespace

Result<std::vector<VersionRow>> resolve_parents(Store& store, const std::vector<std::string>& specs) {
  std::vector<VersionRow> parents;
  if (specs.empty()) return parents;
  if (specs.size() > limits::kParentsMax)
    return Error{Errc::invalid, fmt::format("expected at most {} parents, got {}", limits::kParentsMax, specs.size())};
  WEFT_TRY(auto snapshot, store.snapshot());
  std::set<VersionId> seen;
  for (const std::string& spec : specs) {
    auto row = resolve_version(*snapshot, spec);
    if (!row.ok()) return Error{row.error().code, fmt::format("parent: {}", row.error().message)};
    if (seen.insert(row->id).second) parents.push_back(std::move(row).value());
  }
  return parents;
}

Result<Parents> choose_parents(Store& store, ManifestResolver& resolver, const std::string& child_name,
                               const Manifest& child, const ParentWishes& wishes) {
  return ParentChoice(store, resolver, child_name, child).choose(wishes);
}

}  // namespace weft
