#include <fcntl.h>
#include <fmt/core.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/limits.h"
#include "base/log.h"
#include "base/plain_text.h"
#include "base/text.h"
#include "model/inherit.h"
#include "os/entries.h"
#include "os/memory_file.h"
#include "os/mounts.h"
#include "os/sys.h"
#include "publish/dataset_draft.h"
#include "publish/dataset_walk.h"
#include "publish/draft.h"
#include "publish/gather.h"
#include "publish/gather_rules.h"
#include "publish/import_sources.h"
#include "publish/parents.h"
#include "publish/stored_files.h"
#include "reading/open_file.h"
#include "weft/model/dataset.h"
#include "weft/programs/operations.h"
#include "weft/store/assembly.h"

namespace weft {
namespace {

// Adds the headers that weft wrote to the import, and their ids to the version.
Status add_headers(Import& import, Inherited& version, Progress& progress) {
  for (const auto& [path, header] : version.headers) {
    WEFT_TRY(const Fd fd, memory_file(path, std::as_bytes(std::span(header))));
    const Range range{0, header.size()};
    WEFT_TRY(const auto extents, import.add(fd.get(), path, std::span(&range, 1), progress));
    auto file = std::ranges::find(version.manifest.files, path, &File::path);
    file->extents.front() = extents.front();
  }
  return {};
}

// Fills in the plain SHA-256 of files that inherit a part of their bytes, or that a mount shows and whose version has
// no digest of them. The import reads the stored bytes, but none that another node would have to send: such a file gets
// no digest.
Status add_missing_sums(Import& import, Manifest& manifest, Progress& progress) {
  std::vector<File*> missing;
  std::vector<std::span<const Extent>> contents;
  for (File& file : manifest.files) {
    if (file.role != FileRole::published || file.sha256) continue;
    missing.push_back(&file);
    contents.emplace_back(file.extents);
  }
  if (missing.empty()) return {};
  WEFT_TRY(const auto sums, import.sums_of(contents, progress));
  for (std::size_t i = 0; i < missing.size(); ++i) missing[i]->sha256 = sums[i];
  return {};
}

// Returns a request with the checked names and texts of the version; its content and parents are set later.
Result<PublishRequest> describe(const ImportOptions& options) {
  WEFT_CHECK(check_model_name(options.name));
  const std::string& message = options.message.empty() ? options.default_message : options.message;
  WEFT_CHECK(check_message(message));
  WEFT_CHECK(check_source(options.source));
  WEFT_CHECK(check_metrics(options.metrics));
  PublishRequest request;
  request.model = options.name;
  request.message = message;
  request.source = options.source;
  request.metrics = options.metrics;
  request.by = options.by;
  std::set<std::string_view> tags;
  for (const std::string& tag : options.tags) {
    WEFT_CHECK(check_tag_name(tag));
    if (tags.insert(tag).second) request.tags.push_back(tag);
  }
  return request;
}

}  // namespace

Status check_description(const ImportOptions& options) {
  auto request = describe(options);
  return request.ok() ? Status{} : Status{std::move(request).error()};
}

// The prepared files, and everything else from which run_import() makes the version.
struct PreparedImport::State {
  PublishRequest request;
  ImportOptions options;
  std::vector<std::string> left_out;
  std::vector<MovedSource> moved;
  DraftFiles files;

  bool inherits() const { return !options.inherit.empty(); }
  // False if some files of the version come from stored ones, which are not read yet.
  bool is_whole() const { return !inherits() && files.stored.empty(); }
};

PreparedImport::PreparedImport(std::unique_ptr<State> state) : state_(std::move(state)) {}
PreparedImport::~PreparedImport() = default;
PreparedImport::PreparedImport(PreparedImport&&) noexcept = default;
PreparedImport& PreparedImport::operator=(PreparedImport&&) noexcept = default;

std::uint64_t PreparedImport::size() const {
  constexpr std::uint64_t kSmallFilesEach = 3;  // the sums of so many small files take as much memory as a file
  return tensor_count(state_->files.manifest) + state_->files.drafts.size() +
         state_->files.small_files / kSmallFilesEach;
}

Result<PreparedImport> prepare_sources(const ImportOptions& options, std::vector<SourceFile> sources,
                                       Progress& progress) {
  auto state = std::make_unique<PreparedImport::State>();
  WEFT_TRY(state->request, describe(options));
  state->options = options;
  if (options.dataset && (state->inherits() || options.add || options.take != Take::copy))
    return Error{Errc::invalid, "a data set: expected no files that it inherits, and none that are moved"};
  WEFT_TRY(state->files,
           options.dataset ? draft_dataset(std::move(sources), progress) : draft_files(std::move(sources), progress));
  if (state->inherits() && !state->files.stored.empty())
    return Error{Errc::invalid, "an import: expected no stored files beside those that it inherits"};
  if (state->is_whole() && !options.dataset) {
    WEFT_CHECK(check_shard_indices(state->files, state->files.manifest));
    WEFT_TRY(state->files.manifest.architecture, draft_architecture(state->files));
    WEFT_CHECK(count_nodes(state->files.manifest));
  }
  return PreparedImport(std::move(state));
}

namespace {

// Appends the files that come from stored versions, and checks all paths together.
Status add_stored(std::span<const StoredFile> stored, std::vector<SourceFile>& files) {
  if (stored.empty()) return {};
  for (const StoredFile& file : stored) {
    SourceFile& source = files.emplace_back();
    source.path = file.path;
    source.where = fmt::format("{} of {}", file.from, file.version);
    source.size = file.size;
    source.stored = file.version;
    source.stored_path = file.from;
  }
  WEFT_TRY(files, check_sources(std::move(files)));
  return {};
}

void find_arriving(ArrivingFiles& arriving, std::vector<SourceFile>& files) {
  for (SourceFile& file : files) {
    file.expected = arriving.expected(file.path);
    if (file.expected) file.await = [&arriving, path = file.path](Range range) { return arriving.await(path, range); };
  }
}

}  // namespace

Result<GatheredFiles> gather(const ImportOptions& options, const std::string& store_path) {
  WEFT_CHECK(check_description(options));
  GatheredFiles sources;
  LinkRule rule{.links = options.links};
  const bool all_stored = options.paths.empty() && !options.stored.empty();
  if (options.dataset && !all_stored) {
    WEFT_TRY(sources, gather_dataset(options.paths, store_path, options.links));
  } else if (!all_stored) {
    WEFT_TRY(sources.files, gather_sources(options.paths, store_path, rule));
    sources.left_out = std::move(rule.skipped);
    if (options.arriving != nullptr) find_arriving(*options.arriving, sources.files);
  }
  WEFT_CHECK(add_stored(options.stored, sources.files));
  if (options.take != Take::move) return sources;
  for (const SourceFile& file : sources.files) {
    if (!file.stored.empty()) continue;
    WEFT_TRY(const struct stat found, stat_at(AT_FDCWD, file.where));
    sources.moved.push_back({file.where, file.directory, found});
  }
  return sources;
}

Result<PreparedImport> prepare_import(const ImportOptions& options, const std::string& store_path, Progress& progress) {
  WEFT_TRY(GatheredFiles sources, gather(options, store_path));
  for (SourceFile& source : sources.files) {
    if (source.role != FileRole::published) continue;
    source.take = take_from(own_user(), options.take, store_path);
    source.giver = own_user();
  }
  WEFT_TRY(PreparedImport prepared, prepare_sources(options, std::move(sources.files), progress));
  prepared.state().left_out = std::move(sources.left_out);
  prepared.state().moved = std::move(sources.moved);
  return prepared;
}

namespace {

// The whole version, before and after its content is read: the given files, and those that come from stored versions.
class Whole {
 public:
  static Result<Whole> begin(Store& store, ManifestResolver& resolver, PreparedImport::State& state,
                             const VersionRow* base) {
    Whole whole(store, state);
    const VersionKind kind = state.options.dataset ? VersionKind::dataset : VersionKind::model;
    WEFT_TRY(whole.stored_, StoredFiles::load(store, resolver, state.files.stored, kind));
    if (base == nullptr) return whole;
    WEFT_TRY(whole.base_, load_version(store, resolver, *base));
    return whole;
  }

  // Makes all checks that need no hashing. Versions without stored files were checked in prepare_sources().
  Result<Architecture> check() const {
    if (!base_ && stored_.empty()) return files_.manifest.architecture;
    WEFT_TRY(const Inherited draft, composed());
    if (draft.manifest.kind == VersionKind::dataset) return files_.manifest.architecture;
    WEFT_CHECK(check_shard_indices(files_, draft.manifest));
    WEFT_CHECK(count_nodes(draft.manifest));
    return architecture(draft);
  }

  // Call it once: it moves the manifest, which may be large.
  Result<Inherited> take() {
    return base_ ? composed() : Result<Inherited>(Inherited{stored_.added_to(std::move(files_.manifest)), {}});
  }

 private:
  Whole(Store& store, PreparedImport::State& state) : store_(store), files_(state.files), add_(state.options.add) {}

  // Returns the whole version. The ids of the given files need no digests.
  Result<Inherited> composed() const {
    if (!base_) return Inherited{stored_.added_to(files_.manifest), {}};
    std::vector<std::string> places;
    for (const Draft& draft : files_.drafts) places.push_back(draft.source.where);
    return inherit_manifest({spec_of(base_->row), base_->tree->manifest(), files_.manifest, places, add_});
  }

  // Returns the architecture of the whole version: the base's, unless a file, or a tensor's type or shape, differs.
  // Then it is computed again, which reads an inherited config.json.
  Result<Architecture> architecture(const Inherited& whole) const {
    const auto is_partial = [](const File& file) { return file.format == "safetensors"; };
    const Architecture* known = base_ ? &base_->tree->manifest().architecture : nullptr;
    if (known != nullptr && !known->layers.empty() && whole.headers.empty() &&
        std::ranges::all_of(files_.manifest.files, is_partial))
      return *known;
    return architecture_of(whole.manifest, [&](const File& file) -> Result<std::string> {
      for (std::size_t i = 0; i < files_.drafts.size(); ++i)
        if (files_.manifest.files[i].path == file.path && (!base_ || !is_partial(file)))
          return read_source(files_.drafts[i]);
      std::vector<ContentId> ids;
      for (const Extent& extent : file.extents) ids.push_back(extent.id);
      WEFT_TRY(const auto open, open_blobs(store_, file.path, "", ids));
      std::string text(static_cast<std::size_t>(open->size()), '\0');
      WEFT_CHECK(open->read(0, std::as_writable_bytes(std::span(text))));
      return text;
    });
  }

  Store& store_;
  DraftFiles& files_;
  const bool add_;
  std::optional<LoadedVersion> base_;
  StoredFiles stored_;
};

// Returns the given files to which no program has written since they were read.
std::vector<GivenFile> unwritten(const DraftFiles& files) {
  std::vector<GivenFile> given;
  for (const Draft& draft : files.drafts)
    if (draft.lease && draft.lease->holds()) given.push_back({draft.source.path, draft.lease->fd(), draft.source.take});
  return given;
}

// Makes the version's content from its manifest. The manifest may be large: it is on the disk before the content takes
// memory, and freed afterwards.
Status describe_content(Import& import, PublishRequest& request, ImportReport& report, Manifest manifest) {
  report.files = published_files(manifest).size();
  report.tensors = tensor_count(manifest);
  report.logical_bytes = logical_bytes(manifest);
  for (const File& file : published_files(manifest))
    if (const std::string_view remark = remark_on(file); !remark.empty())
      report.remarks.push_back(fmt::format("{}: {}", printable(file.path), remark));
  malloc_trim(0);  // memory that was freed while a million tensors were read lies between used blocks
  WEFT_CHECK(import.seal([&manifest](const auto& use) { return encode_manifest(manifest, use); }));
  WEFT_TRY(request.content, content_of(std::move(manifest)));
  return {};
}

// True if a version's source names the commit and the URLs of another one. Endpoint, revision and time may differ.
bool is_named(const Provenance& given, const Provenance& stored) {
  return (given.commit.empty() || given.commit == stored.commit) && (given.urls.empty() || given.urls == stored.urls);
}

// Returns the texts and parents of a request that the version with the same content lacks. `message` is the user's.
std::vector<std::string> lacks(const VersionRow& version, const PublishRequest& request, const std::string& message) {
  std::vector<std::string> lacking;
  if (!message.empty() && message != version.message) lacking.emplace_back("message");
  if (!is_named(request.source, version.source)) lacking.emplace_back("source");
  for (const auto& metric : request.metrics)
    if (std::ranges::find(version.metrics, metric) == version.metrics.end())
      lacking.push_back(fmt::format("metric {}", metric.first));
  for (const ParentRef& parent : request.parents) {
    const auto same = [&](const ParentRef& known) {
      return known.model == parent.model && known.number == parent.number;
    };
    if (parent.declared && std::ranges::none_of(version.parents, same))
      lacking.push_back(fmt::format("parent {}", spec_of(parent.model, parent.number)));
  }
  return lacking;
}

}  // namespace

Result<ImportReport> run_import(Store& store, ManifestResolver& resolver, PreparedImport prepared, Progress& progress,
                                const Publish& publish) {
  PreparedImport::State& state = prepared.state();
  PublishRequest& request = state.request;
  ParentWishes wishes{{}, {}, {}, state.options.find_parent};
  if (const auto mounts = mounts_of(store.path()); mounts.ok())
    for (const WeftMount& mount : *mounts) wishes.mounts.push_back(mount.directory);
  std::vector<std::string>& parents = state.options.parents;
  if (state.inherits()) parents.insert(parents.begin(), state.options.inherit);
  WEFT_TRY(wishes.declared, resolve_parents(store, parents));
  WEFT_TRY(Whole whole, Whole::begin(store, resolver, state, state.inherits() ? &wishes.declared.front() : nullptr));
  WEFT_TRY(Architecture architecture, whole.check());
  WEFT_TRY(auto import, store.begin_import(state.options.durability));
  log_debug(LogCategory::store, "publish of {}: reads {} files", request.model, state.files.drafts.size());
  MountedFiles mounted = MountedFiles::of(store, resolver);
  ImportReport report;
  WEFT_TRY(report.mounted_files, add_content(*import, state.files, mounted, progress));
  report.records = state.files.records;
  report.left_out = std::move(state.left_out);
  report.moved = std::move(state.moved);
  WEFT_TRY(Inherited version, whole.take());
  version.manifest.architecture = std::move(architecture);
  WEFT_CHECK(add_headers(*import, version, progress));
  WEFT_CHECK(add_missing_sums(*import, version.manifest, progress));
  for (Draft& one : state.files.drafts) std::ranges::move(one.bases, std::back_inserter(wishes.bases));
  WEFT_TRY(Parents chosen, choose_parents(store, resolver, request.model, version.manifest, wishes));
  request.parents = std::move(chosen.refs);
  request.elsewhere = std::move(chosen.elsewhere);
  if (progress.cancelled()) return cancelled_import();
  log_debug(LogCategory::store, "publish of {}: packs written, {} parents", request.model, request.parents.size());
  progress.phase("making it durable");
  WEFT_CHECK(describe_content(*import, request, report, std::move(version.manifest)));
  report.files += state.files.small_files;
  log_debug(LogCategory::store, "publish of {}: manifest written, {} files", request.model, report.files);
  WEFT_TRY(report.outcome, publish ? publish(*import, request) : import->publish(request));
  log_debug(LogCategory::store, "publish of {}: {} version {}", request.model,
            report.outcome.made ? "committed as" : "equals", report.outcome.version.number);
  import.reset();
  if (!report.outcome.made) {
    report.not_kept = lacks(report.outcome.version, request, state.options.message);
    return report;
  }
  assemble_by_sharing(store, report.outcome.version);
  assemble_given(store, report.outcome.version, unwritten(state.files));
  return report;
}

}  // namespace weft
