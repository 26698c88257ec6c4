#include "model/kin_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "base/text.h"

namespace weft {
namespace {

std::string day(std::uint64_t time_ns) {
  return utc_time(time_ns).substr(0, 10);
}

// Returns a number with four digits ("0.42131" as "0.4213"), and any other text as it is.
std::string short_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = text.find_first_of(".eE") == std::string::npos;
  if (error != std::errc() || end != text.data() + text.size() || whole) return text;
  return fmt::format("{:.4g}", value);
}

}  // namespace

std::string left_out_text(const KinGraph& kin) {
  if (kin.left_out == 0 && !kin.uncounted) return {};
  return fmt::format("and {}{} more", kin.uncounted ? "at least " : "", kin.left_out);
}

CardFacts card_facts(const KinGraph& kin, std::size_t version) {
  const VersionRow& row = kin.versions[version];
  if (row.removed) return {"", "", "", fmt::format("removed {}", day(row.removed_ns))};
  CardFacts facts;
  if (!row.metrics.empty())
    facts.metric = fmt::format("{} {}", row.metrics.front().first, short_number(row.metrics.front().second));
  if (version < kin.marks.size()) {
    const KinMarks& marks = kin.marks[version];
    for (const std::string& tag : marks.tags) facts.tags += (facts.tags.empty() ? "" : ", ") + tag;
    if (marks.new_bytes) facts.bytes = "+" + human_bytes(*marks.new_bytes);
  }
  if (facts_line(facts).empty()) facts.day = day(row.time_ns);
  return facts;
}

std::string facts_line(const CardFacts& facts) {
  std::string line;
  for (const std::string* part : {&facts.tags, &facts.metric, &facts.bytes, &facts.day})
    if (!part->empty()) line += (line.empty() ? "" : " · ") + *part;
  return line;
}

// Returns the share of a child's tensor bytes that the parent has, 0 to 1.
double part_of(const ParentRef& edge, const VersionRow& child) {
  if (child.tensor_bytes == 0) return 0;
  return std::min(1.0, static_cast<double>(edge.same_bytes) / static_cast<double>(child.tensor_bytes));
}

// Rounds to whole percent. A part below the whole is never "100 %", and a part above zero is never "0 %".
std::string percent(double part) {
  double rounded = std::round(part * 100);
  if (part < 1) rounded = std::min(rounded, 99.0);
  return rounded < 1 && part > 0 ? "<1 %" : fmt::format("{:.0f} %", rounded);
}

std::string title_of(const KinGraph& kin) {
  return "Lineage of " + spec_of(kin.versions[0]);
}

std::string count_line(const KinGraph& kin) {
  const std::size_t shown = kin.versions.size();
  if (kin.left_out == 0 && !kin.uncounted) return fmt::format("{} version{}", shown, shown == 1 ? "" : "s");
  return fmt::format("the nearest {} of {}{} versions", shown, kin.uncounted ? "more than " : "", shown + kin.left_out);
}

}  // namespace weft
