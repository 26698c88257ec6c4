#include "model/kin_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace weft {
namespace {

std::string day(std::uint64_t time_ns) {
  return utc_time(time_ns).substr(0, 10);
}

}  // namespace

std::string left_out_text(const KinGraph& kin) {
  if (kin.left_out == 0 && !kin.uncounted) return {};
  return fmt::format("and {}{} more", kin.uncounted ? "at least " : "", kin.left_out);
}

std::string facts_line(const VersionRow& version) {
  if (version.removed) return fmt::format("removed {}", day(version.removed_ns));
  return fmt::format("{} · {}", day(version.time_ns), human_bytes(version.logical_bytes));
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
