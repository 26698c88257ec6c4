#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/limits.h"
#include "base/text.h"
#include "node/content.h"
#include "node/cut.h"
#include "node/draft.h"
#include "node/fd_source.h"
#include "node/gather.h"
#include "node/parents.h"
#include "node/shards.h"
#include "weft/assembly.h"
#include "weft/node.h"

namespace weft {
namespace {

Status check_text(std::string_view what, std::string_view text, std::size_t bytes_max, bool lines) {
  if (text.size() > bytes_max)
    return Error{Errc::invalid, fmt::format("{}: expected at most {} bytes, got {}", what, bytes_max, text.size())};
  auto refused = [&](char c) { return static_cast<unsigned char>(c) < 0x20 && !(lines && (c == '\n' || c == '\t')); };
  if (!valid_utf8(text) || std::any_of(text.begin(), text.end(), refused))
    return Error{Errc::invalid,
                 fmt::format("{}: expected UTF-8 without control characters, got \"{}\"", what, printable(text))};
  return {};
}

Status check_metrics(const std::vector<std::pair<std::string, std::string>>& metrics) {
  if (metrics.size() > limits::kMetricsMax)
    return Error{Errc::invalid,
                 fmt::format("expected at most {} metrics, got {}", limits::kMetricsMax, metrics.size())};
  std::set<std::string_view> seen;
  for (const auto& [key, value] : metrics) {
    WEFT_CHECK(check_text("name of a metric", key, limits::kMetricTextMax, false));
    WEFT_CHECK(check_text(fmt::format("metric {}", key), value, limits::kMetricTextMax, false));
    if (key.empty()) return Error{Errc::invalid, "metric: expected KEY=VALUE, got no key"};
    if (!seen.insert(key).second) return Error{Errc::invalid, fmt::format("metric {}: given twice", key)};
  }
  return {};
}

// Everything that is said about the version; its content and parents come later.
Result<PublishRequest> describe(const ImportOptions& options) {
  WEFT_CHECK(check_model_name(options.name));
  WEFT_CHECK(check_text("message", options.message, limits::kMessageMax, true));
  WEFT_CHECK(check_metrics(options.metrics));
  PublishRequest request;
  request.model = options.name;
  request.message = options.message;
  request.metrics = options.metrics;
  std::set<std::string_view> tags;
  for (const std::string& tag : options.tags) {
    WEFT_CHECK(check_tag_name(tag));
    if (tags.insert(tag).second) request.tags.push_back(tag);
  }
  return request;
}

// A source whose format is known and whose content is not read yet.
struct Draft {
  SourceFile source;
  struct stat seen {};
  std::vector<Range> ranges;
  std::map<std::string, std::string> shard_index;
  std::vector<std::string> bases;  // models that it names as those that this one was made from
};

File file_of(const Draft& draft, Layout layout, const Cut& cut) {
  File file;
  file.path = draft.source.path;
  file.size = static_cast<std::uint64_t>(draft.seen.st_size);
  file.format = std::move(layout.format);
  file.metadata = std::move(layout.metadata);
  file.extents.reserve(cut.ranges.size());
  for (const Range& range : cut.ranges) {
    Extent& extent = file.extents.emplace_back();
    extent.offset = range.offset;
    extent.id.length = range.length;
  }
  file.tensors.reserve(layout.tensors.size());
  for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
    TensorExtent& tensor = layout.tensors[i];
    file.tensors.push_back(
        {std::move(tensor.name), tensor.dtype, std::move(tensor.shape), cut.tensor_extent[i], std::move(tensor.descr)});
  }
  return file;
}

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// Parses `draft.source` and fills in the rest of it.
Result<File> parse_source(Draft& draft) {
  const std::string& where = draft.source.where;
  WEFT_TRY(Fd fd, open_source(where, draft.seen));
  FdSource bytes(fd.get(), static_cast<std::uint64_t>(draft.seen.st_size), where);
  WEFT_TRY(Layout layout, parse_file(where, base_name(draft.source.path), bytes));
  if (is_shard_index(draft.source.path)) {
    WEFT_TRY(draft.shard_index, parse_safetensors_index(where, bytes));
  }
  draft.bases = named_bases(draft.source.path, bytes);
  auto cut = cut_file(bytes.size(), layout.tensors);
  if (!cut.ok()) return Error{cut.error().code, fmt::format("{}: {}", where, cut.error().message)};
  File file = file_of(draft, std::move(layout), *cut);
  draft.ranges = std::move(cut->ranges);
  return file;
}

// A version whose every check that needs no hashing is passed: `manifest` lacks only the ids' digests.
struct DraftVersion {
  std::vector<Draft> drafts;
  std::shared_ptr<Manifest> manifest = std::make_shared<Manifest>();
  std::shared_ptr<const VersionTree> tree;
};

Error cancelled() {
  return Error{Errc::cancelled, "interrupted"};
}

// The whole of a small source.
Result<std::string> read_source(const Draft& draft) {
  const std::string& where = draft.source.where;
  struct stat opened {};
  WEFT_TRY(Fd fd, open_source(where, opened));
  WEFT_CHECK(check_unchanged(where, draft.seen, opened));
  std::string text(static_cast<std::size_t>(opened.st_size), '\0');
  WEFT_CHECK(read_exact(fd.get(), 0, std::as_writable_bytes(std::span(text)), where));
  return text;
}

Result<Architecture> read_architecture(const DraftVersion& version) {
  return architecture_of(*version.manifest, [&](const File& file) {
    return read_source(version.drafts[static_cast<std::size_t>(&file - version.manifest->files.data())]);
  });
}

Result<DraftVersion> draft_version(std::vector<SourceFile> sources, Progress& progress) {
  DraftVersion version;
  progress.phase("reading headers");
  for (SourceFile& source : sources) {
    if (progress.cancelled()) return cancelled();
    Draft& draft = version.drafts.emplace_back();
    draft.source = std::move(source);
    WEFT_TRY(File file, parse_source(draft));
    version.manifest->files.push_back(std::move(file));
  }
  for (const Draft& draft : version.drafts)
    WEFT_CHECK(check_shards(draft.source.where, draft.source.path, draft.shard_index, *version.manifest));
  WEFT_TRY(version.manifest->architecture, read_architecture(version));
  WEFT_TRY(version.tree, VersionTree::build(std::make_shared<const Manifest>(*version.manifest)));
  return version;
}

Status add_file(Import& import, const Draft& draft, File& file, Progress& progress) {
  const std::string& where = draft.source.where;
  struct stat opened {};
  WEFT_TRY(Fd fd, open_source(where, opened));
  WEFT_CHECK(check_unchanged(where, draft.seen, opened));
  if (draft.ranges.empty()) return {};
  progress.phase(fmt::format("reading {}", draft.source.path));
  WEFT_TRY(auto ids, import.add(fd.get(), where, draft.ranges, progress));
  WEFT_TRY(struct stat after, stat_fd(fd.get(), where));
  WEFT_CHECK(check_unchanged(where, draft.seen, after));
  if (ids.size() != file.extents.size())
    return Error{Errc::internal,
                 fmt::format("{}: expected {} extents, got {}", where, file.extents.size(), ids.size())};
  for (std::size_t i = 0; i < ids.size(); ++i) file.extents[i].id = ids[i];
  return {};
}

Status add_content(Import& import, DraftVersion& version, Progress& progress) {
  progress.total(logical_bytes(*version.manifest));
  for (std::size_t i = 0; i < version.drafts.size(); ++i) {
    if (progress.cancelled()) return cancelled();
    WEFT_CHECK(add_file(import, version.drafts[i], version.manifest->files[i], progress));
  }
  return {};
}

}  // namespace

Result<Manifest> draft_manifest(const std::vector<std::string>& paths, const std::string& store_path,
                                Progress& progress) {
  WEFT_TRY(auto sources, gather_sources(paths, store_path));
  WEFT_TRY(DraftVersion version, draft_version(std::move(sources), progress));
  return std::move(*version.manifest);
}

struct PreparedImport::State {
  PublishRequest request;
  std::vector<std::string> parents;
  std::optional<double> find_parent;
  DraftVersion version;
};

PreparedImport::PreparedImport(std::unique_ptr<State> state) : state_(std::move(state)) {}
PreparedImport::~PreparedImport() = default;
PreparedImport::PreparedImport(PreparedImport&&) noexcept = default;
PreparedImport& PreparedImport::operator=(PreparedImport&&) noexcept = default;

Result<PreparedImport> prepare_import(const ImportOptions& options, const std::string& store_path, Progress& progress) {
  auto state = std::make_unique<PreparedImport::State>();
  WEFT_TRY(state->request, describe(options));
  state->parents = options.parents;
  state->find_parent = options.find_parent;
  WEFT_TRY(auto sources, gather_sources(options.paths, store_path));
  WEFT_TRY(state->version, draft_version(std::move(sources), progress));
  return PreparedImport(std::move(state));
}

Result<ImportReport> run_import(Store& store, PreparedImport prepared, Progress& progress) {
  auto& [request, declared, find_parent, version] = prepared.state();
  ParentWishes wishes{{}, {}, find_parent};
  WEFT_TRY(wishes.declared, resolve_parents(store, declared));
  WEFT_TRY(auto import, store.begin_import());
  WEFT_CHECK(add_content(*import, version, progress));
  for (Draft& draft : version.drafts) std::ranges::move(draft.bases, std::back_inserter(wishes.bases));
  WEFT_TRY(Parents parents, settle_parents(store, request.model, *version.manifest, wishes));
  request.parents = std::move(parents.refs);
  request.elsewhere = std::move(parents.elsewhere);
  WEFT_TRY(request.manifest, encode_manifest(*version.manifest));
  request.content = content_from(*version.tree, *version.manifest);
  if (progress.cancelled()) return cancelled();
  progress.phase("making it durable");
  ImportReport report;
  report.files = version.manifest->files.size();
  report.tensors = tensor_count(*version.manifest);
  report.logical_bytes = request.content.logical_bytes;
  WEFT_TRY(report.outcome, import->publish(request));
  import.reset();
  if (report.outcome.made) assemble_by_sharing(store, report.outcome.version);
  return report;
}

Result<ImportReport> import_paths(Store& store, const ImportOptions& options, Progress& progress) {
  WEFT_TRY(PreparedImport prepared, prepare_import(options, store.path(), progress));
  return run_import(store, std::move(prepared), progress);
}

}  // namespace weft
