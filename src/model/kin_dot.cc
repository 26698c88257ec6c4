// Kin as a DOT graph, for other programs.
#include <fmt/core.h>

#include "base/text.h"
#include "model/kin_facts.h"

namespace weft {
namespace {

std::string dot_quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : printable(text, 4096)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string kin_dot(const KinGraph& kin) {
  std::string out = "digraph lineage {\n";
  out += fmt::format("  label={};\n", dot_quoted(title_of(kin) + ": " + count_line(kin)));
  out += "  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n";
  for (std::size_t i = 0; i < kin.versions.size(); ++i) {
    const VersionRow& version = kin.versions[i];
    std::string_view style = version.removed ? ", style=\"rounded,dashed\"" : i == 0 ? ", penwidth=2" : "";
    std::string name = dot_quoted(spec_of(version));
    std::string label = name.substr(0, name.size() - 1) + "\\n" + dot_quoted(facts_line(card_facts(kin, i))).substr(1);
    out += fmt::format("  {} [label={}{}];\n", name, label, style);
  }
  const KinIndex index(kin);
  for (const KinEdge& edge : index.edges()) {
    std::string how = edge.ref->verified()
                          ? fmt::format("label=\"{}\"", percent(part_of(*edge.ref, kin.versions[edge.child])))
                          : "style=dashed";
    out += fmt::format("  {} -> {} [{}];\n", dot_quoted(spec_of(kin.versions[edge.parent])),
                       dot_quoted(spec_of(kin.versions[edge.child])), how);
  }
  return out + "}\n";
}

}  // namespace weft
