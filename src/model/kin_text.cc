// Kin as text: trees, a log, JSON.
#include <fmt/core.h>

#include <algorithm>

#include "base/json.h"
#include "base/short_text.h"
#include "base/text.h"
#include "model/kin_facts.h"
#include "weft/model/lineage.h"

namespace weft {
namespace {

constexpr std::size_t kNameWidthMax = 64;  // wider names push the facts of their line aside
constexpr std::size_t kIndentMax = 200;    // columns; deeper branches are named and not followed

// Returns the columns of a text on a terminal: counts code points, which is exact enough for names and branches.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string facts_text(const VersionRow& version) {
  std::string text = fmt::format("{}  {:>9}", short_time(version.time_ns), human_bytes(version.logical_bytes));
  if (version.removed) text += fmt::format("  removed {}", short_time(version.removed_ns));
  return text;
}

// Draws a tree downwards from versions[0]; next_of() returns the entries below a version.
class TreeDrawing {
 public:
  enum class Way { ancestors, descendants };
  TreeDrawing(const KinGraph& kin, Way way) : kin_(kin), index_(kin), way_(way), drawn_(kin.versions.size(), false) {}

  std::string text() {
    draw();
    std::size_t width = 0;
    for (const Line& line : lines_)
      if (std::size_t w = columns(line.name); w <= kNameWidthMax) width = std::max(width, w);
    std::string out;
    for (const Line& line : lines_) {
      out += line.name;
      if (!line.facts.empty()) {
        out.append(width - std::min(width, columns(line.name)) + 2, ' ');
        out += line.facts;
      }
      out += '\n';
    }
    if (std::string more = left_out_text(kin_); !more.empty()) out += fmt::format("… {}\n", more);
    return out;
  }

 private:
  struct Line {
    std::string name;
    std::string facts;
  };
  // An entry below a version: another version of the graph, or only a name.
  struct Next {
    std::optional<std::uint32_t> version;
    std::string name;
    std::string edge;
  };
  // A branch that is still to be drawn; the top of the stack is drawn first.
  struct Branch {
    Next next;
    std::string prefix;  // before the first line of the branch; `rest`: before its other lines
    std::string rest;
  };

  void draw() {
    std::vector<Branch> stack;
    stack.push_back({{0, spec_of(kin_.versions[0]), ""}, "", ""});
    while (!stack.empty()) {
      Branch branch = std::move(stack.back());
      stack.pop_back();
      draw_branch(std::move(branch), stack);
    }
  }

  // Draws a branch straight down until it ends or splits.
  void draw_branch(Branch branch, std::vector<Branch>& stack) {
    for (;;) {
      if (!draw_line(branch)) return;
      std::vector<Next> below = next_of(*branch.next.version);
      if (below.empty()) return;
      branch.prefix = branch.rest;
      if (below.size() > 1) return push_branches(branch, std::move(below), stack);
      branch.next = std::move(below.front());
    }
  }

  // Adds a line. Returns true if the entries below it must be drawn too.
  bool draw_line(const Branch& branch) {
    const Next& next = branch.next;
    Line line{branch.prefix + next.name, ""};
    bool again = next.version && drawn_[*next.version];
    if (again) line.name += "  ↑ above";
    if (next.version && !again) line.facts = facts_text(kin_.versions[*next.version]);
    if (!next.edge.empty()) line.facts += (line.facts.empty() ? "" : "  ") + next.edge;
    if (next.version && !again && !kin_.versions[*next.version].message.empty())
      line.facts += "  " + first_line(kin_.versions[*next.version].message);
    lines_.push_back(std::move(line));
    if (!next.version || again) return false;
    drawn_[*next.version] = true;
    return true;
  }

  void push_branches(const Branch& from, std::vector<Next> below, std::vector<Branch>& stack) {
    if (columns(from.rest) + 4 > kIndentMax) {
      lines_.push_back({fmt::format("{}… {} branches", from.rest, below.size()), ""});
      return;
    }
    for (std::size_t i = below.size(); i-- > 0;) {
      bool last = i + 1 == below.size();
      stack.push_back(
          {std::move(below[i]), from.rest + (last ? "└── " : "├── "), from.rest + (last ? "    " : "│   ")});
    }
  }

  std::vector<Next> next_of(std::uint32_t version) const {
    return way_ == Way::ancestors ? parents_of(version) : children_of(version);
  }

  std::vector<Next> parents_of(std::uint32_t version) const {
    const VersionRow& child = kin_.versions[version];
    std::vector<Next> next;
    for (const ParentRef& ref : child.parents)
      next.push_back({index_.find(ref.id), spec_of(ref.model, ref.number), edge_text(ref, child.tensors)});
    for (const std::string& name : child.elsewhere)
      next.push_back({std::nullopt, printable(name), "declared, not stored here"});
    return next;
  }

  std::vector<Next> children_of(std::uint32_t version) const {
    std::vector<Next> next;
    for (const KinEdge& edge : index_.children(version)) {
      const VersionRow& row = kin_.versions[edge.child];
      next.push_back({edge.child, spec_of(row), edge_text(*edge.ref, row.tensors)});
    }
    return next;
  }

  const KinGraph& kin_;
  const KinIndex index_;
  const Way way_;
  std::vector<bool> drawn_;
  std::vector<Line> lines_;
};

void append_log(std::string& out, const VersionRow& version) {
  out += fmt::format("{}{}  {}  {}", out.empty() ? "" : "\n", spec_of(version), short_time(version.time_ns),
                     human_bytes(version.logical_bytes));
  if (version.removed) out += fmt::format("  (removed {})", short_time(version.removed_ns));
  out += '\n';
  for (const ParentRef& parent : version.parents)
    out +=
        fmt::format("    parent   {}: {}\n", spec_of(parent.model, parent.number), edge_text(parent, version.tensors));
  for (const std::string& name : version.elsewhere)
    out += fmt::format("    parent   {}: declared, not stored here\n", printable(name));
  std::string metrics;
  for (const auto& [key, value] : version.metrics)
    metrics += fmt::format("{}{}={}", metrics.empty() ? "" : ", ", key, value);
  if (!metrics.empty()) out += fmt::format("    metrics  {}\n", printable_lines(metrics));
  if (version.message.empty()) return;
  for (std::string_view line : split(version.message, '\n')) out += fmt::format("    {}\n", printable_lines(line));
}

std::vector<const VersionRow*> newest_first(const KinGraph& kin) {
  std::vector<const VersionRow*> versions;
  for (const VersionRow& version : kin.versions) versions.push_back(&version);
  std::ranges::sort(versions, std::greater(), &VersionRow::id);
  return versions;
}

void write_version(JsonWriter& json, const VersionRow& version) {
  json.begin_object().member("model", std::string_view(version.model_name)).member("version", version.number);
  json.member("removed", version.removed);
  json.member("time", std::string_view(utc_time(version.time_ns))).member("time_ns", version.time_ns);
  json.member("logical_bytes", version.logical_bytes).member("tensors", version.tensors);
  json.member("tensor_bytes", version.tensor_bytes).member("message", std::string_view(version.message));
  json.key("metrics").begin_object();
  for (const auto& [key, value] : version.metrics) json.member(key, std::string_view(value));
  json.end_object().key("parents").begin_array();
  for (const ParentRef& parent : version.parents) json.raw(edge_json(parent));
  json.end_array().key("parents_elsewhere").begin_array();
  for (const std::string& name : version.elsewhere) json.value(std::string_view(name));
  json.end_array().end_object();
}

}  // namespace

std::string draw_ancestors(const KinGraph& kin) {
  return TreeDrawing(kin, TreeDrawing::Way::ancestors).text();
}

std::string draw_descendants(const KinGraph& kin) {
  return TreeDrawing(kin, TreeDrawing::Way::descendants).text();
}

std::string render_log(const KinGraph& kin) {
  std::string out;
  for (const VersionRow* version : newest_first(kin)) append_log(out, *version);
  if (std::string more = left_out_text(kin); !more.empty()) out += fmt::format("\n… {}\n", more);
  return out;
}

std::string kin_json(const KinGraph& kin) {
  JsonWriter json;
  json.begin_array();
  for (const VersionRow* version : newest_first(kin)) write_version(json, *version);
  return json.end_array().take();
}

}  // namespace weft
