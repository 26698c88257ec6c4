// The places of the cards and edges in a KinGraph's picture, in pixels from the picture's upper left corner.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/graph_layout.h"

namespace weft {

struct Spot {
  double x = 0, y = 0;
};

// Arranges the layers downwards, to the right, or in rows that turn at the margin: the way whose picture is nearest to
// a page's shape.
class KinGeometry {
 public:
  static constexpr double kCardWidth = 218;
  static constexpr double kCardHeight = 54;

  // `top_left` is where the drawing begins. A picture that is narrower than `width_min` is centred.
  KinGeometry(const GraphEdges& graph, Spot top_left, double width_min);

  double width() const { return size_.x; }  // margins on both sides included
  double bottom() const { return top_left_.y + size_.y; }
  Spot card(std::uint32_t node) const { return corner(layout_.nodes[node]); }  // its upper left corner
  std::string path(std::size_t edge) const;                                    // SVG path data
  // Returns the middle of a label of this size on the edge's last piece. If `back` is 0, the label is as near to the
  // end as the arrow allows; up to 1, it moves back from there.
  Spot label(std::size_t edge, Spot size, double back) const;

 private:
  enum class Way { down, right, rows };
  // One piece of an edge, from the side of a card or waypoint to the side of the next one.
  struct Piece {
    Spot from, to;
    bool down = false;  // leaves and arrives vertically
  };

  Spot lay_out(Way way);  // returns the size
  void space_layers();
  std::pair<Spot, Spot> extent() const;
  void break_rows();
  void place_rows();
  bool may_break_after(std::size_t layer) const;
  double row_width(std::size_t begin, std::size_t end) const;
  std::size_t layer_of(const LayoutPoint& point) const { return static_cast<std::size_t>(point.layer); }
  bool leftwards(std::size_t layer) const { return way_ == Way::rows && row_[layer] % 2 == 1; }
  Spot corner(const LayoutPoint& point) const;
  Piece piece(const LayoutPoint& from, const LayoutPoint& to, bool last) const;

  GraphLayout layout_;
  Spot top_left_;
  Spot size_;
  Way way_ = Way::down;
  std::vector<std::size_t> crowd_;  // number of cards and waypoints, by layer
  std::vector<double> along_;       // start of each layer
  std::vector<std::size_t> row_;    // by layer
  std::vector<Spot> shift_;         // by row: offset of its cards and edges
};

}  // namespace weft
