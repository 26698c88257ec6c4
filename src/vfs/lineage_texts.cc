#include "vfs/lineage_texts.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "query/kin.h"
#include "vfs/kin_links.h"
#include "vfs/subtree.h"
#include "weft/model/relatives.h"
#include "weft/names.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

struct KinFileKind {
  std::string_view name;
  KinWay way;
  std::string (*render)(const KinGraph&);
};
constexpr KinFileKind kKinFiles[kKinFileCount] = {
    {"ancestors", KinWay::ancestors, draw_ancestors},
    {"descendants", KinWay::descendants, draw_descendants},
    {"log", KinWay::ancestors, render_log},
};

// Time of the last change of info.json.
std::uint64_t told_ns(const VersionRow& version) {
  return std::max({version.time_ns, version.described_ns, version.renamed_ns});
}

bool is_entry(Ino ino, LineageEntry entry) {
  return kind_of(ino) == InoKind::lineage_entry && high_of(ino) == static_cast<std::uint64_t>(entry);
}

}  // namespace

std::string_view kin_file_name(unsigned file) {
  return kKinFiles[file].name;
}

Result<Ino> LineageTexts::current(VersionId version, unsigned file) {
  WEFT_TRY(const GatheredKin kin, gather_kin(store_, version, kKinFiles[file].way, 1));
  return ino_of(KinFileNumber{file, version, kin.clock});
}

Result<LineageTexts::Text> LineageTexts::find(Ino ino) {
  if (Text known = texts_.find(ino)) {
    WEFT_TRY(const bool present, is_present(ino, *known));
    if (present) return known;
  }
  std::uint64_t last_rename = 0;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    last_rename = snapshot->last_rename();
  }
  WEFT_TRY(LineageText rendered, render(ino));
  rendered.last_rename = last_rename;
  auto out = std::make_shared<const LineageText>(std::move(rendered));
  texts_.put(ino, out, sizeof *out + out->text.size());
  return out;
}

// False for a graph.svg that was drawn before the latest change of the index. Of the other texts: false if it was
// rendered before the latest rename, which may concern a name in it, and for an info.json that was rendered before the
// latest change of the version's message or metrics.
Result<bool> LineageTexts::is_present(Ino ino, const LineageText& known) const {
  if (kind_of(ino) == InoKind::kin_file) return true;
  WEFT_TRY(const auto snapshot, store_.snapshot());
  if (is_entry(ino, LineageEntry::graph)) return known.drawn == snapshot->state();
  if (known.last_rename != snapshot->last_rename()) return false;
  if (!is_entry(ino, LineageEntry::info)) return true;
  WEFT_TRY(const VersionRow version, snapshot->version(id_of(ino)));
  return known.described == version.described;
}

Result<LineageText> LineageTexts::render(Ino ino) {
  if (kind_of(ino) == InoKind::kin_file) return render_kin(ino);
  if (is_entry(ino, LineageEntry::graph)) return render_graph(id_of(ino));
  return kind_of(ino) == InoKind::diff ? render_diff_of(ino) : render_entry(ino);
}

Result<LineageText> LineageTexts::render_entry(Ino ino) {
  VersionRow version;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(version, snapshot->version(id_of(ino)));
  }
  LineageText out;
  out.time_ns = version.time_ns;
  if (is_entry(ino, LineageEntry::owners)) {
    WEFT_TRY(out.text, owners_text(store_, versions_.resolver(), version));
    return out;
  }
  out.time_ns = told_ns(version);
  out.described = version.described;
  WEFT_TRY(out.text, render_info(version));
  return out;
}

Result<std::string> LineageTexts::render_info(const VersionRow& version) {
  if (version.kind == VersionKind::dataset) {
    WEFT_TRY(const auto loaded, versions_.load(version.id, 0));
    WEFT_TRY(const DatasetFacts facts, dataset_facts(loaded->manifest(), loaded->dataset->tables));
    return render_info_json(version, loaded->manifest(), facts);
  }
  WEFT_TRY(const Manifest manifest, load_manifest(store_, versions_.resolver(), version));
  return render_info_json(version, manifest);
}

Result<LineageText> LineageTexts::render_kin(Ino ino) {
  const KinFileNumber number = kin_file_of(ino);
  if (number.file >= kKinFileCount) return no_inode(ino);
  const KinFileKind& kind = kKinFiles[number.file];
  std::uint64_t clock = 0;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    clock = clock_of(number, snapshot->lineage_clock());
  }
  WEFT_TRY(const GatheredKin kin, gather_kin(store_, number.version, kind.way, limits::kKinCountedMax, clock));
  if (kin.graph.versions.empty()) return no_inode(ino);
  return LineageText{kind.render(kin.graph), kin.changed_ns};
}

Result<LineageText> LineageTexts::render_graph(VersionId version) {
  IndexState drawn;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    drawn = snapshot->state();
  }
  WEFT_TRY(GatheredKin kin, gather_kin(store_, version, KinWay::both, limits::kKinDrawnMax));
  WEFT_CHECK(add_marks(store_, kin.graph));
  Renewed renewed(store_);
  for (const VersionRow& shown : kin.graph.versions) {
    WEFT_TRY(Snapshot * now, renewed.get());
    WEFT_TRY(const ModelRow model, now->model(shown.model));
    kin.changed_ns = std::max(kin.changed_ns, model.changed_ns);
  }
  return LineageText{.text = kin_svg(kin.graph), .time_ns = kin.changed_ns, .drawn = drawn};
}

Result<LineageText> LineageTexts::render_diff_of(Ino ino) {
  KinEnds ends;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(ends, kin_ends(*snapshot, ino));
  }
  WEFT_TRY(const Manifest before, load_manifest(store_, versions_.resolver(), ends.parent));
  WEFT_TRY(const Manifest after, load_manifest(store_, versions_.resolver(), ends.child));
  const DiffSides sides{spec_of(ends.parent.model_name, ends.parent.number),
                        spec_of(ends.child.model_name, ends.child.number), before, after};
  WEFT_TRY(const ManifestDiff diff, diff_manifests(sides.before, sides.after));
  return LineageText{render_diff(sides, diff), ends.child.time_ns};
}

}  // namespace weft
