#include "weft/programs/match.h"

#include <fmt/core.h>

#include "base/limits.h"
#include "base/text.h"
#include "blobs/arch_items.h"
#include "os/sys.h"
#include "publish/draft.h"
#include "publish/fd_source.h"
#include "publish/gather.h"
#include "weft/model/arch_match.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

bool looks_like_path(std::string_view argument) {
  return argument.starts_with('.') || argument.starts_with('/') || argument.ends_with('/') ||
         argument.ends_with(".json");
}

Result<MatchSubject> read_graph(const std::string& path) {
  struct stat seen {};
  WEFT_TRY(Fd fd, open_source({path, path, 0}, seen));
  auto size = static_cast<std::uint64_t>(seen.st_size);
  if (size > limits::kGraphJsonMax)
    return Error{Errc::invalid,
                 fmt::format("{}: expected at most {} bytes, got {}", path, limits::kGraphJsonMax, size)};
  std::string text(size, '\0');
  WEFT_CHECK(read_exact(fd.get(), 0, std::as_writable_bytes(std::span(text)), path));
  WEFT_TRY(ArchGraph graph, parse_graph_json(path, text));
  return MatchSubject{std::move(graph), {}};
}

Result<MatchSubject> read_path(Store& store, const std::string& path, Progress& progress) {
  WEFT_TRY(struct stat seen, stat_file(path));
  if (!S_ISDIR(seen.st_mode) && path.ends_with(".json")) return read_graph(path);
  WEFT_TRY(Manifest manifest, draft_manifest({path}, store.path(), progress));
  return MatchSubject{graph_of(manifest), {}};
}

Result<MatchSubject> read_version(Store& store, ManifestResolver& resolver, const VersionRow& row) {
  WEFT_TRY(const Manifest manifest, load_manifest(store, resolver, row));
  return MatchSubject{graph_of(manifest), row.id};
}

// Returns the stored tensors of the vertices in the common prefix, each with the name of the subject's tensor.
std::vector<TakenTensor> taken(const ArchGraph& wanted, const ArchGraph& stored,
                               const std::vector<std::pair<std::uint32_t, std::uint32_t>>& prefix) {
  std::vector<TakenTensor> tensors;
  for (auto [mine, theirs] : prefix) {
    const auto& to = wanted.vertices[mine].tensors;
    const auto& from = stored.vertices[theirs].tensors;
    for (std::size_t i = 0; i < std::min(to.size(), from.size()); ++i)
      tensors.push_back(
          {to[i].name, from[i].name, from[i].dtype, from[i].shape,
           tensor_bytes(from[i].dtype, from[i].shape).ok() ? *tensor_bytes(from[i].dtype, from[i].shape) : 0});
  }
  return tensors;
}

Result<std::vector<std::pair<VersionRow, std::uint64_t>>> look_up(Store& store, const MatchQuery& query) {
  WEFT_TRY(auto snapshot, store.snapshot());
  WEFT_TRY(auto hits, snapshot->match(query));
  std::vector<std::pair<VersionRow, std::uint64_t>> rows;
  for (const MatchHit& hit : hits) {
    WEFT_TRY(VersionRow row, snapshot->version(hit.version));
    rows.emplace_back(std::move(row), hit.shared);
  }
  return rows;
}

}  // namespace

Result<MatchSubject> match_subject(Store& store, ManifestResolver& resolver, const std::string& argument,
                                   Progress& progress) {
  if (looks_like_path(argument)) return read_path(store, argument, progress);
  auto row = version_of(store, argument);
  if (row.ok()) return read_version(store, resolver, *row);
  if (row.error().code != Errc::not_found && row.error().code != Errc::invalid) return std::move(row).error();
  if (stat_file(argument).ok()) return read_path(store, argument, progress);
  return std::move(row).error();
}

Result<std::vector<Match>> find_matches(Store& store, ManifestResolver& resolver, const MatchSubject& subject,
                                        const MatchOptions& options) {
  std::vector<Digest> ids = vertex_ids(subject.graph);
  MatchQuery query{items_of(subject.graph, ids), options.metric, options.smallest, options.top, subject.version};
  WEFT_TRY(auto rows, look_up(store, query));
  std::vector<Match> matches;
  for (auto& [row, shared] : rows) {
    WEFT_TRY(const Manifest manifest, load_manifest(store, resolver, row));
    ArchGraph stored = graph_of(manifest);
    auto prefix = common_prefix(ids, vertex_ids(stored));
    if (prefix.size() != shared)
      return Error{Errc::corrupt, fmt::format("{}@{}: the index says that {} layers are shared, its manifest {}; run "
                                              "`weft fsck --rebuild`",
                                              row.model_name, row.number, shared, prefix.size())};
    matches.push_back({std::move(row), shared, stored.vertices.size(), taken(subject.graph, stored, prefix)});
  }
  return matches;
}

}  // namespace weft
