#include "pull/known_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "pull/hub_digest.h"
#include "reading/open_file.h"
#include "weft/model/manifest.h"
#include "weft/programs/operations.h"
#include "weft/store/snapshot.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::size_t kSameNameMax = 32;           // versions of this name that are read
constexpr std::size_t kOthersMax = 1024;           // versions of other names
constexpr std::size_t kFetchedMax = 64;            // of these: manifests that are fetched
constexpr std::uint64_t kTensorsMax = 8'000'000;   // in all of them
constexpr std::uint64_t kReusableMin = 1U << 20U;  // a smaller file is copied: the formats may want to see it
constexpr std::size_t kReadStep = 1U << 20U;

Result<std::optional<VersionRow>> row_of_commit(Store& store, const std::string& name, const std::string& commit) {
  WEFT_TRY(const auto snapshot, store.snapshot());
  WEFT_TRY(const auto model, if_there(snapshot->model(name)));
  if (!model) return std::optional<VersionRow>();
  if (commit.empty()) {
    auto newest = snapshot->version(model->id, model->latest);
    if (newest.ok()) return std::optional<VersionRow>(std::move(newest).value());
    if (newest.error().code == Errc::not_found) return std::optional<VersionRow>();
    return std::move(newest).error();
  }
  WEFT_TRY(const auto id, snapshot->with_revision(model->id, commit));
  if (!id) return std::optional<VersionRow>();
  WEFT_TRY(VersionRow row, snapshot->version(*id));
  return row.source.commit == commit ? std::optional(std::move(row)) : std::nullopt;
}

// Calls visit(path, holder, bytes, sha256) for each published file: it is these bytes of the file `holder`. Small files
// of data sets have no SHA-256 here.
template <class Visit>
Status each_file(Store& store, const Manifest& manifest, const Visit& visit) {
  for (const File& file : published_files(manifest)) visit(file.path, file, Range{0, file.size}, file.sha256);
  return each_small_file(store, manifest, [&](const SmallFile& file) -> Status {
    visit(file.path, files_of(manifest, FileRole::bundle)[file.bundle], file.bytes, std::optional<Digest>());
    return {};
  });
}

// A version whose manifest has been read.
struct ReadVersion {
  const VersionRow& row;
  const Manifest& manifest;
};

// Returns the blobs of the extents that contain these bytes of a file, and how many bytes of them to skip.
std::pair<std::vector<ColdBlob>, std::uint64_t> blobs_of(const ReadVersion& version, const File& file, Range bytes) {
  std::pair<std::vector<ColdBlob>, std::uint64_t> found;
  if (bytes.length == 0) return found;  // the bundle of an empty file may be missing
  const auto number = static_cast<std::uint32_t>(&file - version.manifest.files.data());
  for (const Extent& extent : file.extents) {
    if (extent.offset + extent.id.length <= bytes.offset || extent.offset >= bytes.offset + bytes.length) continue;
    if (found.first.empty()) found.second = bytes.offset - extent.offset;
    found.first.push_back({extent.id, {version.row.id, number, extent.offset}});
  }
  return found;
}

KnownFile known_bytes(const ReadVersion& version, const std::string& path, const File& holder, Range bytes) {
  auto [blobs, skip] = blobs_of(version, holder, bytes);
  return {path, spec_of(version.row), path, bytes.length, std::move(blobs), skip, false};
}

// Reads the stored bytes, and returns true if they have the digest that the hub lists. Errors as read_known().
Result<bool> is_content_of(Store& store, const KnownFile& known, const HubFile& wanted) {
  HubDigest digest(wanted);
  WEFT_CHECK(read_known(store, nullptr, known, [&](std::span<const std::byte> part) -> Status {
    digest.update(part);
    return {};
  }));
  return digest.finish() == HubDigest::expected(wanted);
}

// A stored file with the path and the size of a wanted one: its bytes tell whether it is the same file.
struct Unsure {
  const HubFile* wanted;
  KnownFile stored;
};

}  // namespace

// The commit of a version proves nothing: whoever publishes a version names it. So all bytes that are here are checked.
Result<std::optional<VersionRow>> version_of_commit(Store& store, ManifestResolver& resolver, const std::string& name,
                                                    const std::string& commit, std::span<const HubFile> files) {
  WEFT_TRY(auto row, row_of_commit(store, name, commit));
  if (!row) return row;
  WEFT_TRY(const Manifest manifest, load_manifest(store, resolver, *row));
  std::size_t same = 0;
  std::size_t all = 0;
  std::vector<Unsure> unsure;
  WEFT_CHECK(
      each_file(store, manifest, [&](const std::string& path, const File& holder, Range bytes, const auto& sha256) {
        ++all;
        const auto file = std::ranges::lower_bound(files, path, {}, &HubFile::path);
        if (file == files.end() || file->path != path || file->size != bytes.length) return;
        if (!file->sha256 || !sha256)
          unsure.push_back({&*file, known_bytes({*row, manifest}, path, holder, bytes)});
        else if (file->sha256 == sha256)
          ++same;
      }));
  if (all != files.size() || same + unsure.size() != files.size()) return std::optional<VersionRow>();
  for (const Unsure& one : unsure) {
    const auto equal = is_content_of(store, one.stored, *one.wanted);
    const bool is_believed = !commit.empty() && !equal.ok() && equal.error().code == Errc::absent;
    if (!is_believed && !(equal.ok() && *equal)) return std::optional<VersionRow>();
  }
  return row;
}

namespace {

std::string_view suffix_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(dot);
}

// True for a file that an import reads because it says something about other files or about the version.
bool describes_others(std::string_view path) {
  constexpr std::array<std::string_view, 2> kSuffixes = {".json", ".md"};
  return std::ranges::find(kSuffixes, suffix_of(path)) != kSuffixes.end();
}

// True if an import of these bytes at `path` would make the same file, apart from its path.
bool is_reusable(const Manifest& manifest, const File& file, std::string_view path) {
  return file.size >= kReusableMin && suffix_of(path) == suffix_of(file.path) && !describes_others(path) &&
         file.execute == 0 && file.sha256 && std::ranges::none_of(file.tensors, &Tensor::scattered) &&
         find_file(manifest, FileRole::record_table, file.path) == nullptr;
}

// Returns, by the number of each file, whether tensors of another file lie in it: an import has to read both.
std::vector<bool> lenders_of(const Manifest& manifest) {
  std::vector<bool> lenders(manifest.files.size());
  for (std::size_t i = 0; i < manifest.files.size(); ++i)
    for (const Tensor& tensor : manifest.files[i].tensors)
      for (const TensorRun& run : tensor.runs)
        if (run.file != i) lenders[run.file] = true;
  return lenders;
}

// Lists the model with this name. If no model has it, the page is empty.
auto list_of(const std::string& name) {
  return [name](Snapshot& now, std::string_view /*from*/) -> Result<Page<ModelRow>> {
    WEFT_TRY(const auto model, if_there(now.model(name)));
    return model ? Page<ModelRow>{{*model}, ""} : Page<ModelRow>{};
  };
}

// Returns where to fetch the first byte of the file that this node lacks; nothing if it has all.
Result<std::optional<BlobHome>> first_absent(Store& store, const KnownFile& known) {
  WEFT_TRY(const auto snapshot, store.snapshot());
  for (const ColdBlob& blob : known.blobs)
    if (!snapshot->find_blob(blob.id).ok()) return std::optional(blob.home);
  return std::optional<BlobHome>();
}

// One thread.
class KnownSearch {
 public:
  KnownSearch(Store& store, ColdReads& reads, const KnownQuery& query)
      : store_(store), reads_(reads), query_(query), found_(query.files.size()) {
    for (std::size_t i = 0; i < query.files.size(); ++i)
      if (query.files[i].sha256) by_sha256_[*query.files[i].sha256].push_back(i);
  }

  Result<std::vector<KnownFile>> run() {
    WEFT_CHECK(search_same_name());
    if (lacks_lfs()) WEFT_CHECK(search_others());
    std::vector<KnownFile> known;
    for (auto& file : found_)
      if (file) known.push_back(std::move(*file));
    return known;
  }

 private:
  bool lacks_lfs() const {
    for (const auto& [sha256, numbers] : by_sha256_)
      if (!found_[numbers.front()]) return true;
    return false;
  }

  Status search_same_name() {
    WEFT_TRY(const auto rows, newest(list_of(query_.name), kSameNameMax));
    for (const VersionRow& row : rows) WEFT_CHECK(search(row, true));
    return {};
  }

  // Fetches the manifests of pulled versions first: they are the likely ones.
  Status search_others() {
    WEFT_TRY(auto rows, newest(list_models(), kOthersMax));
    std::erase_if(rows, [this](const VersionRow& row) { return row.model_name == query_.name; });
    WEFT_CHECK(search_here(rows));
    std::stable_partition(rows.begin(), rows.end(), [](const VersionRow& row) { return !row.source.empty(); });
    return search_elsewhere(rows);
  }

  Status search_here(std::span<const VersionRow> rows) {
    for (const VersionRow& row : rows) {
      if (!lacks_lfs()) return {};
      WEFT_TRY(const bool bare, is_bare(row));
      if (!bare) WEFT_CHECK(search(row, false));
    }
    return {};
  }

  // Ends when no node gives what it is asked for, so that nodes that are away cost one wait.
  Status search_elsewhere(std::span<const VersionRow> rows) {
    std::size_t fetched = 0;
    for (const VersionRow& row : rows) {
      if (!lacks_lfs() || !others_give_ || fetched == kFetchedMax) return {};
      WEFT_TRY(const bool bare, is_bare(row));
      if (!bare) continue;
      ++fetched;
      WEFT_TRY(const bool is_read, search(row, false));
      if (!is_read) return {};
    }
    return {};
  }

  Result<bool> is_bare(const VersionRow& row) const {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    return snapshot->is_bare(row.id);
  }

  // Returns the newest live versions of the listed models, the newest first.
  template <class List>
  Result<std::vector<VersionRow>> newest(const List& models, std::size_t count_max) {
    const auto is_newer = [](const VersionRow& a, const VersionRow& b) { return a.id > b.id; };
    std::vector<VersionRow> rows;
    WEFT_CHECK(each_row(store_, models, [&](const ModelRow& model) {
      return each_row(store_, list_versions(model.id), [&](VersionRow row) -> Status {
        if (row.removed) return {};
        rows.push_back(std::move(row));
        std::ranges::push_heap(rows, is_newer);
        if (rows.size() <= count_max) return {};
        std::ranges::pop_heap(rows, is_newer);
        rows.pop_back();
        return {};
      });
    }));
    std::ranges::sort(rows, is_newer);
    return rows;
  }

  // Returns false if no manifest can be read: the version was removed meanwhile, or no node gives it.
  Result<bool> search(const VersionRow& row, bool same_name) {
    tensors_ += row.tensors;
    if (tensors_ > kTensorsMax || !seen_.insert(row.manifest).second) return true;
    const auto manifest = load_manifest(store_, reads_, row);
    if (!manifest.ok() && manifest.error().code == Errc::cancelled) return manifest.error();
    if (!manifest.ok()) return false;
    const ReadVersion version{row, *manifest};
    const std::vector<bool> lenders = lenders_of(*manifest);
    for (const File& file : published_files(*manifest)) {
      const bool lends = lenders[static_cast<std::size_t>(&file - manifest->files.data())];
      const Range whole{0, file.size};
      const auto same = file.sha256 ? by_sha256_.find(*file.sha256) : by_sha256_.end();
      if (same != by_sha256_.end())
        for (const std::size_t number : same->second) note(number, version, file, lends);
      if (same_name) guess(version, file.path, file, whole);
    }
    if (!same_name) return true;
    const auto visited = each_small_file(store_, *manifest, [&](const SmallFile& small) -> Status {
      guess(version, small.path, files_of(*manifest, FileRole::bundle)[small.bundle], small.bytes);
      return {};
    });
    if (!visited.ok() && visited.error().code == Errc::cancelled) return visited.error();
    return true;
  }

  void note(std::size_t number, const ReadVersion& version, const File& file, bool lends) {
    const HubFile& wanted = query_.files[number];
    if (found_[number] || wanted.size != file.size) return;
    KnownFile known = known_bytes(version, file.path, file, {0, file.size});
    known.path = wanted.path;
    known.is_reusable = version.row.kind == query_.kind && !lends && is_reusable(version.manifest, file, wanted.path);
    if (can_be_read(known)) found_[number] = std::move(known);
  }

  // True if this node has the bytes of the file, or another node gives a byte of the version. After an error, no
  // further byte is asked for, because each call may take seconds.
  bool can_be_read(const KnownFile& known) {
    const auto absent = first_absent(store_, known);
    if (!absent.ok() || !*absent) return absent.ok();
    const BlobHome& home = **absent;
    if (!others_give_ || home.version == given_) return others_give_;
    // As a tensor that is read alone, the byte begins no swarm.
    const ColdRange byte{home.version, home.file, {home.offset, 1}, 0, false, true};
    others_give_ = reads_.bring(byte).ok();
    if (others_give_) given_ = home.version;
    return others_give_;
  }

  // A file of the same path and size may be the same file: these bytes of `file` tell.
  void guess(const ReadVersion& version, const std::string& path, const File& file, Range bytes) {
    const auto wanted = std::ranges::lower_bound(query_.files, path, {}, &HubFile::path);
    if (wanted == query_.files.end() || wanted->path != path) return;
    if (wanted->size != bytes.length || bytes.length == 0) return;
    auto& found = found_[static_cast<std::size_t>(wanted - query_.files.begin())];
    if (found || (wanted->sha256 && file.sha256)) return;  // their SHA-256 would have told
    KnownFile known = known_bytes(version, path, file, bytes);
    const auto equal = is_content_of(store_, known, *wanted);
    if (equal.ok() && *equal) found = std::move(known);
  }

  Store& store_;
  ColdReads& reads_;
  const KnownQuery& query_;
  std::unordered_map<Digest, std::vector<std::size_t>> by_sha256_;  // numbers of files
  std::vector<std::optional<KnownFile>> found_;                     // by number
  std::set<Digest> seen_;                                           // manifests
  std::uint64_t tensors_ = 0;                                       // of the versions that were searched
  bool others_give_ = true;                                         // false once no node has given a byte of a version
  VersionId given_ = 0;  // the last version of which a node has given a byte; 0: none
};

Result<std::shared_ptr<OpenFile>> open_known(Store& store, ColdReads* reads, const KnownFile& known) {
  const std::string where = fmt::format("{} of {}", known.from, known.version);
  std::vector<ContentId> ids;
  for (const ColdBlob& blob : known.blobs) ids.push_back(blob.id);
  auto open = open_blobs(store, where, "", ids);
  if (open.ok() || open.error().code != Errc::absent || reads == nullptr) return open;
  return open_cold(store, {reads, ColdPolicy::stream}, where, "", known.blobs);
}

}  // namespace

Result<std::vector<KnownFile>> known_files(Store& store, ColdReads& reads, const KnownQuery& query) {
  return KnownSearch(store, reads, query).run();
}

Status read_known(Store& store, ColdReads* reads, const KnownFile& known, const ByteSink& sink) {
  if (known.size == 0) return {};
  WEFT_TRY(const auto open, open_known(store, reads, known));
  std::vector<std::byte> buffer(std::min<std::uint64_t>(kReadStep, known.size));
  for (std::uint64_t at = 0; at < known.size;) {
    const auto step = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), known.size - at));
    WEFT_TRY(const std::size_t got, open->read(known.skip + at, step));
    if (got != step.size())
      return Error{Errc::corrupt,
                   fmt::format("{} of {}: expected {} bytes, got {}", known.from, known.version, known.size, at + got)};
    WEFT_CHECK(sink(step));
    at += step.size();
  }
  return {};
}

}  // namespace weft
