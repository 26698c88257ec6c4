// Kin as an SVG picture.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "model/kin_facts.h"
#include "model/kin_geometry.h"
#include "weft/model/lineage.h"

namespace weft {
namespace {

// Pixels.
constexpr double kMargin = 28;
constexpr double kHead = 62;  // title
constexpr double kFoot = 74;  // legend
constexpr double kWidthMin = 640;
constexpr double kTextLeft = 22;  // in a card
constexpr double kTextRight = 10;
constexpr double kNameSize = 12;
constexpr double kFactsSize = 10.5;

// Colours of model series, in the order of their appearance; then from the front again.
constexpr std::string_view kColours[] = {"#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626",
                                         "#0891b2", "#ca8a04", "#db2777", "#4f46e5", "#65a30d"};

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : printable(text, 4096)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// Returns the width of a letter as a fraction of the font size, for DejaVu and Verdana, which are wide fonts: of a bold
// one, or of a plain one, which is narrower.
double bold_width(std::string_view letter) {
  const char c = letter.front();
  constexpr std::string_view kNarrow = "fijlrt.,:;/|()[]-' ";
  constexpr std::string_view kWide = "mwMW@%+";
  if (kNarrow.find(c) != std::string_view::npos) return 0.48;
  if (kWide.find(c) != std::string_view::npos) return 1.06;
  return c >= 'A' && c <= 'Z' ? 0.82 : 0.72;
}

using LetterWidth = double (*)(std::string_view letter);
double plain_width(std::string_view letter) {
  return 0.9 * bold_width(letter);
}

std::vector<std::string_view> letters_of(std::string_view text) {
  std::vector<std::string_view> letters;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin + 1;
    while (end < text.size() && (text[end] & 0xc0) == 0x80) ++end;
    letters.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return letters;
}

double width_of(std::string_view text, LetterWidth width) {
  double sum = 0;
  for (const std::string_view letter : letters_of(text)) sum += width(letter);
  return sum;
}

// Returns a text that fits `room`, cut in its middle: names differ at their ends. "organ…finetuned@12"
std::string cut(std::string_view text, double room, LetterWidth width) {
  if (width_of(text, width) <= room) return std::string(text);
  const std::vector<std::string_view> letters = letters_of(text);
  std::size_t head = 0;
  std::size_t tail = letters.size();
  double left = room - width("…");
  for (bool from_end = true; head < tail; from_end = !from_end) {
    left -= width(from_end ? letters[tail - 1] : letters[head]);
    if (left < 0) break;
    from_end ? --tail : ++head;
  }
  std::string out;
  for (std::size_t i = 0; i < head; ++i) out += letters[i];
  out += "…";
  for (std::size_t i = tail; i < letters.size(); ++i) out += letters[i];
  return out;
}

constexpr double kTextWidth = KinGeometry::kCardWidth - kTextLeft - kTextRight;

// Returns the lines of facts below a name: the tags, if there are any, and the other facts.
std::vector<std::string> fact_lines(CardFacts facts) {
  std::vector<std::string> lines;
  if (!facts.tags.empty()) lines.push_back(std::exchange(facts.tags, ""));
  if (std::string others = facts_line(facts); !others.empty()) lines.push_back(std::move(others));
  for (std::string& line : lines) line = cut(line, kTextWidth / kFactsSize, plain_width);
  return lines;
}

GraphEdges graph_of(const KinGraph& kin, const std::vector<KinEdge>& edges) {
  GraphEdges graph;
  graph.nodes = kin.versions.size();
  for (const KinEdge& edge : edges) graph.edges.emplace_back(edge.parent, edge.child);
  return graph;
}

class SvgDrawing {
 public:
  explicit SvgDrawing(const KinGraph& kin)
      : kin_(kin),
        edges_(KinIndex(kin).edges()),
        geometry_(graph_of(kin, edges_), {kMargin, kHead}, kWidthMin),
        height_(geometry_.bottom() + kFoot) {}

  std::string text() {
    open();
    for (std::size_t i = 0; i < edges_.size(); ++i) draw_edge(i);
    for (std::size_t i = 0; i < edges_.size(); ++i) draw_label(i);
    for (std::uint32_t i = 0; i < kin_.versions.size(); ++i) draw_card(i);
    draw_legend();
    return std::move(out_) + "</svg>\n";
  }

 private:
  std::string_view colour_of(const std::string& model) {
    auto found = std::ranges::find(series_, model);
    auto place = static_cast<std::size_t>(found - series_.begin());
    if (found == series_.end()) series_.push_back(model);
    return kColours[place % std::size(kColours)];
  }

  void open() {
    out_ += fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\">\n",
        geometry_.width(), height_);
    out_ += fmt::format("<title>{}</title>\n", escaped(title_of(kin_)));
    out_ +=
        "<defs><marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"9\" markerHeight=\"9\" "
        "markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0.8 L10 5 L0 9.2 z\" "
        "fill=\"#64748b\"/></marker></defs>\n";
    out_ += fmt::format("<rect width=\"{:.0f}\" height=\"{:.0f}\" fill=\"#ffffff\"/>\n", geometry_.width(), height_);
    out_ += fmt::format(
        "<text x=\"{0:.0f}\" y=\"28\" font-size=\"16\" font-weight=\"bold\" fill=\"#0f172a\">{1}</text>\n"
        "<text x=\"{0:.0f}\" y=\"46\" font-size=\"11.5\" fill=\"#64748b\">{2}</text>\n",
        kMargin, escaped(title_of(kin_)), escaped(count_line(kin_)));
  }

  void draw_edge(std::size_t index) {
    const KinEdge& edge = edges_[index];
    const double part = part_of(*edge.ref, kin_.versions[edge.child]);
    std::string_view dashes = edge.ref->verified() ? "" : " stroke-dasharray=\"5 4\"";
    out_ += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\"{} marker-end=\"url(#tip)\">"
        "<title>{} → {}: {}</title></path>\n",
        geometry_.path(index), edge.ref->verified() ? "#64748b" : "#94a3b8", 1.2 + 1.6 * part, dashes,
        escaped(spec_of(kin_.versions[edge.parent])), escaped(spec_of(kin_.versions[edge.child])),
        escaped(edge_text(*edge.ref, kin_.versions[edge.child].tensors)));
  }

  // Returns a place for an edge's label: near the child, or halfway if several edges meet there. If another label is in
  // the way, returns another place.
  Spot free_label(std::size_t index, Spot size) {
    constexpr double kAlone[] = {0, 0.2, 0.35, 0.5, 0.65};
    constexpr double kMerged[] = {0.35, 0.2, 0.5, 0.1, 0.65};
    const bool alone = kin_.versions[edges_[index].child].parents.size() == 1;
    auto overlaps = [&](Spot a) {
      return std::ranges::any_of(
          labels_, [&](Spot b) { return std::abs(a.x - b.x) < size.x && std::abs(a.y - b.y) < size.y - 2; });
    };
    Spot at = geometry_.label(index, size, alone ? kAlone[0] : kMerged[0]);
    for (double back : alone ? kAlone : kMerged) {
      const Spot other = geometry_.label(index, size, back);
      if (overlaps(other)) continue;
      at = other;
      break;
    }
    labels_.push_back(at);
    return at;
  }

  void draw_label(std::size_t index) {
    const KinEdge& edge = edges_[index];
    if (!edge.ref->verified()) return;
    constexpr double kHigh = 15;
    const std::string label = percent(part_of(*edge.ref, kin_.versions[edge.child]));
    const double wide = 8 + 6.0 * static_cast<double>(label.size());
    const Spot at = free_label(index, {wide, kHigh});
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" rx=\"7.5\" fill=\"#ffffff\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"10\" text-anchor=\"middle\" fill=\"#475569\">{}</text>\n",
        at.x - wide / 2, at.y - kHigh / 2, wide, kHigh, at.x, at.y + 3.6, escaped(label));
  }

  void draw_card(std::uint32_t index) {
    const VersionRow& version = kin_.versions[index];
    const bool self = index == 0;
    const bool removed = version.removed;
    std::string_view colour = removed ? "#94a3b8" : colour_of(version.model_name);
    const auto [x, y] = geometry_.card(index);
    const CardFacts facts = card_facts(kin_, index);
    out_ += fmt::format("<g><title>{}</title>\n", escaped(tooltip(version, facts)));
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"9\" fill=\"{}\" stroke=\"{}\" "
        "stroke-width=\"{}\"{}/>\n",
        x, y, KinGeometry::kCardWidth, KinGeometry::kCardHeight,
        removed ? "#f8fafc"
        : self  ? "#eff6ff"
                : "#ffffff",
        self || removed ? colour : "#cbd5e1", self ? "2.4" : "1.2", removed ? " stroke-dasharray=\"5 4\"" : "");
    out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"4\" height=\"{:.0f}\" rx=\"2\" fill=\"{}\"/>\n", x + 9,
                        y + 11, KinGeometry::kCardHeight - 22, colour);
    const std::vector<std::string> lines = fact_lines(facts);
    double base = y + (lines.size() > 1 ? 19 : 23);
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" font-weight=\"bold\" fill=\"{}\">{}</text>",
                        x + kTextLeft, base, kNameSize, removed ? "#64748b" : "#0f172a",
                        escaped(cut(spec_of(version), kTextWidth / kNameSize, bold_width)));
    for (const std::string& line : lines) {
      base += lines.size() > 1 ? 14 : 17;
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" fill=\"#64748b\">{}</text>", x + kTextLeft,
                          base, kFactsSize, escaped(line));
    }
    out_ += "</g>\n";
  }

  static std::string tooltip(const VersionRow& version, const CardFacts& facts) {
    std::string text =
        fmt::format("{}, {}, {}", spec_of(version), utc_time(version.time_ns), human_bytes(version.logical_bytes));
    for (const std::string* part : {&facts.tags, &facts.bytes})
      if (!part->empty()) text += ", " + *part;
    for (const auto& [key, value] : version.metrics) text += fmt::format(", {}={}", key, value);
    for (const std::string& name : version.elsewhere) text += fmt::format(", from {} (not stored here)", name);
    if (!version.message.empty()) text += ": " + version.message;
    return text;
  }

  void draw_legend() {
    const double y = height_ - 22;
    double x = kMargin;
    auto words = [&](std::string_view text, double wide) {
      out_ += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" font-size=\"10.5\" fill=\"#64748b\">{}</text>\n", x, y + 3.6,
                          text);
      x += wide;
    };
    auto line = [&](std::string_view style) {
      out_ += fmt::format("<path d=\"M{:.0f} {:.0f} h26\" {} marker-end=\"url(#tip)\"/>\n", x, y, style);
      x += 34;
    };
    line("stroke=\"#64748b\" stroke-width=\"2.4\"");
    words("verified: part of the child's tensor bytes", 258);
    line("stroke=\"#94a3b8\" stroke-width=\"1.2\" stroke-dasharray=\"5 4\"");
    words("declared, nothing shared", 164);
    out_ += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"22\" height=\"13\" rx=\"4\" fill=\"#f8fafc\" stroke=\"#94a3b8\" "
        "stroke-dasharray=\"5 4\"/>\n",
        x, y - 6.5);
    x += 30;
    words("removed", 60);
  }

  const KinGraph& kin_;
  const std::vector<KinEdge> edges_;
  const KinGeometry geometry_;
  const double height_;
  std::vector<std::string> series_;
  std::vector<Spot> labels_;  // middles of the drawn labels
  std::string out_;
};

}  // namespace

std::string kin_svg(const KinGraph& kin) {
  return SvgDrawing(kin).text();
}

}  // namespace weft
