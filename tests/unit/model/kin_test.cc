#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/graph_layout.h"
#include "model/kin_geometry.h"
#include "testing.h"
#include "weft/model/relatives.h"

namespace weft {
namespace {

constexpr std::uint64_t kDay = 86'400'000'000'000;

// Versions by id. Parents are pairs of an id and a number of equal tensors, out of 10.
class Family {
 public:
  VersionRow& add(std::uint64_t id, const std::string& model, std::uint64_t number,
                  const std::vector<std::pair<std::uint64_t, unsigned>>& parents = {}) {
    VersionRow& version = kin.versions.emplace_back();
    version.id = id;
    version.model_name = model;
    version.number = number;
    version.time_ns = 1'714'521'600'000'000'000 + id * kDay;
    version.logical_bytes = 1100;
    version.tensors = 10;
    version.tensor_bytes = 1000;
    for (auto [parent, same] : parents) {
      auto at = std::ranges::find(kin.versions, parent, &VersionRow::id);
      std::string of = at == kin.versions.end() ? "gone" : at->model_name;
      std::uint64_t of_number = at == kin.versions.end() ? 1 : at->number;
      kin.versions.back().parents.push_back({of, of_number, same < 5, same, same * 100, parent});
    }
    return kin.versions.back();
  }
  // Puts the subject of the graph first.
  const KinGraph& about(std::uint64_t id) {
    auto at = std::ranges::find(kin.versions, id, &VersionRow::id);
    std::rotate(kin.versions.begin(), at, at + 1);
    return kin;
  }
  KinGraph kin;
};

std::vector<std::string> first_words(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find('\n', begin);
    std::string line = text.substr(begin, end - begin);
    out.push_back(line.substr(0, std::min({line.find("  20"), line.find("  declared"), line.find("  verified")})));
    while (out.back().ends_with(' ')) out.back().pop_back();
    begin = end + 1;
  }
  return out;
}

using Lines = std::vector<std::string>;

// True if the XML is well-formed: tags nest, attributes are quoted, special characters are escaped.
bool well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < xml.size();) {
    if (xml[at] == '&') {
      std::size_t end = xml.find(';', at);
      std::string entity = xml.substr(at + 1, end - at - 1);
      if (entity != "amp" && entity != "lt" && entity != "gt" && entity != "quot") return false;
      at = end + 1;
      continue;
    }
    if (xml[at] == '>') return false;
    if (xml[at] != '<') {
      ++at;
      continue;
    }
    std::size_t end = at;
    for (bool quoted = false; end < xml.size() && (quoted || xml[end] != '>'); ++end)
      if (xml[end] == '"') quoted = !quoted;
    if (end >= xml.size()) return false;
    std::string tag = xml.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty();
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a chain is drawn straight down, with its facts") {
  Family f;
  f.add(1, "m", 1).message = "as it came\nand more";
  f.add(2, "m", 2, {{1, 9}});
  f.add(3, "m", 3, {{2, 0}}).message = "third";
  CHECK(draw_ancestors(f.about(3)) ==
        "m@3  2024-05-04 00:00Z    1.1 KiB  third\n"
        "m@2  2024-05-03 00:00Z    1.1 KiB  declared\n"
        "m@1  2024-05-02 00:00Z    1.1 KiB  verified (9 of 10 tensors, 900 B)  as it came\n");
  CHECK(first_words(draw_descendants(f.about(1))) == Lines{"m@1", "m@2", "m@3"});
}

TEST_CASE("merges branch, the first parent first, and shared ancestors are drawn once") {
  Family f;
  f.add(1, "base", 1);
  f.add(2, "base", 2, {{1, 5}});
  f.add(3, "chat", 1, {{2, 4}});
  f.add(4, "code", 1, {{2, 6}});
  f.add(5, "merged", 1, {{3, 5}, {4, 5}}).elsewhere = {"far/away"};
  CHECK(first_words(draw_ancestors(f.about(5))) == Lines{"merged@1", "├── chat@1", "│   base@2", "│   base@1",
                                                         "├── code@1", "│   base@2  ↑ above", "└── far/away"});
  CHECK(draw_ancestors(f.kin).find("└── far/away         declared, not stored here\n") != std::string::npos);
  CHECK(first_words(draw_descendants(f.about(2))) ==
        Lines{"base@2", "├── chat@1", "│   merged@1", "└── code@1", "    merged@1  ↑ above"});
}

TEST_CASE("tombstones, lost parents, and kin that are left out") {
  Family f;
  VersionRow& removed = f.add(2, "m", 1, {{1, 3}});
  removed.removed = true;
  removed.removed_ns = 1'714'521'600'000'000'000;
  f.add(3, "m", 2, {{2, 3}});
  std::string text = draw_ancestors(f.about(3));
  CHECK(text.find("m@1") != std::string::npos);
  CHECK(text.find("removed 2024-05-01 00:00Z") != std::string::npos);
  CHECK(first_words(text).back() == "gone@1");
  f.kin.left_out = 7;
  CHECK(draw_ancestors(f.kin).ends_with("… and 7 more\n"));
  f.kin.uncounted = true;
  CHECK(render_log(f.kin).ends_with("\n… and at least 7 more\n"));
}

TEST_CASE("deep and broad kin are drawn without recursion or endless columns") {
  Family f;
  f.add(1, "m", 1);
  for (std::uint64_t i = 2; i <= 5000; ++i) f.add(i, "m", i, {{i - 1, 5}});
  CHECK(first_words(draw_ancestors(f.about(5000))).size() == 5000);
  Family merges;  // each merges the previous two
  merges.add(1, "m", 1);
  merges.add(2, "m", 2, {{1, 5}});
  for (std::uint64_t i = 3; i <= 500; ++i) merges.add(i, "m", i, {{i - 1, 5}, {i - 2, 5}});
  std::string text = draw_ancestors(merges.about(500));
  CHECK(text.size() < 500 * 500 * 2);
  CHECK(text.find("… 2 branches") != std::string::npos);
}

TEST_CASE("the log tells newest first, with parents, metrics and the whole message") {
  Family f;
  f.add(1, "base", 1);
  VersionRow& child = f.add(2, "m", 1, {{1, 9}});
  child.message = "one\ntwo";
  child.metrics = {{"loss", "0.5"}, {"acc", "0.9"}};
  child.elsewhere = {"far/away"};
  CHECK(render_log(f.about(2)) ==
        "m@1  2024-05-03 00:00Z  1.1 KiB\n"
        "    parent   base@1: verified (9 of 10 tensors, 900 B)\n"
        "    parent   far/away: declared, not stored here\n"
        "    metrics  loss=0.5, acc=0.9\n"
        "    one\n    two\n"
        "\nbase@1  2024-05-02 00:00Z  1.1 KiB\n");
}

TEST_CASE("DOT and SVG of names that need escapes are well-formed") {
  Family f;
  f.add(1, "a", 1).message = "<script>\"&\x01";
  f.add(2, "b", 1, {{1, 9}}).elsewhere = {"x\"<y>"};
  f.add(3, "c", 1, {{2, 0}}).removed = true;
  std::string svg = kin_svg(f.about(2));
  CAPTURE(svg);
  CHECK(well_formed(svg));
  CHECK(svg.find("<script>") == std::string::npos);
  CHECK(svg.find(">90 %<") != std::string::npos);
  CHECK(svg.find("3 versions") != std::string::npos);
  std::string dot = kin_dot(f.kin);
  CHECK(dot.find("  \"a@1\" -> \"b@1\" [label=\"90 %\"];\n") != std::string::npos);
  CHECK(dot.find("  \"b@1\" -> \"c@1\" [style=dashed];\n") != std::string::npos);
}

TEST_CASE("graphs of 1, 3, 30 and 40 of 300 versions: a card for each, edges within the picture") {
  std::mt19937_64 random(7);
  for (std::uint64_t count : {1, 3, 30, 40}) {
    CAPTURE(count);
    Family f;
    f.add(1, "m", 1);
    for (std::uint64_t i = 2; i <= count; ++i) {
      std::vector<std::pair<std::uint64_t, unsigned>> parents = {{1 + random() % (i - 1), 5}};
      if (std::uint64_t other = 1 + random() % (i - 1); other != parents[0].first) parents.push_back({other, 2});
      f.add(i, "m", i, parents);
    }
    if (count == 40) f.kin.left_out = 260;
    std::string svg = kin_svg(f.about(count));
    CHECK(well_formed(svg));
    CHECK(count_of(svg, "<g><title>") == count);
    CHECK(count_of(svg, "stroke-width=\"2.4\" marker") == 1);  // of the legend
    CHECK(count_of(svg, "fill=\"#eff6ff\"") == 1);             // of the graph's subject
    CHECK((svg.find("the nearest 40 of 300 versions") != std::string::npos) == (count == 40));
    CHECK(svg == kin_svg(f.kin));
  }
}

TEST_CASE("layouts keep edges forwards and nodes of a layer apart") {
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 50; ++round) {
    GraphEdges graph;
    graph.nodes = 1 + random() % 30;
    for (std::uint32_t to = 1; to < graph.nodes; ++to)
      for (std::uint32_t from = 0; from < to; ++from)
        if (random() % 12 == 0) graph.edges.emplace_back(from, to);
    GraphLayout layout = layered_layout(graph);
    REQUIRE(layout.nodes.size() == graph.nodes);
    REQUIRE(layout.edges.size() == graph.edges.size());
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
      const auto& points = layout.edges[i];
      CHECK(points.front().layer == layout.nodes[graph.edges[i].first].layer);
      CHECK(points.back().across == layout.nodes[graph.edges[i].second].across);
      for (std::size_t p = 1; p < points.size(); ++p) CHECK(points[p].layer == points[p - 1].layer + 1);
    }
    for (std::size_t a = 0; a < graph.nodes; ++a) {
      CHECK(layout.nodes[a].across >= 0);
      CHECK(layout.nodes[a].across <= layout.breadth);
      for (std::size_t b = 0; b < a; ++b)
        if (layout.nodes[a].layer == layout.nodes[b].layer)
          CHECK(std::abs(layout.nodes[a].across - layout.nodes[b].across) > 0.999);
    }
  }
}

TEST_CASE("cards of a picture never overlap, and lie within it") {
  constexpr Spot kCorner{28, 62};
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 150; ++round) {
    GraphEdges graph;
    graph.nodes = 1 + random() % 40;
    const std::uint64_t reach = 1 + random() % 6;  // 1 makes a chain
    for (std::uint32_t to = 1; to < graph.nodes; ++to) {
      std::uint64_t back = 1 + random() % std::min<std::uint64_t>(reach, to);
      graph.edges.emplace_back(static_cast<std::uint32_t>(to - back), to);
      if (back > 1 && random() % 4 == 0) graph.edges.emplace_back(to - 1, to);
    }
    KinGeometry geometry(graph, kCorner, 640);
    CHECK(geometry.width() >= 640);
    for (std::uint32_t a = 0; a < graph.nodes; ++a) {
      const Spot at = geometry.card(a);
      CHECK(at.x > kCorner.x - 0.01);
      CHECK(at.y > kCorner.y - 0.01);
      CHECK(at.x + KinGeometry::kCardWidth < geometry.width() - kCorner.x + 0.01);
      CHECK(at.y + KinGeometry::kCardHeight < geometry.bottom() + 0.01);
      for (std::uint32_t b = 0; b < a; ++b) {
        const Spot other = geometry.card(b);
        CHECK((std::abs(at.x - other.x) >= KinGeometry::kCardWidth ||
               std::abs(at.y - other.y) >= KinGeometry::kCardHeight));
      }
    }
    for (std::size_t edge = 0; edge < graph.edges.size(); ++edge) CHECK(geometry.path(edge).starts_with("M"));
  }
}

TEST_CASE("a long chain is drawn in rows, not as a strip") {
  GraphEdges graph;
  graph.nodes = 30;
  for (std::uint32_t i = 1; i < graph.nodes; ++i) graph.edges.emplace_back(i - 1, i);
  KinGeometry geometry(graph, {28, 62}, 640);
  const double shape = geometry.width() / geometry.bottom();
  CHECK(shape > 0.5);
  CHECK(shape < 2.5);
}

TEST_CASE("a card shows tags, the first metric and new bytes; without them the day") {
  Family f;
  f.add(1, "m", 1).metrics = {{"loss", "0.421357"}, {"acc", "0.9"}};
  f.add(2, "m", 2, {{1, 9}}).metrics = {{"step", "120000"}};
  f.add(3, "m", 3, {{2, 9}});
  f.add(4, "m", 4, {{3, 9}}).removed = true;
  f.kin.versions[3].removed_ns = 1'714'521'600'000'000'000;
  f.kin.versions[2].metrics = {{"loss", "nan & more"}};
  CHECK(kin_svg(f.kin).find(">loss 0.4214</text>") != std::string::npos);
  f.kin.marks = {{{"best", "production"}, 7 << 20}, {{}, 0}, {{"a-tag-whose-name-is-too-long-for-its-card"}, {}}, {}};
  const std::string svg = kin_svg(f.kin);
  CHECK(well_formed(svg));
  CHECK(svg.find(">step 120000 · +0 B</text>") != std::string::npos);
  CHECK(svg.find(">best, production</text>") != std::string::npos);
  CHECK(svg.find(">loss 0.4214 · +7.0 MiB</text>") != std::string::npos);
  CHECK(svg.find(">loss nan &amp; more</text>") != std::string::npos);
  CHECK(svg.find(">a-tag-whose") != std::string::npos);
  CHECK(svg.find("-its-card</text>") != std::string::npos);
  CHECK(svg.find(">removed 2024-05-01</text>") != std::string::npos);
  CHECK(kin_dot(f.kin).find("best, production · loss 0.4214 · +7.0 MiB") != std::string::npos);
  f.kin.marks.clear();
  f.kin.versions[0].metrics.clear();
  CHECK(kin_svg(f.kin).find(">2024-05-02</text>") != std::string::npos);
}

TEST_CASE("more than six siblings are in rows") {
  GraphEdges graph;
  graph.nodes = 40;
  for (std::uint32_t i = 1; i < 40; ++i) graph.edges.emplace_back(0, i);
  const GraphLayout layout = layered_layout(graph, {0.12, 6});
  CHECK(layout.layers == 8);
  std::vector<std::size_t> crowd(layout.layers);
  for (const LayoutPoint& node : layout.nodes) ++crowd[static_cast<std::size_t>(node.layer)];
  CHECK(crowd == std::vector<std::size_t>{1, 6, 6, 6, 6, 6, 6, 3});
  const KinGeometry geometry(graph, {28, 62}, 640);
  CHECK(geometry.width() < 4000);
  CHECK(geometry.bottom() < 2000);
  graph.nodes = 7;
  graph.edges.resize(6);
  CHECK(layered_layout(graph, {0.12, 6}).layers == 2);
}

TEST_CASE("a name that is too long for its card is cut in its middle") {
  Family f;
  f.add(1, "organisation/Wide-Model-With-A-Name-MMMMMMMM", 12345);
  f.add(2, "iiiiii/lllllllllllllllllll", 1, {{1, 9}});
  const std::string svg = kin_svg(f.about(1));
  CHECK(svg.find(">organi") != std::string::npos);
  CHECK(svg.find("MM@12345</text>") != std::string::npos);
  const std::string whole = "organisation/Wide-Model-With-A-Name-MMMMMMMM@12345</text>";
  CHECK(svg.find(whole) == svg.rfind(whole));  // the heading
  CHECK(svg.find(">iiiiii/lllllllllllllllllll@1</text>") != std::string::npos);
}

TEST_CASE("a tree is laid out without crossings") {
  GraphEdges graph;
  graph.nodes = 40;
  for (std::uint32_t i = 1; i < 40; ++i) graph.edges.emplace_back((i - 1) / 3, i);
  GraphLayout layout = layered_layout(graph);
  for (auto [a, b] : graph.edges)
    for (auto [c, d] : graph.edges) {
      const auto& nodes = layout.nodes;
      if (nodes[a].layer != nodes[c].layer || nodes[a].across >= nodes[c].across) continue;
      CHECK(nodes[b].across < nodes[d].across);
    }
}

}  // namespace weft
