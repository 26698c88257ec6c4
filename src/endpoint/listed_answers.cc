#include "endpoint/listed_answers.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "endpoint/hub_answers.h"
#include "weft/store_rows.h"

namespace weft {
namespace {

using What = HubRoute::What;
using Rows = std::map<std::string, ServedFile, std::less<>>;  // by path

// Returns the rows of a directory's listing: `is_recursive` includes the rows of its subdirectories.
Rows rows_below(const UpstreamCommit& commit, const std::string& directory, bool is_recursive) {
  const std::string prefix = directory.empty() ? "" : directory + "/";
  Rows rows;
  for (const HubFile& file : commit.files) {
    if (!file.path.starts_with(prefix)) continue;
    auto slash = file.path.find('/', prefix.size());
    const bool is_own = slash == std::string::npos;
    for (; slash != std::string::npos; slash = file.path.find('/', slash + 1)) {
      const std::string path = file.path.substr(0, slash);
      rows.try_emplace(path, ServedFile{path, true, 0, {}});
      if (!is_recursive) break;
    }
    if (is_own || is_recursive) rows.emplace(file.path, served(file));
  }
  return rows;
}

HttpReply info(const HubRoute& route, const UpstreamCommit& commit, bool with_digests) {
  VersionRow version;
  version.model_name = route.repository.name;
  version.kind = route.repository.kind;
  version.source.access = commit.access;
  JsonWriter json;
  json.begin_object();
  write_repository(json, version, commit.commit);
  json.key("siblings").begin_array();
  std::size_t files = 0;
  for (const HubFile& file : commit.files)
    if (files++ < limits::kHubSiblingsMax) write_sibling(json, served(file), commit.commit, with_digests);
  json.end_array().end_object();
  return hub_json(json.take());
}

HttpReply tree(const HttpRequest& request, const HubRoute& route, const UpstreamCommit& commit) {
  if (request.argument("cursor")) return hub_refusal(400, "", "cursor: expected one of an earlier page");
  const Rows rows = rows_below(commit, route.path, is_true_argument(request, "recursive"));
  if (rows.empty()) return no_file(route.path, text_of(route.repository), commit.commit);
  JsonWriter json;
  json.begin_array();
  for (const auto& [path, row] : rows) write_row(json, row, commit.commit);
  return hub_json(json.end_array().take());
}

HttpReply paths(const HttpRequest& request, const UpstreamCommit& commit) {
  const auto paths = named_paths(request);
  if (!paths.ok()) return hub_refusal(400, "", paths.error().message);
  const Rows rows = rows_below(commit, "", true);
  JsonWriter json;
  json.begin_array();
  for (const std::string& path : *paths)
    if (const auto row = rows.find(path); row != rows.end()) write_row(json, row->second, commit.commit);
  return hub_json(json.end_array().take());
}

HttpReply refs(const UpstreamCommit& commit) {
  JsonWriter json;
  json.begin_object().key("branches").begin_array();
  write_ref(json, kHubBranch, "heads", commit.commit);
  json.end_array().key("converts").begin_array().end_array().key("tags").begin_array().end_array().end_object();
  return hub_json(json.take());
}

std::optional<HttpReply> file(const HttpRequest& request, const HubRoute& route, const UpstreamCommit& commit) {
  const HubFile* const found = listed_file(commit, route.path);
  if (found == nullptr) return no_file(route.path, text_of(route.repository), commit.commit);
  const ServedFile file = served(*found);
  HttpReply reply;
  reply.fields = file_fields(file, etag_of(file, commit.commit), commit.commit);
  if (request.has_content(etag_of(file, commit.commit))) return http_not_modified(std::move(reply.fields));
  if (request.method != HttpRequest::Method::head) return std::nullopt;
  reply.fields.emplace_back("Accept-Ranges", "bytes");
  reply.body = HttpFile{Fd(), 0, file.size, {}};
  return reply;
}

}  // namespace

ServedFile served(const HubFile& file) {
  return {file.path, false, file.size, file.sha256, file.git_sha1};
}

const HubFile* listed_file(const UpstreamCommit& commit, std::string_view path) {
  const auto file = std::ranges::lower_bound(commit.files, path, {}, &HubFile::path);
  return file == commit.files.end() || file->path != path ? nullptr : &*file;
}

std::optional<HttpReply> listed_answer(const HttpRequest& request, const HubRoute& route,
                                       const UpstreamCommit& commit) {
  switch (route.what) {
    case What::info:
      return info(route, commit, is_true_argument(request, "blobs"));
    case What::tree:
      return tree(request, route, commit);
    case What::paths:
      return paths(request, commit);
    case What::refs:
      return refs(commit);
    case What::file:
      return file(request, route, commit);
  }
  return std::nullopt;
}

}  // namespace weft
