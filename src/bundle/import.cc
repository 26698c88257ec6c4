// Takes versions of a bundle over into a store.
#include <fcntl.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/text.h"
#include "bundle/received.h"
#include "bundle/source.h"
#include "diskformat/uuid.h"
#include "os/file_ops.h"
#include "packs/temp_area.h"
#include "weft/names.h"
#include "weft/programs/bundle.h"
#include "weft/store/publish.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::size_t kLinesMax = 200;  // of BundleImportReport::left

// Says whether the store has a version of a bundle.
enum class There : std::uint8_t { no, live, removed };

// A version of the store.
struct Known {
  std::uint64_t number = 0;
  Digest manifest;
  bool removed = false;
};

class Importing {
 public:
  Importing(const BundleTarget& target, const BundleFiles& files, const BundleImportOptions& options,
            Progress& progress)
      : target_(target), store_(target.store), files_(files), options_(options), progress_(progress) {}

  Result<BundleImportReport> run() {
    progress_.phase("reading the list of the bundle");
    WEFT_TRY(const auto source, open_bundle(files_));
    WEFT_TRY(list_, read_list(*source, files_.where));
    report_.uuid = list_.uuid;
    WEFT_CHECK(choose());
    WEFT_CHECK(compare());
    WEFT_TRY(const auto area, TempArea::make(store_.directory()));
    WEFT_TRY(const SafePath into, scratch_in(*area));
    ReceivedBundle received(list_, missing_, into, !options_.dry_run);
    WEFT_CHECK(received.read(
        *source, files_.where,
        {[this](const VersionRow& row) { return stored_manifest(row); },
         [this](const VersionRow& row, const std::vector<ContentId>& blobs) { return check_complete(row, blobs); }},
        progress_));
    report_.bytes = received.bytes();
    WEFT_CHECK(publish_all(received));
    WEFT_CHECK(set_tags());
    if (const std::size_t lines = report_.left.size(); lines > kLinesMax) {
      report_.left.resize(kLinesMax);
      report_.left.push_back(fmt::format("and {} more", lines - kLinesMax));
    }
    return report_;
  }

 private:
  static Result<SafePath> scratch_in(const TempArea& area) {
    SafePath into = area.path() / "bundle";
    WEFT_CHECK(make_directory(into, 0700));
    return into.held();
  }

  const VersionRow& row_of(std::size_t index) const { return list_.versions[index].row; }

  // Chooses the versions of the specs: MODEL is all its versions in the bundle, V a number or a tag of the bundle.
  Status choose() {
    std::set<std::size_t> chosen;
    for (const std::string& spec : options_.specs) {
      WEFT_TRY(const VersionSpec parsed, parse_version_spec(spec));
      bool found = false;
      for (std::size_t i = 0; i < list_.versions.size(); ++i)
        if (names(parsed, row_of(i))) {
          found = true;
          chosen.insert(i);
        }
      if (!found) return Error{Errc::not_found, fmt::format("{}: the bundle has no {}", files_.where, printable(spec))};
    }
    for (std::size_t i = 0; i < list_.versions.size(); ++i) {
      if (!options_.specs.empty() && !chosen.contains(i)) continue;
      chosen_.push_back(i);
      if (!row_of(i).removed) ++report_.versions;
    }
    return {};
  }

  bool names(const VersionSpec& spec, const VersionRow& row) const {
    if (row.removed || row.model_name != spec.model) return false;
    if (spec.version.empty() || spec.version == std::to_string(row.number)) return true;
    if (spec.version == "latest")
      return std::ranges::none_of(list_.versions, [&](const BundledVersion& other) {
        return !other.row.removed && other.row.model_name == row.model_name && other.row.number > row.number;
      });
    return std::ranges::any_of(list_.tags, [&](const MirroredTag& tag) {
      return tag.model == row.model_name && tag.name == spec.version && tag.number == row.number;
    });
  }

  void count(std::size_t index, There there) {
    const VersionRow& row = row_of(index);
    if (there == There::no)
      row.removed ? static_cast<void>(++report_.removed) : missing_.push_back(index);
    else if (!row.removed)
      ++report_.known;
    if (there == There::removed && !row.removed)
      report_.left.push_back(fmt::format("{}: it was removed in this store", spec_of(row)));
    if (there == There::live && row.removed)
      report_.left.push_back(
          fmt::format("{}: it was removed in the store of the bundle, and stays here", spec_of(row)));
  }

  // Finds the versions that the store lacks. Errc::exists names all that it has with another content.
  Status compare() {
    std::vector<std::string> others;
    WEFT_CHECK(read_identities());
    Renewed renewed(store_);
    for (const std::size_t index : chosen_) {
      const VersionRow& row = row_of(index);
      WEFT_TRY(Snapshot* const now, renewed.get(2));
      WEFT_TRY(const There there, look_up(*now, row, others));
      if (there == There::no) own_identity(list_.versions[index].row);
      there_.emplace(index, there);
      count(index, there);
    }
    report_.imported = missing_.size();
    if (others.empty()) return {};
    return Error{Errc::exists,
                 fmt::format("{}: the store has another content under {} name{}: {}{}", files_.where,
                             others.size() == 1 ? "this" : "these", others.size() == 1 ? "" : "s", others.front(),
                             others.size() == 1 ? "" : fmt::format(" and {} more", others.size() - 1))};
  }

  Result<There> look_up(Snapshot& now, const VersionRow& row, std::vector<std::string>& others) {
    WEFT_TRY(const auto model, if_there(now.model(row.model_name)));
    std::uint64_t& next = next_[row.model_name];
    next = std::max(next, model ? model->next_number : 1);
    if (row.number > next + limits::kSkippedNumbersMax)
      return Error{Errc::invalid, fmt::format("{}: expected a number up to {}, got {}", spec_of(row),
                                              next + limits::kSkippedNumbersMax, row.number)};
    next = std::max(next, row.number + 1);
    if (!model) return There::no;
    const Known* const same = with_identity(row);
    if (same != nullptr && same->number != row.number) {
      here_[{row.model_name, row.number}] = same->number;
      return same->removed ? There::removed : There::live;
    }
    if (!row.removed && model->latest != 0 && model->kind != row.kind) {
      others.push_back(fmt::format("{}, which is a {} there", row.model_name, kind_name(model->kind)));
      return There::no;
    }
    const auto known = now.version(model->id, row.number);
    if (!known.ok() && known.error().code == Errc::not_found) return There::no;
    if (!known.ok()) return known.error();
    if (known->manifest != row.manifest) others.push_back(spec_of(row));
    return known->removed ? There::removed : There::live;
  }

  Status read_identities() {
    return each_row(store_, list_models(), [this](const ModelRow& model) {
      return each_row(store_, list_versions(model.id), [&](const VersionRow& row) -> Status {
        identities_.insert_or_assign({row.uid, model.name}, Known{row.number, row.manifest, row.removed});
        return {};
      });
    });
  }

  // Returns this version, which may have got another number; null if there is none. A live version with this identity
  // and another content is not this one.
  const Known* with_identity(const VersionRow& row) const {
    const auto at = identities_.find({row.uid, row.model_name});
    if (at == identities_.end()) return nullptr;
    const bool live = !at->second.removed && !row.removed;
    return live && at->second.manifest != row.manifest ? nullptr : &at->second;
  }

  // Gives a version that the store lacks another identity if a version of the store or of the bundle has the listed
  // one: a bundle may be forged, and an identity is that of one version.
  void own_identity(VersionRow& row) {
    const auto at = identities_.lower_bound({row.uid, std::string()});
    const bool taken = at != identities_.end() && at->first.first == row.uid;
    if (taken || row.uid.empty()) row.uid = random_id();
    identities_.emplace(std::pair(row.uid, row.model_name), Known{row.number, row.manifest, row.removed});
  }

  Result<std::vector<std::byte>> stored_manifest(const VersionRow& row) const {
    const auto reader = store_.open_manifest(row.manifest);
    if (reader.ok()) return std::vector<std::byte>((*reader)->bytes().begin(), (*reader)->bytes().end());
    return needs_earlier(row, "its manifest is");
  }

  Error needs_earlier(const VersionRow& row, std::string_view what) const {
    return Error{Errc::absent,
                 fmt::format("{}: {}: {} neither in the bundle nor in the store{}", files_.where, spec_of(row), what,
                             list_.since.empty() ? "" : "; import first the bundle " + list_.since)};
  }

  Status check_complete(const VersionRow& row, const std::vector<ContentId>& lacking) {
    Renewed renewed(store_);
    std::size_t absent = 0;
    for (const ContentId& id : lacking) {
      WEFT_TRY(Snapshot* const now, renewed.get());
      const auto place = now->find_blob(id);
      const bool known = place.ok() || (place.error().code == Errc::absent && store_.cluster());
      if (!known && place.error().code != Errc::not_found && place.error().code != Errc::absent) return place.error();
      if (!known) ++absent;
    }
    return absent == 0 ? Status{} : Status{needs_earlier(row, fmt::format("{} of its blobs are", absent))};
  }

  Status publish_all(const ReceivedBundle& received) {
    if (options_.dry_run) return {};
    std::uint64_t total = 0;
    for (const std::size_t index : missing_)
      for (const BundledFile& file : received.files(index))
        for (const ContentId& id : file.blobs) total += id.length;
    progress_.phase("publishing");
    progress_.total(total);
    for (const std::size_t index : chosen_) {
      if (there_.at(index) != There::no) continue;
      WEFT_CHECK(check_cancelled(progress_));
      WEFT_CHECK(row_of(index).removed ? publish_removed(row_of(index)) : publish(index, received));
    }
    return {};
  }

  Status commit(Import& import, const PublishRequest& request) {
    WEFT_CHECK(target_.publish ? target_.publish(import, request) : import.publish(request));
    return {};
  }

  Status publish_removed(const VersionRow& row) {
    WEFT_TRY(const auto import, store_.begin_import(Durability::local));
    PublishRequest request;
    request.model = row.model_name;
    request.given = row;
    return commit(*import, request);
  }

  Status publish(std::size_t index, const ReceivedBundle& received) {
    const VersionRow& row = row_of(index);
    WEFT_TRY(const auto import, store_.begin_import(Durability::local));
    const std::vector<BundledFile> files = received.files(index);
    for (const BundledFile& file : files) WEFT_CHECK(add(*import, file));
    PublishRequest request;
    request.model = row.model_name;
    request.given = row;
    {
      WEFT_TRY(const auto manifest, received.manifest(index));
      WEFT_CHECK(import->seal([&manifest](const auto& use) { return use(manifest); }));
      WEFT_TRY(request.content, content_decoder()(manifest));
    }
    WEFT_CHECK(commit(*import, request));
    for (const BundledFile& file : files) WEFT_CHECK(remove_file(file.path));
    return {};
  }

  // Adds a file. The file becomes a pack as it is if this process may give the file to the store.
  Status add(Import& import, const BundledFile& file) {
    std::vector<Range> ranges;
    for (const ContentId& id : file.blobs)
      ranges.push_back({ranges.empty() ? 0 : ranges.back().offset + ranges.back().length, id.length});
    WEFT_TRY(const Fd fd, open_file(file.path, O_RDONLY));
    WEFT_TRY(const struct stat packs, stat_file(store_.directory() / "packs"));
    const Take take = packs.st_uid == own_user() ? Take::move : Take::copy;
    WEFT_TRY(const auto extents, import.add(fd.get(), file.path.str(), ranges, take, progress_, {}));
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (extents[i].id != file.blobs[i])
        return Error{Errc::corrupt, fmt::format("{}: the received bytes have changed", file.path)};
    return {};
  }

  // Sets the tags of the bundle on versions that the store has live now.
  Status set_tags() {
    std::set<VersionName> live;
    for (const std::size_t index : chosen_)
      if (there_.at(index) != There::removed && !row_of(index).removed)
        live.insert({row_of(index).model_name, row_of(index).number});
    for (MirroredTag tag : list_.tags) {
      WEFT_CHECK(check_cancelled(progress_));
      if (!live.contains({tag.model, tag.number})) continue;
      if (const auto moved = here_.find({tag.model, tag.number}); moved != here_.end()) tag.number = moved->second;
      WEFT_TRY(const std::uint64_t before, tagged_now(tag));
      if (before == tag.number) continue;
      if (before != 0 && !options_.move_tags) {
        report_.left.push_back(fmt::format("{}@{}: the tag leads to {} in this store, and to {} in the bundle",
                                           tag.model, tag.name, before, tag.number));
        continue;
      }
      if (!options_.dry_run) WEFT_CHECK(target_.set_tag(tag.model, tag.name, tag.number));
      ++report_.tags;
    }
    return {};
  }

  Result<std::uint64_t> tagged_now(const MirroredTag& tag) const {
    WEFT_TRY(const auto now, store_.snapshot());
    WEFT_TRY(const auto model, if_there(now->model(tag.model)));
    if (!model) return std::uint64_t{0};
    WEFT_TRY(const auto row, if_there(now->tag(model->id, tag.name)));
    return row ? row->number : std::uint64_t{0};
  }

  const BundleTarget& target_;
  Store& store_;
  const BundleFiles& files_;
  const BundleImportOptions& options_;
  Progress& progress_;
  BundleList list_;
  std::vector<std::size_t> chosen_;                           // indexes in the list, ascending
  std::vector<std::size_t> missing_;                          // of these, versions that the store lacks
  std::map<std::size_t, There> there_;                        // of the chosen ones
  std::map<std::string, std::uint64_t> next_;                 // by model: the next number, after the versions so far
  std::map<std::pair<Uuid, std::string>, Known> identities_;  // by identity and model: the versions of the store
  std::map<VersionName, std::uint64_t> here_;                 // chosen versions that the store has under another number
  BundleImportReport report_;
};

}  // namespace

Result<BundleImportReport> import_bundle(const BundleTarget& target, const BundleFiles& files,
                                         const BundleImportOptions& options, Progress& progress) {
  return Importing(target, files, options, progress).run();
}

}  // namespace weft
