#include "model/kin_geometry.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft {
namespace {

constexpr double kPageShape = 1.4;     // width to height
constexpr double kStrip = 2.5;         // a picture that is so many times wider or higher than a page is a strip
constexpr double kGapAcrossDown = 26;  // between cards of a layer
constexpr double kGapAcrossRight = 18;
constexpr double kGapRows = 40;
constexpr std::size_t kSiblingsMax = 6;  // in a row
constexpr double kBundledGap = 0.12;     // of a card's place: between edges that pass a row of siblings
constexpr double kTip = 1;               // an arrow ends so far before its card

// Returns the space between two layers, for edges and labels: more if the edges go farther to the side.
double gap(bool down, double aside) {
  return down ? std::clamp(aside * 0.14, 56.0, 120.0) : std::clamp(aside * 0.3, 88.0, 240.0);
}

double across_step(bool down) {
  return down ? KinGeometry::kCardWidth + kGapAcrossDown : KinGeometry::kCardHeight + kGapAcrossRight;
}
double card_along(bool down) {
  return down ? KinGeometry::kCardHeight : KinGeometry::kCardWidth;
}

// Edges to further rows of siblings run close together between the cards, so that a row is hardly wider for them.
LayoutLimits limits_for(const GraphEdges& graph) {
  std::vector<std::size_t> after(graph.nodes, 0);
  for (const auto& edge : graph.edges) ++after[edge.first];
  const bool many = std::ranges::any_of(after, [](std::size_t count) { return count > kSiblingsMax; });
  return many ? LayoutLimits{kBundledGap, kSiblingsMax} : LayoutLimits{};
}

double oddness(Spot size) {
  return std::abs(std::log(size.x / size.y / kPageShape));
}

// Returns how far a curve has come at `t` along its main direction; across_at() returns how far across. Both go from 0
// to 1. The curve starts and ends along its main direction.
double along_at(double t) {
  return 1.5 * t * (1 - t) * (1 - t) + 1.5 * t * t * (1 - t) + t * t * t;
}
double across_at(double t) {
  return 3 * t * t * (1 - t) + t * t * t;
}
double when_along(double part) {
  double low = 0;
  double high = 1;
  for (int step = 0; step < 20; ++step) {
    const double middle = (low + high) / 2;
    (along_at(middle) < part ? low : high) = middle;
  }
  return low;
}

}  // namespace

KinGeometry::KinGeometry(const GraphEdges& graph, Spot top_left, double width_min)
    : layout_(layered_layout(graph, limits_for(graph))), top_left_(top_left), crowd_(layout_.layers) {
  for (const LayoutPoint& node : layout_.nodes) ++crowd_[layer_of(node)];
  for (const auto& points : layout_.edges)
    for (std::size_t i = 1; i + 1 < points.size(); ++i) ++crowd_[layer_of(points[i])];
  const Spot down = lay_out(Way::down);
  const Spot right = lay_out(Way::right);
  const Spot rows = lay_out(Way::rows);
  Way best = oddness(down) <= oddness(right) ? Way::down : Way::right;
  const double odd = std::min(oddness(down), oddness(right));
  if (odd > std::log(kStrip) && oddness(rows) < odd) best = Way::rows;
  size_ = lay_out(best);
  const double margin = top_left_.x;
  top_left_.x = std::max(margin, (width_min - size_.x) / 2);
  size_.x += 2 * top_left_.x;
}

Spot KinGeometry::lay_out(Way way) {
  way_ = way;
  space_layers();
  row_.assign(layout_.layers, 0);
  shift_.assign(1, {});
  if (way == Way::rows) break_rows();
  const auto [least, most] = extent();
  for (Spot& shift : shift_) shift = {shift.x + top_left_.x - least.x, shift.y + top_left_.y - least.y};
  return {most.x - least.x, most.y - least.y};
}

// Returns the upper left and the lower right corner of all cards and edges.
std::pair<Spot, Spot> KinGeometry::extent() const {
  constexpr double kFar = std::numeric_limits<double>::max();
  Spot least{kFar, kFar};
  Spot most{-kFar, -kFar};
  auto add = [&](Spot at, double wide, double high) {
    least = {std::min(least.x, at.x), std::min(least.y, at.y)};
    most = {std::max(most.x, at.x + wide), std::max(most.y, at.y + high)};
  };
  for (const LayoutPoint& node : layout_.nodes) add(corner(node), kCardWidth, kCardHeight);
  for (const auto& points : layout_.edges)
    for (std::size_t i = 1; i + 1 < points.size(); ++i) {
      const Spot at = corner(points[i]);
      add({at.x + kCardWidth / 2, at.y + kCardHeight / 2}, 0, 0);
    }
  return {least, most};
}

void KinGeometry::space_layers() {
  const bool down = way_ == Way::down;
  std::vector<double> aside(layout_.layers, 0);
  for (const auto& points : layout_.edges)
    for (std::size_t i = 1; i < points.size(); ++i) {
      double& most = aside[layer_of(points[i])];
      most = std::max(most, std::abs(points[i].across - points[i - 1].across) * across_step(down));
    }
  along_.assign(layout_.layers, 0);
  for (std::size_t layer = 1; layer < layout_.layers; ++layer)
    along_[layer] = along_[layer - 1] + card_along(down) + gap(down, aside[layer]);
}

// True if a row may end after this layer. The next row starts straight below the row's last card, so both layers must
// have one card each.
bool KinGeometry::may_break_after(std::size_t layer) const {
  return layer + 1 < layout_.layers && crowd_[layer] == 1 && crowd_[layer + 1] == 1;
}

double KinGeometry::row_width(std::size_t begin, std::size_t end) const {
  return along_[end] - along_[begin] + kCardWidth;
}

void KinGeometry::break_rows() {
  const double high = layout_.breadth * across_step(false) + kCardHeight + kGapRows;
  const double wanted = std::sqrt(row_width(0, layout_.layers - 1) * high * kPageShape);
  std::size_t begin = 0;
  for (std::size_t layer = 1; layer < layout_.layers; ++layer) {
    const bool breaks = may_break_after(layer - 1) && row_width(begin, layer) > wanted;
    row_[layer] = row_[layer - 1] + (breaks ? 1 : 0);
    if (breaks) begin = layer;
  }
  place_rows();
}

// Places each row below the last card of the previous row, in the opposite direction.
void KinGeometry::place_rows() {
  const std::size_t rows = row_.back() + 1;
  std::vector<double> least(rows, std::numeric_limits<double>::max());
  std::vector<double> most(rows, 0);
  auto measure = [&](const LayoutPoint& point) {
    const std::size_t row = row_[layer_of(point)];
    least[row] = std::min(least[row], point.across * across_step(false));
    most[row] = std::max(most[row], point.across * across_step(false));
  };
  for (const LayoutPoint& node : layout_.nodes) measure(node);
  for (const auto& points : layout_.edges)
    for (const LayoutPoint& point : points) measure(point);
  shift_.clear();
  Spot at;
  for (std::size_t begin = 0, row = 0; row < rows; ++row) {
    const double sign = row % 2 == 0 ? 1 : -1;
    auto last = static_cast<std::size_t>(std::ranges::upper_bound(row_, row) - row_.begin()) - 1;
    shift_.push_back({at.x - sign * along_[begin], at.y - least[row]});
    at.x += sign * (along_[last] - along_[begin]);
    at.y += most[row] - least[row] + kCardHeight + kGapRows;
    begin = last + 1;
  }
}

Spot KinGeometry::corner(const LayoutPoint& point) const {
  const std::size_t layer = layer_of(point);
  const double along = leftwards(layer) ? -along_[layer] : along_[layer];
  const double across = point.across * across_step(way_ == Way::down);
  const Spot shift = shift_[row_[layer]];
  const Spot at = way_ == Way::down ? Spot{across, along} : Spot{along, across};
  return {top_left_.x + at.x + shift.x, top_left_.y + at.y + shift.y};
}

KinGeometry::Piece KinGeometry::piece(const LayoutPoint& from, const LayoutPoint& to, bool last) const {
  const Spot a = corner(from);
  const Spot b = corner(to);
  const double tip = last ? kTip : 0;
  const std::size_t layer = layer_of(from);
  if (way_ == Way::down || row_[layer] != row_[layer_of(to)])
    return {{a.x + kCardWidth / 2, a.y + kCardHeight}, {b.x + kCardWidth / 2, b.y - tip}, true};
  const double y_from = a.y + kCardHeight / 2;
  const double y_to = b.y + kCardHeight / 2;
  if (leftwards(layer)) return {{a.x, y_from}, {b.x + kCardWidth + tip, y_to}, false};
  return {{a.x + kCardWidth, y_from}, {b.x - tip, y_to}, false};
}

std::string KinGeometry::path(std::size_t edge) const {
  const std::vector<LayoutPoint>& points = layout_.edges[edge];
  std::string text;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const auto [from, to, down] = piece(points[i - 1], points[i], i + 1 == points.size());
    const Spot a = down ? Spot{from.x, (from.y + to.y) / 2} : Spot{(from.x + to.x) / 2, from.y};
    const Spot b = down ? Spot{to.x, a.y} : Spot{a.x, to.y};
    // The line between two pieces runs straight past the cards of the layer.
    text += fmt::format("{}{:.1f} {:.1f} C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", text.empty() ? "M" : " L", from.x,
                        from.y, a.x, a.y, b.x, b.y, to.x, to.y);
  }
  return text;
}

Spot KinGeometry::label(std::size_t edge, Spot size, double back) const {
  constexpr double kArrow = 14;
  const std::vector<LayoutPoint>& points = layout_.edges[edge];
  const auto [from, to, down] = piece(points[points.size() - 2], points.back(), true);
  const double length = down ? to.y - from.y : std::abs(to.x - from.x);
  const double from_end = kArrow + (down ? size.y : size.x) / 2;
  const double t = when_along((1 - from_end / length) * (1 - back));
  const double along = along_at(t);
  const double across = across_at(t);
  const double x_part = down ? across : along;
  const double y_part = down ? along : across;
  return {from.x + (to.x - from.x) * x_part, from.y + (to.y - from.y) * y_part};
}

}  // namespace weft
