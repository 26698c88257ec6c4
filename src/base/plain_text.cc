#include "base/plain_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

Status check_text(std::string_view what, std::string_view text, std::size_t bytes_max, TextLines lines) {
  if (text.size() > bytes_max)
    return Error{Errc::invalid, fmt::format("{}: expected at most {} bytes, got {}", what, bytes_max, text.size())};
  if (!plain_text(text, lines))
    return Error{Errc::invalid,
                 fmt::format("{}: expected UTF-8 without control characters, got \"{}\"", what, printable(text))};
  return {};
}

void set_metric(Metrics& metrics, const std::pair<std::string, std::string>& metric) {
  const auto known = std::ranges::find(metrics, metric.first, &std::pair<std::string, std::string>::first);
  if (known == metrics.end())
    metrics.push_back(metric);
  else
    known->second = metric.second;
}

}  // namespace

bool plain_text(std::string_view text, TextLines lines) {
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    const bool allowed = lines == TextLines::many && (c.value == '\n' || c.value == '\t');
    if (c.length == 0 || (is_control(c.value) && !allowed)) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

Status check_message(std::string_view message) {
  return check_text("message", message, limits::kMessageMax, TextLines::many);
}

Status check_metrics(const Metrics& metrics) {
  if (metrics.size() > limits::kMetricsMax)
    return Error{Errc::invalid,
                 fmt::format("expected at most {} metrics, got {}", limits::kMetricsMax, metrics.size())};
  std::set<std::string_view> seen;
  for (const auto& [key, value] : metrics) {
    WEFT_CHECK(check_text("name of a metric", key, limits::kMetricTextMax, TextLines::one));
    WEFT_CHECK(check_text(fmt::format("metric {}", key), value, limits::kMetricTextMax, TextLines::one));
    if (key.empty()) return Error{Errc::invalid, "metric: expected KEY=VALUE, got no key"};
    if (!seen.insert(key).second) return Error{Errc::invalid, fmt::format("metric {}: given twice", key)};
  }
  return {};
}

bool can_be_author(const Author& by) {
  const auto fits = [](const std::string& text) {
    return text.size() <= limits::kAuthorTextMax && plain_text(text, TextLines::one);
  };
  return fits(by.user) && fits(by.node);
}

Status check_tag_owner(std::string_view model, std::string_view tag, const std::string& owner, const Author& by) {
  if (owner.empty() || !by.bound || by.user == owner) return {};
  return Error{Errc::permission,
               fmt::format("{}@{}: user {} may not change this tag: it is protected; expected {}, root "
                           "or weftd's user",
                           printable(model), printable(tag), printable(by.user), printable(owner))};
}

Status check_source(const Provenance& source) {
  constexpr TextLines kOne = TextLines::one;
  WEFT_CHECK(check_text("endpoint of the source", source.endpoint, limits::kSourceTextMax, kOne));
  WEFT_CHECK(check_text("repository of the source", source.repository, limits::kSourceTextMax, kOne));
  WEFT_CHECK(check_text("revision of the source", source.revision, limits::kSourceTextMax, kOne));
  if (!source.commit.empty() && !is_commit_hash(source.commit))
    return Error{Errc::invalid, fmt::format("commit of the source: expected {} hexadecimal digits, got \"{}\"",
                                            kCommitDigits, printable(source.commit))};
  if (!source.access.empty() && source.access != "private" && source.access != "gated")
    return Error{Errc::invalid,
                 fmt::format("access of the source: expected private or gated, got \"{}\"", printable(source.access))};
  if (source.urls.size() > limits::kSourceUrlsMax)
    return Error{Errc::invalid, fmt::format("URLs of the source: expected at most {}, got {}", limits::kSourceUrlsMax,
                                            source.urls.size())};
  for (const std::string& url : source.urls)
    WEFT_CHECK(check_text("URL of the source", url, limits::kSourceTextMax, kOne));
  if (source.listed_ns <= limits::kTimeNsMax && source.left_out <= limits::kFilesPerVersionMax) return {};
  return Error{Errc::invalid, "source: expected a time and a number of files that can be"};
}

void add_url(Provenance& source, std::string url) {
  const bool is_listed = source.urls.size() < limits::kSourceUrlsMax && url.size() <= limits::kSourceTextMax &&
                         plain_text(url, TextLines::one);
  if (is_listed)
    source.urls.push_back(std::move(url));
  else
    ++source.left_out;
}

Status check_description(std::string_view message, const Metrics& metrics, std::uint64_t described_ns) {
  WEFT_CHECK(check_message(message));
  WEFT_CHECK(check_metrics(metrics));
  if (described_ns <= limits::kTimeNsMax) return {};
  return Error{Errc::invalid, fmt::format("time of a message and metrics: expected at most {} ns, got {}",
                                          limits::kTimeNsMax, described_ns)};
}

Result<std::optional<VersionRow>> described(const VersionRow& version, const DescriptionChange& change,
                                            std::uint64_t time_ns) {
  WEFT_CHECK(check_metrics(change.metrics));
  VersionRow now = version;
  if (change.message) now.message = *change.message;
  for (const auto& metric : change.metrics) set_metric(now.metrics, metric);
  if (now.message == version.message && now.metrics == version.metrics) return std::optional<VersionRow>();
  now.described_ns = std::max(time_ns, version.described_ns + 1);
  WEFT_CHECK(check_description(now.message, now.metrics, now.described_ns));
  return std::optional(std::move(now));
}

void copy_description(const VersionRow& from, VersionRow& to) {
  to.message = from.message;
  to.metrics = from.metrics;
  to.described_ns = from.described_ns;
}

}  // namespace weft
