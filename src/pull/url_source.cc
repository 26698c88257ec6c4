#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/limits.h"
#include "base/plain_text.h"
#include "base/text.h"
#include "os/sys.h"
#include "pull/pull_names.h"
#include "pull/pull_source.h"
#include "weft/model/manifest.h"

namespace weft {
namespace {

constexpr int kWhole = 200;
constexpr int kPart = 206;

struct UrlFile {
  HttpUrl url;
  Digest sha256;
};
using UrlFiles = std::map<std::string, UrlFile, std::less<>>;  // by path

Result<std::string> path_of(const HttpUrl& url) {
  const std::string_view shown = std::string_view(url.shown).substr(url.shown.find("://") + 3);
  const auto slash = shown.rfind('/');
  auto path = percent_decoded(slash == std::string_view::npos ? std::string_view() : shown.substr(slash + 1));
  const Status usable = path.ok() ? check_file_path(*path) : Status{path.error()};
  if (!usable.ok()) return Error{Errc::invalid, fmt::format("{}: {}", url.shown, usable.error().message)};
  if (path->find('/') == std::string::npos) return path;
  return Error{Errc::invalid, fmt::format("{}: expected a file name at the end, got one with a '/'", url.shown)};
}

// Returns the size in "bytes 0-0/1234".
std::optional<std::uint64_t> size_in(const AnswerHead& head) {
  const std::string* range = head.field("content-range");
  return range == nullptr ? std::nullopt : parse_u64(std::string_view(*range).substr(range->rfind('/') + 1));
}

class UrlSource final : public PullSource {
 public:
  UrlSource(UrlFiles files, VersionKind kind, HttpReaderOptions reading)
      : files_(std::move(files)), kind_(kind), reader_(std::move(reading)) {}

  std::string text() const override {
    const std::string& first = files_.begin()->second.url.shown;
    return files_.size() == 1 ? first : fmt::format("{} and {} more", first, files_.size() - 1);
  }
  VersionKind kind() const override { return kind_; }
  Result<std::string> name() const override { return Error{Errc::invalid, "--name is required with a URL"}; }
  std::string revision() const override { return {}; }
  std::optional<std::string> tag() const override { return std::nullopt; }
  std::string key() const override {
    std::string text;
    for (const auto& [path, file] : files_) text += fmt::format("{} {}\n", to_hex(file.sha256), path);
    return pull_key(text);
  }

  Result<PullListing> list() override {
    PullListing listing;
    for (const auto& [path, file] : files_) {
      WEFT_TRY(const std::uint64_t size, size_of(file));
      listing.files.push_back({path, size, {}, file.sha256});
      add_url(listing.source, file.url.text.substr(0, file.url.text.find('?')));
    }
    listing.source.listed_ns = now_ns();
    WEFT_CHECK(check_source(listing.source));
    listing.description = text();
    return listing;
  }

  Status read(const HubFile& file, Range range, const ByteSink& sink) override {
    const UrlFile& from = files_.find(file.path)->second;
    HttpRead read;
    read.url = from.url.text;
    read.range = range;
    read.size = file.size;
    return check(from, reader_.get(read, sink));
  }

 private:
  static Status check(const UrlFile& file, const Result<HttpResult>& result) {
    if (!result.ok()) return Error{result.error().code, fmt::format("{}: {}", file.url.shown, result.error().message)};
    const int status = result->last.status;
    if (status == kPart) return {};
    return Error{status == 404 ? Errc::not_found : Errc::io,
                 fmt::format("{}: expected status {}, got {}{}", file.url.shown, kPart, status,
                             status == kWhole ? ": the server gives no ranges" : "")};
  }

  // Asks for the first byte: a signed URL may allow no other method than GET.
  Result<std::uint64_t> size_of(const UrlFile& file) {
    HttpRead read;
    read.url = file.url.text;
    read.range = Range{0, 1};
    const auto result = reader_.get(read, [](std::span<const std::byte>) { return Status(); });
    WEFT_CHECK(check(file, result));
    const auto size = size_in(result->last);
    if (size && *size <= limits::kVersionBytesMax) return *size;
    return Error{Errc::io, fmt::format("{}: expected an answer with the size of the file", file.url.shown)};
  }

  const UrlFiles files_;
  const VersionKind kind_;
  HttpReader reader_;
};

}  // namespace

Result<std::unique_ptr<PullSource>> url_source(std::span<const std::string> urls, std::span<const std::string> sha256,
                                               VersionKind kind, HttpReaderOptions reading) {
  if (urls.size() != sha256.size())
    return Error{Errc::invalid,
                 fmt::format("--sha256: expected one for each of {} URLs, got {}", urls.size(), sha256.size())};
  UrlFiles files;
  for (std::size_t i = 0; i < urls.size(); ++i) {
    WEFT_TRY(HttpUrl url, parse_http_url(urls[i]));
    const auto digest = digest_from_hex(sha256[i]);
    if (!digest)
      return Error{Errc::invalid,
                   fmt::format("--sha256: expected 64 hexadecimal digits, got \"{}\"", printable(sha256[i]))};
    WEFT_TRY(const std::string path, path_of(url));
    if (files.contains(path))
      return Error{Errc::invalid, fmt::format("{}: another URL ends with {} too", url.shown, printable(path))};
    files.emplace(path, UrlFile{std::move(url), *digest});
  }
  return std::unique_ptr<PullSource>(std::make_unique<UrlSource>(std::move(files), kind, std::move(reading)));
}

}  // namespace weft
