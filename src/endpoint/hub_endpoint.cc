#include "endpoint/hub_endpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "endpoint/hub_answers.h"
#include "endpoint/listed_answers.h"
#include "endpoint/served_listing.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "weft/store/snapshot.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

using What = HubRoute::What;
using Method = HttpRequest::Method;

constexpr auto kTrimPause = std::chrono::seconds(5);
// Clients of a hub wait ten seconds for an answer.
constexpr auto kUpstreamWait = std::chrono::seconds(8);

bool is_missing(const Error& error) {
  return error.code == Errc::not_found || error.code == Errc::not_dir;
}

bool takes_method(What what, Method method) {
  return what == What::paths ? method == Method::post : method != Method::post;
}

// True for localhost and for an address in digits, with or without a port.
bool is_own_host(std::string_view host) {
  if (host.starts_with('[')) return true;
  host = host.substr(0, host.find(':'));
  return std::ranges::equal(host, std::string_view("localhost"), {}, lower_ascii) ||
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

// True if a page of another site made a browser send the request. The page cannot read the answer, but what the request
// has pulled would stay.
bool is_of_other_site(const HttpRequest& request) {
  const auto site = request.field("Sec-Fetch-Site");
  return site && *site != "none" && *site != "same-origin";
}

HttpReply no_revision(const HubRoute& route) {
  return hub_refusal(404, "RevisionNotFound", fmt::format("Invalid rev id: {}", printable(route.revision)));
}

HttpReply no_repository(const HubRoute& route) {
  return hub_refusal(404, "RepoNotFound",
                     fmt::format("no {} {}", kind_name(route.repository.kind), printable(route.repository.name)));
}

HttpReply try_again(HttpReply reply, std::chrono::seconds pause) {
  reply.fields.emplace_back("Retry-After", std::to_string(pause.count()));
  return reply;
}

// Returns the answer after a failed question or a failed pull. GatedRepo makes clients say that the repository has
// terms to accept.
HttpReply upstream_failure(const UpstreamState& state) {
  if (state.error.code == Errc::permission) return hub_refusal(403, "GatedRepo", state.error.message);
  return try_again(hub_refusal(503, "", state.error.message), state.again);
}

// Reads a published file for an answer.
Result<std::size_t> read_for(const std::function<bool()>& cancelled, OpenFile& file, std::uint64_t offset,
                             std::span<std::byte> out) {
  const ColdWait wait([&] { return !cancelled(); });
  return file.read(offset, out);
}

}  // namespace

struct HubEndpoint::Asked {
  const HttpRequest& request;
  const HubRoute& route;
  const ModelRow& model;
  ServedVersion version;

  std::string content() const { return commit_of(version.row); }
};

// A client waits a few seconds for the first bytes of a file and then asks again, so no file is fetched whole before.
HubEndpoint::HubEndpoint(Store& store, ColdReads& cold, std::optional<HubToken> token, Upstream* upstream,
                         IncomingFiles* arriving)
    : store_(store),
      token_(token),
      upstream_(upstream),
      arriving_(arriving),
      vfs_(Vfs::make(store, {.cold = &cold, .cold_policy = ColdPolicy::stream})),
      served_(store, *vfs_, upstream == nullptr ? CommitNames::own : CommitNames::source),
      trimming_("hub endpoint") {
  trimming_.start([this]() -> Result<Worker::Pause> {
    vfs_->trim();
    return Worker::Pause(kTrimPause);
  });
}

// Without a token only this machine reaches the endpoint, and a browser is on this machine: a page of another site,
// whose name leads to the loopback by now, must not read models.
std::optional<HttpReply> HubEndpoint::refusal_of(const HttpRequest& request) const {
  if (!token_ && !is_own_host(request.field("Host").value_or("")))
    return hub_refusal(403, "", "without a token, the host of a request is localhost or an address");
  if (!token_ && upstream_ != nullptr && is_of_other_site(request))
    return hub_refusal(403, "", "a page of another site can have nothing pulled");
  if (!token_ || token_->opens(request.field("Authorization"))) return std::nullopt;
  HttpReply reply = hub_refusal(401, "", "Invalid credentials in Authorization header");
  reply.fields.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

HttpReply HubEndpoint::reply(const HttpRequest& request) {
  const auto routes = hub_routes(request.path);
  const std::size_t kind = routes.empty() ? HubCounts::kOther : static_cast<std::size_t>(routes.front().what);
  HttpReply reply;
  if (auto refusal = refusal_of(request)) {
    reply = *std::move(refusal);
  } else {
    const ColdWait wait([&] { return !request.cancelled(); });
    reply = with_etag(request, routed(request, routes));
  }
  counts_.answered(kind, reply.status);
  return reply;
}

// Of the names that a path may have, the first that exists counts: in the store, and else at the upstream.
HttpReply HubEndpoint::routed(const HttpRequest& request, const std::vector<HubRoute>& routes) {
  if (routes.empty()) return hub_refusal(404, "", "no such page");
  for (const HubRoute& route : routes) {
    const auto model = served_.model(route.repository);
    if (model.ok()) return answer(request, route, *model);
    if (!is_missing(model.error())) return failed(request, model.error());
  }
  for (const HubRoute& route : routes) {
    if (served_.is_taken(route.repository)) continue;
    if (auto reply = pulled(request, route)) return *std::move(reply);
  }
  return no_repository(routes.front());
}

HttpReply HubEndpoint::failed(const HttpRequest& request, const Error& error) {
  if (error.code != Errc::cancelled && rare_.due(error.message))
    log_warning("hub endpoint: {}: {}", printable(request.path.text), error.message);
  return hub_failure(error);
}

HttpReply HubEndpoint::no_entry(const Asked& asked, const Error& error) {
  if (!is_missing(error)) return failed(asked.request, error);
  return no_file(asked.route.path, spec_of(asked.version.row), asked.version.commit);
}

HttpReply HubEndpoint::answer(const HttpRequest& request, const HubRoute& route, const ModelRow& model) {
  if (!takes_method(route.what, request.method)) {
    HttpReply reply = hub_refusal(405, "", "another method is expected here");
    reply.fields.emplace_back("Allow", route.what == What::paths ? "POST" : "GET, HEAD");
    return reply;
  }
  if (route.what == What::refs) return handled({request, route, model, {}});
  auto version = served_.version(model, route.revision);
  if (!version.ok() && !is_missing(version.error())) return failed(request, version.error());
  const auto may_pull = version.ok() ? Result<bool>(version->is_stand_in) : served_.is_of_hub(model);
  if (!may_pull.ok() && !is_missing(may_pull.error())) return failed(request, may_pull.error());
  if (may_pull.ok() && *may_pull)
    if (auto reply = pulled(request, route, version.ok())) return *std::move(reply);
  if (!version.ok()) return no_revision(route);
  return handled({request, route, model, *std::move(version)});
}

HttpReply HubEndpoint::handled(const Asked& asked) {
  Result<HttpReply> (HubEndpoint::*const handlers[])(const Asked&) = {
      &HubEndpoint::info, &HubEndpoint::tree, &HubEndpoint::paths, &HubEndpoint::refs, &HubEndpoint::file};
  auto reply = (this->*handlers[static_cast<std::size_t>(asked.route.what)])(asked);
  if (!reply.ok() && is_missing(reply.error())) return no_revision(asked.route);  // removed meanwhile
  return reply.ok() ? *std::move(reply) : failed(asked.request, reply.error());
}

std::optional<HttpReply> HubEndpoint::pulled(const HttpRequest& request, const HubRoute& route, bool has_other) {
  using PullState = UpstreamState::What;
  if (upstream_ == nullptr || !takes_method(route.what, request.method)) return std::nullopt;
  const HubSource source{route.repository, route.revision.empty() ? std::string(kHubBranch) : route.revision};
  const Deadline deadline = Deadline::clock::now() + kUpstreamWait;
  UpstreamState state = upstream_->obtain(source, Upstream::Until::listed, deadline, request.cancelled);
  if (state.what == PullState::pulling) {
    if (auto reply = listed_answer(request, route, *state.commit)) return reply;
    state = upstream_->obtain(source, Upstream::Until::stored, deadline, request.cancelled);
    if (state.what == PullState::pulling)
      if (auto reply = arriving(request, route, source, *state.commit)) return reply;
  }
  if (state.what == PullState::stored) return stored(request, route, state.commit->commit);
  // Of the errors that clients repeat, only this one makes them repeat a download.
  if (state.what == PullState::pulling)
    return try_again(hub_refusal(429, "", fmt::format("{} is being pulled", text_of(route.repository))), state.again);
  if (has_other || (state.what == PullState::failed && is_missing(state.error))) return std::nullopt;
  if (state.what == PullState::no_revision) return no_revision(route);
  if (state.what == PullState::failed) return upstream_failure(state);
  return try_again(hub_refusal(503, "", "the upstream has not answered yet"), state.again);
}

std::optional<HttpReply> HubEndpoint::arriving(const HttpRequest& request, const HubRoute& route,
                                               const HubSource& source, const UpstreamCommit& commit) {
  const HubFile* const file = listed_file(commit, route.path);
  if (arriving_ == nullptr || route.what != What::file || file == nullptr || !file->sha256 || file->size == 0)
    return std::nullopt;
  const ServedFile shown = served(*file);
  const std::string etag = etag_of(shown, commit.commit);
  const HttpPart part = request.part_of(file->size, etag);
  if (part.kind == HttpPart::Kind::unsatisfiable || part.offset + part.length != file->size) return std::nullopt;
  const auto content = std::make_shared<ArrivingContent>(ArrivingContent::Parts{
      *upstream_, *arriving_, source, *file, stored_reader(request, source, commit.commit, *file), request.cancelled});
  if (!content->has(part.offset)) return std::nullopt;
  HttpReply reply = http_part_reply(part);
  std::ranges::move(file_fields(shown, etag, commit.commit), std::back_inserter(reply.fields));
  reply.fields.emplace_back("Content-Type", "application/octet-stream");
  reply.body = HttpContent{part.length, [content, begin = part.offset](std::uint64_t offset, std::span<std::byte> out) {
                             return content->read(begin + offset, out);
                           }};
  return reply;
}

ArrivingContent::ReadStored HubEndpoint::stored_reader(const HttpRequest& request, const HubSource& source,
                                                       const std::string& commit, const HubFile& file) {
  return [this, cancelled = request.cancelled, repository = source.repository, commit, file,
          open = std::shared_ptr<const Opened>()](std::uint64_t offset,
                                                  std::span<std::byte> out) mutable -> Result<std::size_t> {
    if (!open) {
      WEFT_TRY(const ModelRow model, served_.model(repository));
      WEFT_TRY(const ServedVersion version, served_.version(model, commit));
      WEFT_TRY(const ServedEntry entry, served_.entry(version.row, file.path));
      if (entry.file.sha256 != file.sha256)
        return Error{Errc::changed, fmt::format("{}: another file than the upstream listed", printable(file.path))};
      WEFT_TRY(Opened opened, vfs_->open_with_attr(entry.ino));
      open = std::make_shared<const Opened>(std::move(opened));
    }
    return read_for(cancelled, *open->file, offset, out);
  };
}

// Some revisions, such as refs/pr/1, have no name in the store, so the commit is looked for too.
HttpReply HubEndpoint::stored(const HttpRequest& request, const HubRoute& route, const std::string& commit) {
  const auto model = served_.model(route.repository);
  if (!model.ok()) return is_missing(model.error()) ? no_repository(route) : failed(request, model.error());
  if (route.what == What::refs) return handled({request, route, *model, {}});
  auto version = served_.version(*model, route.revision);
  if (!version.ok() && is_missing(version.error())) version = served_.version(*model, commit);
  if (version.ok()) return handled({request, route, *model, *std::move(version)});
  return is_missing(version.error()) ? no_revision(route) : failed(request, version.error());
}

Result<HttpReply> HubEndpoint::info(const Asked& asked) {
  WEFT_TRY(const ServedEntry root, served_.entry(asked.version.row, ""));
  const bool with_digests = is_true_argument(asked.request, "blobs");
  ServedListing listing(*vfs_, root.ino, "", {.recursive = true, .digests = with_digests});
  JsonWriter json;
  json.begin_object();
  write_repository(json, asked.version.row, asked.version.commit);
  json.key("siblings").begin_array();
  for (std::size_t files = 0; files < limits::kHubSiblingsMax;) {
    WEFT_TRY(const auto file, listing.next());
    if (!file) break;
    if (asked.request.cancelled()) return Error{Errc::cancelled, "the client has left"};
    if (file->is_directory) continue;
    write_sibling(json, *file, asked.content(), with_digests);
    ++files;
  }
  json.end_array().end_object();
  return hub_json(json.take());
}

Result<HttpReply> HubEndpoint::tree(const Asked& asked) {
  const HubRoute& route = asked.route;
  const auto entry = served_.entry(asked.version.row, route.path);
  if (!entry.ok()) return no_entry(asked, entry.error());
  if (!entry->file.is_directory) return no_entry(asked, Error{Errc::not_dir, ""});
  ServedListing listing(*vfs_, entry->ino, route.path, {.recursive = is_true_argument(asked.request, "recursive")});
  if (const auto cursor = asked.request.argument("cursor"))
    if (const Status sought = listing.seek(*cursor); !sought.ok()) {
      if (sought.error().code != Errc::invalid) return sought.error();
      return hub_refusal(400, "", sought.error().message);
    }
  JsonWriter json;
  json.begin_array();
  std::string cursor;
  for (std::size_t rows = 0;; ++rows) {
    if (rows == limits::kHubRowsPerPage) cursor = listing.cursor();
    WEFT_TRY(const auto file, listing.next());
    if (!file) cursor.clear();
    if (!file || rows == limits::kHubRowsPerPage) break;
    write_row(json, *file, asked.content());
  }
  HttpReply reply = hub_json(json.end_array().take());
  if (!cursor.empty()) reply.fields.emplace_back("Link", next_page_link(asked.request, cursor));
  return reply;
}

Result<HttpReply> HubEndpoint::paths(const Asked& asked) {
  const auto paths = named_paths(asked.request);
  if (!paths.ok()) return hub_refusal(400, "", paths.error().message);
  JsonWriter json;
  json.begin_array();
  for (const std::string& path : *paths) {
    if (asked.request.cancelled()) return Error{Errc::cancelled, "the client has left"};
    const auto entry = served_.entry(asked.version.row, path);
    if (!entry.ok() && !is_missing(entry.error())) return entry.error();
    if (entry.ok() && !path.empty()) write_row(json, entry->file, asked.content());
  }
  return hub_json(json.end_array().take());
}

// Tags first, then the newest numbers. Both are tags for a client.
Result<HttpReply> HubEndpoint::refs(const Asked& asked) {
  const ModelRow& model = asked.model;
  std::map<std::uint64_t, std::string> commits;  // by the number of a live version
  WEFT_CHECK(each_row(store_, list_versions(model.id), [&](const VersionRow& version) -> Status {
    if (!version.removed) commits.emplace(version.number, commit_of(version));
    if (commits.size() > limits::kHubRefsMax) commits.erase(commits.begin());
    return {};
  }));
  WEFT_TRY(const ServedVersion main, served_.version(model, kMainRevision));
  JsonWriter json;
  json.begin_object().key("branches").begin_array();
  write_ref(json, kMainRevision, "heads", main.commit);
  json.end_array().key("converts").begin_array().end_array().key("tags").begin_array();
  WEFT_CHECK(each_row(store_, list_tags(model.id), [&](const TagRow& tag) -> Status {
    const auto commit = commits.find(tag.number);
    if (commit != commits.end() && tag.name != kMainRevision) write_ref(json, tag.name, "tags", commit->second);
    return {};
  }));
  for (const auto& [number, commit] : commits) write_ref(json, std::to_string(number), "tags", commit);
  json.end_array().end_object();
  return hub_json(json.take());
}

Result<HttpReply> HubEndpoint::file(const Asked& asked) {
  const auto entry = served_.entry(asked.version.row, asked.route.path);
  if (!entry.ok()) return no_entry(asked, entry.error());
  if (entry->file.is_directory) return no_entry(asked, Error{Errc::not_found, ""});
  const std::string etag = etag_of(entry->file, asked.content());
  HttpFields fields = file_fields(entry->file, etag, asked.version.commit);
  if (asked.request.has_content(etag)) return http_not_modified(std::move(fields));
  const HttpPart part = asked.request.part_of(entry->file.size, etag);
  HttpReply reply = http_part_reply(part);
  std::ranges::move(fields, std::back_inserter(reply.fields));
  if (part.kind == HttpPart::Kind::unsatisfiable) return reply;
  reply.fields.emplace_back("Content-Type", "application/octet-stream");
  return bytes_of(asked, *entry, std::move(reply), part);
}

Result<HttpReply> HubEndpoint::bytes_of(const Asked& asked, const ServedEntry& entry, HttpReply reply,
                                        const HttpPart& part) {
  if (asked.request.method == Method::head) {
    reply.body = HttpFile{Fd(), part.offset, part.length, {}};
    return reply;
  }
  WEFT_TRY(Opened opened, vfs_->open_with_attr(entry.ino));
  auto open = std::make_shared<const Opened>(std::move(opened));
  if (const auto place = open->file->place_of({part.offset, part.length})) {
    WEFT_TRY(Fd fd, open_descriptor(place->fd));  // a pack's own descriptor has no read-ahead
    advise_sequential(fd.get());
    reply.body = HttpFile{std::move(fd), place->offset, part.length, std::move(open)};
    return reply;
  }
  reply.body = HttpContent{
      part.length, [open = std::move(open), begin = part.offset, cancelled = asked.request.cancelled](
                       auto offset, auto out) { return read_for(cancelled, *open->file, begin + offset, out); }};
  return reply;
}

}  // namespace weft
