// Kin as a picture.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "model/graph_layout.h"
#include "model/kin_facts.h"

namespace weft {
namespace {

// Pixels.
constexpr double kCardWidth = 206;
constexpr double kCardHeight = 54;
constexpr double kGapAcross = 26;  // between cards of a layer
constexpr double kGapDown = 56;    // between layers, for edges and their labels
constexpr double kGapRight = 88;
constexpr double kMargin = 28;
constexpr double kHead = 62;  // title
constexpr double kFoot = 46;  // legend
constexpr double kWidthMin = 640;
constexpr std::size_t kNameShown = 26;

// Colours of model series, in the order of their appearance; then again from
// the front.
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

// The end of a name tells more than its beginning: "…minilm-finetuned@12".
std::string short_name(const KinVersion& version) {
  std::string name = name_of(version);
  return name.size() <= kNameShown ? name : "…" + name.substr(name.size() - kNameShown + 1);
}

struct Spot {
  double x = 0, y = 0;
};

class SvgDrawing {
 public:
  explicit SvgDrawing(const KinGraph& kin) : kin_(kin), edges_(edges_of(kin)) {
    GraphEdges graph;
    graph.nodes = kin.versions.size();
    for (const KinEdge& edge : edges_) graph.edges.emplace_back(edge.parent, edge.child);
    layout_ = layered_layout(graph);
    choose_direction();
  }

  std::string text() {
    open();
    for (std::size_t i = 0; i < edges_.size(); ++i) draw_edge(edges_[i], layout_.edges[i]);
    for (std::size_t i = 0; i < edges_.size(); ++i) draw_label(edges_[i], layout_.edges[i]);
    for (std::uint32_t i = 0; i < kin_.versions.size(); ++i) draw_card(i);
    draw_legend();
    return std::move(out_) + "</svg>\n";
  }

 private:
  static double along_step(bool down) { return down ? kCardHeight + kGapDown : kCardWidth + kGapRight; }
  static double across_step(bool down) { return (down ? kCardWidth : kCardHeight) + kGapAcross; }

  // Downwards or to the right, whichever gives a picture nearer to a page's
  // shape.
  void choose_direction() {
    auto size = [this](bool down) {
      double along = static_cast<double>(layout_.layers - 1) * along_step(down) + (down ? kCardHeight : kCardWidth);
      double across = layout_.breadth * across_step(down) + (down ? kCardWidth : kCardHeight);
      return down ? Spot{across, along} : Spot{along, across};
    };
    auto oddness = [](Spot s) { return std::abs(std::log(s.x / s.y / 1.4)); };
    down_ = oddness(size(true)) <= oddness(size(false));
    Spot drawn = size(down_);
    width_ = std::max(kWidthMin, drawn.x + 2 * kMargin);
    height_ = kHead + drawn.y + kFoot + kMargin;
    left_ = (width_ - drawn.x) / 2;
  }

  // A card's middle.
  Spot spot(const LayoutPoint& point) const {
    double along = point.layer * along_step(down_);
    double across = point.across * across_step(down_);
    Spot at = down_ ? Spot{across, along} : Spot{along, across};
    return {left_ + kCardWidth / 2 + at.x, kHead + kCardHeight / 2 + at.y};
  }

  std::string_view colour_of(const std::string& model) {
    auto found = std::ranges::find(series_, model);
    auto place = static_cast<std::size_t>(found - series_.begin());
    if (found == series_.end()) series_.push_back(model);
    return kColours[place % std::size(kColours)];
  }

  void open() {
    out_ += fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" "
        "font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\">\n",
        width_, height_);
    out_ += fmt::format("<title>{}</title>\n", escaped(title_of(kin_)));
    out_ +=
        "<defs><marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" "
        "refY=\"5\" markerWidth=\"9\" markerHeight=\"9\" "
        "markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0.8 "
        "L10 5 L0 9.2 z\" "
        "fill=\"#64748b\"/></marker></defs>\n";
    out_ += fmt::format("<rect width=\"{:.0f}\" height=\"{:.0f}\" fill=\"#ffffff\"/>\n", width_, height_);
    out_ += fmt::format(
        "<text x=\"{0:.0f}\" y=\"28\" font-size=\"16\" "
        "font-weight=\"bold\" fill=\"#0f172a\">{1}</text>\n"
        "<text x=\"{0:.0f}\" y=\"46\" font-size=\"11.5\" "
        "fill=\"#64748b\">{2}</text>\n",
        kMargin, escaped(title_of(kin_)), escaped(count_line(kin_)));
  }

  // From the side of the one card to the side of the other, smoothly through
  // the waypoints.
  std::string path_of(const std::vector<LayoutPoint>& points) const {
    const double half = (down_ ? kCardHeight : kCardWidth) / 2;
    auto shifted = [&](Spot at, double by) { return down_ ? Spot{at.x, at.y + by} : Spot{at.x + by, at.y}; };
    Spot from = shifted(spot(points.front()), half);
    std::string path = fmt::format("M{:.1f} {:.1f}", from.x, from.y);
    for (std::size_t i = 1; i < points.size(); ++i) {
      const bool last = i + 1 == points.size();
      Spot to = shifted(spot(points[i]), last ? -half - 1 : -half);
      append_curve(path, from, to);
      from = to;
      if (last) continue;
      from = shifted(to, 2 * half);  // straight past the cards of the layer
      path += fmt::format(" L{:.1f} {:.1f}", from.x, from.y);
    }
    return path;
  }

  void append_curve(std::string& path, Spot from, Spot to) const {
    Spot a = down_ ? Spot{from.x, (from.y + to.y) / 2} : Spot{(from.x + to.x) / 2, from.y};
    Spot b = down_ ? Spot{to.x, a.y} : Spot{a.x, to.y};
    path += fmt::format(" C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", a.x, a.y, b.x, b.y, to.x, to.y);
  }

  void draw_edge(const KinEdge& edge, const std::vector<LayoutPoint>& points) {
    const double part = part_of(*edge.ref, kin_.versions[edge.child]);
    std::string_view dashes = edge.ref->verified() ? "" : " stroke-dasharray=\"5 4\"";
    out_ += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\"{} "
        "marker-end=\"url(#tip)\">"
        "<title>{} → {}: {}</title></path>\n",
        path_of(points), edge.ref->verified() ? "#64748b" : "#94a3b8", 1.2 + 1.6 * part, dashes,
        escaped(name_of(kin_.versions[edge.parent])), escaped(name_of(kin_.versions[edge.child])),
        escaped(edge_text(*edge.ref, kin_.versions[edge.child].tensors)));
  }

  // On the last curve: near the child, but where several edges come together at
  // it.
  void draw_label(const KinEdge& edge, const std::vector<LayoutPoint>& points) {
    if (!edge.ref->verified()) return;
    std::string label = percent(part_of(*edge.ref, kin_.versions[edge.child]));
    const double t = kin_.versions[edge.child].facts.parents.size() > 1 ? 0.5 : 0.78;
    const double along_part = 1.5 * t * (1 - t) * (1 - t) + 1.5 * t * t * (1 - t) + t * t * t;
    const double across_part = 3 * t * t * (1 - t) + t * t * t;
    Spot to = spot(points.back());
    Spot from = spot(points[points.size() - 2]);
    const double gap = down_ ? kGapDown : kGapRight;
    const double back = (down_ ? kCardHeight : kCardWidth) / 2 + gap * (1 - along_part);
    Spot at = down_ ? Spot{from.x + (to.x - from.x) * across_part, to.y - back}
                    : Spot{to.x - back, from.y + (to.y - from.y) * across_part};
    const double wide = 8 + 6.0 * static_cast<double>(label.size());
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"15\" rx=\"7.5\" fill=\"#ffffff\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"10\" "
        "text-anchor=\"middle\" fill=\"#475569\">{}</text>\n",
        at.x - wide / 2, at.y - 7.5, wide, at.x, at.y + 3.6, escaped(label));
  }

  void draw_card(std::uint32_t index) {
    const KinVersion& version = kin_.versions[index];
    const bool self = index == 0;
    const bool removed = version.removed_ns != 0;
    std::string_view colour = removed ? "#94a3b8" : colour_of(version.facts.model);
    Spot middle = spot(layout_.nodes[index]);
    const double x = middle.x - kCardWidth / 2;
    const double y = middle.y - kCardHeight / 2;
    out_ += fmt::format("<g><title>{}</title>\n", escaped(tooltip(version)));
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" "
        "height=\"{:.0f}\" rx=\"9\" fill=\"{}\" stroke=\"{}\" "
        "stroke-width=\"{}\"{}/>\n",
        x, y, kCardWidth, kCardHeight,
        removed ? "#f8fafc"
        : self  ? "#eff6ff"
                : "#ffffff",
        self || removed ? colour : "#cbd5e1", self ? "2.4" : "1.2", removed ? " stroke-dasharray=\"5 4\"" : "");
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"4\" "
        "height=\"{:.0f}\" rx=\"2\" fill=\"{}\"/>\n",
        x + 9, y + 11, kCardHeight - 22, colour);
    out_ += fmt::format(
        "<text x=\"{0:.1f}\" y=\"{1:.1f}\" font-size=\"12\" "
        "font-weight=\"bold\" fill=\"{2}\">{3}</text>"
        "<text x=\"{0:.1f}\" y=\"{4:.1f}\" font-size=\"10.5\" "
        "fill=\"#64748b\">{5}</text></g>\n",
        x + 22, y + 23, removed ? "#64748b" : "#0f172a", escaped(short_name(version)), y + 40,
        escaped(facts_line(version)));
  }

  static std::string tooltip(const KinVersion& version) {
    std::string text = fmt::format("{}, {}", name_of(version), utc_time(version.facts.time_ns));
    for (const auto& [key, value] : version.facts.metrics) text += fmt::format(", {}={}", key, value);
    for (const std::string& name : version.facts.elsewhere) text += fmt::format(", from {} (not stored here)", name);
    if (!version.facts.message.empty()) text += ": " + version.facts.message;
    return text;
  }

  void draw_legend() {
    const double y = height_ - 22;
    double x = kMargin;
    auto words = [&](std::string_view text, double wide) {
      out_ += fmt::format(
          "<text x=\"{:.0f}\" y=\"{:.0f}\" font-size=\"10.5\" "
          "fill=\"#64748b\">{}</text>\n",
          x, y + 3.6, text);
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
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"22\" height=\"13\" rx=\"4\" "
        "fill=\"#f8fafc\" stroke=\"#94a3b8\" "
        "stroke-dasharray=\"5 4\"/>\n",
        x, y - 6.5);
    x += 30;
    words("removed", 60);
  }

  const KinGraph& kin_;
  const std::vector<KinEdge> edges_;
  GraphLayout layout_;
  bool down_ = true;
  double width_ = 0, height_ = 0, left_ = 0;
  std::vector<std::string> series_;
  std::string out_;
};

}  // namespace

std::string kin_svg(const KinGraph& kin) {
  return SvgDrawing(kin).text();
}

}  // namespace weft
