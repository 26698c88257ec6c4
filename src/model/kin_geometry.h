// Where the cards and edges of a KinGraph's picture lie. All in pixels, from the picture's left upper corner.
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

// Layers downwards, to the right, or to the right in rows that turn at the margin: whichever gives a picture nearest to
// a page's shape.
class KinGeometry {
 public:
  static constexpr double kCardWidth = 218;
  static constexpr double kCardHeight = 54;

  // `top_left` is where the drawing begins; a picture that is narrower than `width_min` has it in the middle.
  KinGeometry(const GraphEdges& graph, Spot top_left, double width_min);

  double width() const { return size_.x; }  // margins on both sides included
  double bottom() const { return top_left_.y + size_.y; }
  Spot card(std::uint32_t node) const { return corner(layout_.nodes[node]); }  // its left upper corner
  std::string path(std::size_t edge) const;                                    // of an SVG
  // The middle of a label so wide and high, on the edge's last piece: as near to its end as an arrow lets it for 0,
  // from there on for up to 1.
  Spot label(std::size_t edge, Spot size, double back) const;

 private:
  enum class Way { down, right, rows };
  // One piece of an edge, from the side of a card or waypoint to that of the next.
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
  std::vector<std::size_t> crowd_;  // cards and waypoints, by layer
  std::vector<double> along_;       // where a layer begins
  std::vector<std::size_t> row_;    // by layer
  std::vector<Spot> shift_;         // of a row: added to what is in it
};

}  // namespace weft
