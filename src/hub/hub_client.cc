#include "hub/hub_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/limits.h"
#include "base/sha256.h"
#include "base/text.h"
#include "hub/hub_link.h"
#include "weft/names.h"

namespace weft {
namespace {

constexpr int kWhole = 200;
constexpr int kPart = 206;
constexpr std::chrono::milliseconds kConnectMax{10'000};

HttpReaderOptions reading_of(const HubSettings& settings, HttpReaderOptions reading) {
  reading.http.ca = settings.ca;
  reading.http.ca_directory = settings.ca_directory;
  reading.user_agent = "weft/" WEFT_VERSION;
  reading.token = settings.token;
  reading.token_origin = settings.origin;
  return reading;
}

// Returns a field of the last answer, else of the first one; null if neither has it.
const std::string* field_of(const HttpResult& result, std::string_view name) {
  const std::string* field = result.last.field(name);
  return field == nullptr ? result.first.field(name) : field;
}

// Returns the text in the quotes of an ETag, without the mark of a weak one.
std::string unquoted(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"')) etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

// Returns a field of this name of an answer that may have several, as Link.
std::optional<std::string_view> link_in(const AnswerHead& head, std::string_view relation) {
  for (const auto& [name, value] : head.fields)
    if (name == "link")
      if (const auto link = link_of(value, relation)) return link;
  return std::nullopt;
}

}  // namespace

// The subject of a request, for its messages.
struct HubClient::Subject {
  const HubName& repository;
  std::string revision;  // or commit
  std::string path;      // "": the whole repository

  std::string text() const {
    return path.empty() ? text_of(repository) : fmt::format("{}: \"{}\"", text_of(repository), printable(path));
  }
};

HttpReaderOptions hub_reading() {
  HttpReaderOptions reading;
  reading.http.connect_max = kConnectMax;
  reading.http.proxies = HttpProxies::environment;
  return reading;
}

HubClient::HubClient(HubSettings settings, HttpReaderOptions reading)
    : settings_(std::move(settings)), reader_(reading_of(settings_, std::move(reading))) {}

Error HubClient::named(const Subject& subject, Error error) const {
  error.message = fmt::format("{}: {}", subject.text(), error.message);
  return error;
}

Status HubClient::check_online(const Subject& subject) const {
  if (!settings_.offline) return {};
  return named(subject, Error{Errc::unreachable, "offline: HF_HUB_OFFLINE is set"});
}

Error HubClient::no_access(const Subject& subject, const HttpResult& result) const {
  const std::string page = HubUrls(settings_.endpoint, subject.repository).page();
  const std::string* code = result.last.field("x-error-code");
  const std::string* message = result.last.field("x-error-message");
  const bool has_token = !settings_.token.empty();
  if (code != nullptr && *code == "GatedRepo")
    return Error{Errc::permission, fmt::format("the repository is gated: accept its terms at {}{}", page,
                                               has_token ? " with the account of the token" : ", then set HF_TOKEN")};
  const std::string said =
      message == nullptr ? "" : fmt::format(" ({})", printable(*message, limits::kHubErrorTextMax));
  return Error{Errc::permission,
               fmt::format("{} refuses access with status {}{}: the repository is private, or does not exist; {}",
                           settings_.endpoint, result.last.status, said,
                           has_token ? "the token does not open it" : "set HF_TOKEN if it is yours")};
}

// Finds the words for an answer that is not the expected one.
Error HubClient::refusal(const Subject& subject, const HttpResult& result, int expected) const {
  const int status = result.last.status;
  if (result.redirected_away)
    return Error{Errc::io, fmt::format("expected status {} from {}, got {}", expected, result.url.host(), status)};
  const std::string* field = result.last.field("x-error-code");
  const std::string_view code = field == nullptr ? std::string_view() : std::string_view(*field);
  if (code == "RevisionNotFound")
    return Error{Errc::not_found,
                 fmt::format("no revision \"{}\" at {}", printable(subject.revision), settings_.endpoint)};
  if (code == "EntryNotFound")
    return Error{Errc::not_found, fmt::format("no such file in {} at {}", subject.revision, settings_.endpoint)};
  if (code == "RepoNotFound" || (code.empty() && status == 404))
    return Error{
        Errc::not_found,
        fmt::format("no such {}{} at {}, or it is private{}", kind_name(subject.repository.kind),
                    subject.path.empty() ? "" : " or file", settings_.endpoint,
                    settings_.token.empty() ? ": set HF_TOKEN if it is yours" : " and the token does not open it")};
  if (code == "GatedRepo" || status == 401 || status == 403) return no_access(subject, result);
  return Error{Errc::io, fmt::format("expected status {} from {}, got {}{}", expected, result.url.host(), status,
                                     code.empty() ? "" : fmt::format(" ({})", printable(code)))};
}

Status HubClient::check_status(const Subject& subject, const HttpResult& result, int expected) const {
  if (result.last.status == expected) return {};
  return named(subject, refusal(subject, result, expected));
}

Result<HttpResult> HubClient::get_json(const Subject& subject, const std::string& url, std::size_t body_max,
                                       std::string& text) {
  WEFT_CHECK(check_online(subject));
  HttpRead read;
  read.url = url;
  read.body_max = body_max;
  auto result = reader_.get_text(read, text);
  if (!result.ok()) return named(subject, std::move(result).error());
  WEFT_CHECK(check_status(subject, *result, kWhole));
  return result;
}

Result<HubRevision> HubClient::revision(const HubSource& source) {
  const Subject subject{source.repository, source.revision, {}};
  std::string text;
  WEFT_CHECK(get_json(subject, HubUrls(settings_.endpoint, source.repository).revision(source.revision),
                      limits::kHubInfoMax, text));
  auto revision = parse_hub_revision(text, subject.text());
  if (!revision.ok()) return revision;
  if (is_commit_hash(source.revision) && revision->commit != source.revision)
    return named(subject, Error{Errc::changed,
                                fmt::format("expected the commit {}, got {}", source.revision, revision->commit)});
  return revision;
}

// Returns the URL of the next page; "" after the last one.
Result<std::string> HubClient::next_page(const Subject& subject, const HttpResult& page) const {
  const auto link = link_in(page.last, "next");
  if (!link) return std::string();
  auto next = resolve_http_url(page.url, *link);
  if (!next.ok()) return named(subject, Error{Errc::io, fmt::format("the next page: {}", next.error().message)});
  if (next->origin != page.url.origin)
    return named(subject, Error{Errc::io, fmt::format("expected the next page at {}, got {}", page.url.host(),
                                                      printable(next->host()))});
  return std::move(next->text);
}

Result<std::vector<HubFile>> HubClient::files(const HubName& repository, const std::string& commit) {
  const Subject subject{repository, commit, {}};
  HubListing listing(subject.text());
  std::set<Digest> read;  // of the URLs
  std::string url = HubUrls(settings_.endpoint, repository).tree(commit);
  while (!url.empty()) {
    std::string text;
    WEFT_TRY(const HttpResult page, get_json(subject, url, limits::kHubPageMax, text));
    if (!read.insert(sha256(std::as_bytes(std::span(page.url.text)))).second)
      return named(subject, Error{Errc::io, "expected the next page of the listing, got an earlier one again"});
    WEFT_CHECK(listing.add_page(text));
    WEFT_TRY(url, next_page(subject, page));
  }
  return listing.finish();
}

Result<HubFileFacts> HubClient::facts(const HubName& repository, const std::string& commit, const std::string& path) {
  const Subject subject{repository, commit, path};
  WEFT_CHECK(check_online(subject));
  HttpRead read;
  read.url = HubUrls(settings_.endpoint, repository).file(commit, path);
  read.follow = HttpFollow::same_origin;
  auto result = reader_.head(read);
  if (!result.ok()) return named(subject, std::move(result).error());
  const bool leads_away = result->last.status / 100 == 3;
  if (!leads_away) WEFT_CHECK(check_status(subject, *result, kWhole));
  const auto missing = [&](std::string_view field) {
    return named(subject, Error{Errc::io, fmt::format("expected an answer with {}, got one without", field)});
  };
  HubFileFacts facts;
  const std::string* got = field_of(*result, "x-repo-commit");
  if (got == nullptr) return missing("X-Repo-Commit");
  if (*got != commit)
    return named(subject,
                 Error{Errc::changed, fmt::format("expected a file of commit {}, got {}", commit, printable(*got))});
  const std::string* etag = field_of(*result, "x-linked-etag");
  if (etag == nullptr) etag = field_of(*result, "etag");
  if (etag == nullptr) return missing("ETag");
  facts.etag = unquoted(*etag);
  const std::string* size = field_of(*result, "x-linked-size");
  if (size == nullptr && !leads_away) size = result->last.field("content-length");
  const auto bytes = size == nullptr ? std::nullopt : parse_u64(*size);
  if (!bytes) return missing("a size");
  facts.size = *bytes;
  return facts;
}

Status HubClient::read(const HubName& repository, const std::string& commit, const HubFile& file, Range range,
                       const ByteSink& sink) {
  const Subject subject{repository, commit, file.path};
  WEFT_CHECK(check_online(subject));
  HttpRead read;
  read.url = HubUrls(settings_.endpoint, repository).file(commit, file.path);
  read.range = range;
  read.size = file.size;
  auto result = reader_.get(read, sink);
  if (!result.ok()) return named(subject, std::move(result).error());
  WEFT_CHECK(check_status(subject, *result, kPart));
  const std::string* got = result->first.field("x-repo-commit");
  if (got == nullptr || *got == commit) return {};
  return named(subject,
               Error{Errc::changed, fmt::format("expected a file of commit {}, got {}", commit, printable(*got))});
}

}  // namespace weft
