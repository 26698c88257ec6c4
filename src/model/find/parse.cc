#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>

#include "base/limits.h"
#include "base/text.h"
#include "model/find/query.h"

namespace weft {
namespace {

struct FieldName {
  std::string_view name;
  FindField field;
};
constexpr FieldName kFields[] = {
    {"model", FindField::model},     {"tag", FindField::tag},         {"parent", FindField::parent},
    {"message", FindField::message}, {"family", FindField::family},   {"kind", FindField::kind},
    {"layer", FindField::layer},     {"tensor", FindField::tensor},   {"dtype", FindField::dtype},
    {"file", FindField::file},       {"version", FindField::version}, {"bytes", FindField::bytes},
    {"layers", FindField::layers},   {"tensors", FindField::tensors}, {"parameters", FindField::parameters},
    {"files", FindField::files},     {"time", FindField::time},
};

struct OpName {
  std::string_view name;
  FindOp op;
};
constexpr OpName kOps[] = {{"!=", FindOp::unequal}, {"<=", FindOp::at_most}, {">=", FindOp::at_least},
                           {"=", FindOp::equal},    {"<", FindOp::less},     {">", FindOp::more},
                           {"~", FindOp::glob}};

bool is_text(FindField field) {
  return field <= FindField::file;
}

// Parses a number and its optional unit: K, M, G, T (thousands) or Ki, Mi, Gi, Ti (1024s).
std::optional<double> find_number(std::string_view text) {
  double value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || !std::isfinite(value)) return std::nullopt;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit.empty()) return value;
  std::size_t power = std::string_view("KMGT").find(unit[0]);
  if (power == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "i")) return std::nullopt;
  return value * std::pow(unit.size() > 1 ? 1024.0 : 1000.0, static_cast<double>(power + 1));
}

// Parses "2026-11-21", "2026-11-21T16:30", "2026-11-21T16:30:05Z": UTC, as nanoseconds since 1970.
std::optional<std::uint64_t> find_time(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.ends_with('Z')) text.remove_suffix(1);
  if (text.size() != 10 && text.size() != 16 && text.size() != 19) return std::nullopt;
  std::vector<int> parts = {0};
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool digit = text[i] >= '0' && text[i] <= '9';
    if (digit != (kForm[i] == '0') || (!digit && text[i] != kForm[i])) return std::nullopt;
    if (digit)
      parts.back() = parts.back() * 10 + (text[i] - '0');
    else
      parts.push_back(0);
  }
  parts.resize(6);
  std::tm utc{};
  utc.tm_year = parts[0] - 1900;
  utc.tm_mon = parts[1] - 1;
  utc.tm_mday = parts[2];
  utc.tm_hour = parts[3];
  utc.tm_min = parts[4];
  utc.tm_sec = parts[5];
  std::tm asked = utc;
  std::time_t seconds = ::timegm(&utc);
  bool kept = utc.tm_mon == asked.tm_mon && utc.tm_mday == asked.tm_mday && utc.tm_hour == asked.tm_hour;
  if (seconds < 0 || !kept) return std::nullopt;
  return static_cast<std::uint64_t>(seconds) * 1'000'000'000U;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Query::Node> run() {
    if (text_.size() > limits::kFindQueryMax)
      return Error{Errc::invalid,
                   fmt::format("expected a query of at most {} bytes, got {}", limits::kFindQueryMax, text_.size())};
    WEFT_TRY(Query::Node node, any(0));
    skip_space();
    if (at_ < text_.size()) return expected("\"and\", \"or\" or the end");
    return node;
  }

 private:
  using Node = Query::Node;

  Error expected(std::string_view what) {
    skip_space();
    return expected_at(at_, what);
  }
  Error expected_at(std::size_t at, std::string_view what) const {
    std::string got = at >= text_.size() ? "the end" : fmt::format("\"{}\"", printable(text_.substr(at), 20));
    return Error{Errc::invalid, fmt::format("column {}: expected {}, got {}", column_of(at), what, got)};
  }

  // Counts characters, as a user who reads the text does.
  std::size_t column_of(std::size_t at) const {
    auto starts_character = [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; };
    return 1 + static_cast<std::size_t>(std::ranges::count_if(text_.substr(0, at), starts_character));
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }

  bool take(std::string_view symbol) {
    skip_space();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    at_ += symbol.size();
    return true;
  }

  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  }

  std::string_view peek_word() {
    skip_space();
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }

  bool take_word(std::string_view word) {
    if (peek_word() != word) return false;
    at_ += word.size();
    return true;
  }

  Result<Node> any(std::size_t depth) { return joined(Node::Kind::any, depth); }

  // Parses "a or b or c", with "a and b and c" inside.
  Result<Node> joined(Node::Kind kind, std::size_t depth) {
    Node node;
    node.kind = kind;
    do {
      WEFT_TRY(Node inner, kind == Node::Kind::any ? joined(Node::Kind::all, depth) : one(depth));
      node.inner.push_back(std::move(inner));
    } while (take_word(kind == Node::Kind::any ? "or" : "and"));
    if (node.inner.size() > 1) return node;
    Node only = std::move(node.inner[0]);
    return only;
  }

  Result<Node> one(std::size_t depth) {
    skip_space();
    if (depth > limits::kFindDepthMax) return expected("fewer parentheses and \"not\" inside one another");
    if (take_word("not")) {
      Node node;
      node.kind = Node::Kind::no;
      WEFT_TRY(Node inner, one(depth + 1));
      node.inner.push_back(std::move(inner));
      return node;
    }
    if (take("(")) {
      WEFT_TRY(Node node, any(depth + 1));
      if (!take(")")) return expected("\")\"");
      return node;
    }
    return take_word("has") ? path() : fact();
  }

  Result<Node> fact() {
    std::size_t at = (skip_space(), at_);
    std::string_view word = peek_word();
    Node node;
    node.kind = Node::Kind::fact;
    WEFT_CHECK(field(word, at, node.fact));
    at_ += word.size();
    WEFT_CHECK(op(node.fact));
    skip_space();
    std::size_t value_at = at_;
    WEFT_TRY(std::string value, value_text());
    WEFT_CHECK(set_value(node.fact, std::move(value), value_at));
    return node;
  }

  Status field(std::string_view word, std::size_t at, FindFact& fact) const {
    constexpr std::string_view kMetric = "metric.";
    if (word.starts_with(kMetric) && word.size() > kMetric.size()) {
      fact.field = FindField::metric;
      fact.metric = word.substr(kMetric.size());
      return {};
    }
    for (const FieldName& known : kFields)
      if (known.name == word) {
        fact.field = known.field;
        return {};
      }
    return expected_at(at,
                       "a field (model, tag, parent, message, time, version, family, kind, layer, tensor, dtype, "
                       "file, bytes, parameters, layers, tensors, files, metric.NAME), \"has\", \"not\" or \"(\"");
  }

  Status op(FindFact& fact) {
    skip_space();
    std::size_t at = at_;
    for (const OpName& known : kOps)
      if (take(known.name)) {
        fact.op = known.op;
        bool ordered = known.op != FindOp::equal && known.op != FindOp::unequal && known.op != FindOp::glob;
        if (is_text(fact.field) && ordered) return expected_at(at, "=, != or ~ for a text");
        if (!is_text(fact.field) && known.op == FindOp::glob)
          return expected_at(at, "=, !=, <, <=, > or >= for a number");
        return {};
      }
    return expected("=, !=, <, <=, >, >= or ~");
  }

  // Parses 'quoted' (a doubled quote stands for one), or everything up to the next space or parenthesis.
  Result<std::string> value_text() {
    if (at_ >= text_.size()) return expected("a value");
    char quote = text_[at_];
    if (quote == '\'' || quote == '"') return quoted(quote);
    std::size_t begin = at_;
    while (at_ < text_.size() && std::string_view(" \t\n()").find(text_[at_]) == std::string_view::npos) ++at_;
    if (at_ == begin) return expected("a value");
    return std::string(text_.substr(begin, at_ - begin));
  }

  Result<std::string> quoted(char quote) {
    std::size_t begin = at_++;
    std::string value;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote && (at_ + 1 >= text_.size() || text_[at_ + 1] != quote)) {
        ++at_;
        return value;
      }
      if (text_[at_] == quote) ++at_;
      value += text_[at_];
    }
    return expected_at(begin, "a closing quote");
  }

  Status set_value(FindFact& fact, std::string value, std::size_t at) const {
    if (fact.field == FindField::time) {
      auto time = find_time(value);
      if (!time) return expected_at(at, "a time such as 2026-11-21 or 2026-11-21T16:30:00Z");
      fact.time_ns = *time;
    } else if (!is_text(fact.field)) {
      auto number = find_number(value);
      if (!number) return expected_at(at, "a number such as 12, 0.93, 100M or 4Gi");
      fact.number = *number;
    }
    fact.text = std::move(value);
    return {};
  }

  // Parses a path: has linear[3072,768] -> linear[768,3072] --> layer_norm
  Result<Node> path() {
    Node node;
    node.kind = Node::Kind::path;
    for (bool far = false;;) {
      WEFT_TRY(LayerPattern layer, layer_pattern());
      layer.far = far;
      node.path.push_back(std::move(layer));
      far = take("-->");
      if (!far && !take("->")) return node;
    }
  }

  Result<LayerPattern> layer_pattern() {
    LayerPattern layer;
    WEFT_TRY(layer.kind, pattern_text("a kind of layer, such as linear or *"));
    if (text_.substr(at_).starts_with("[")) {
      WEFT_TRY(layer.shape, shape());
    }
    if (text_.substr(at_).starts_with(":")) {
      ++at_;
      std::size_t at = at_;
      WEFT_TRY(layer.dtype, pattern_text("an element type, such as F32"));
      if (dtype_by_name(layer.dtype) == nullptr) return expected_at(at, "an element type, such as F32");
    }
    if (text_.substr(at_).starts_with("{")) {
      WEFT_TRY(layer.params, params());
    }
    if (text_.substr(at_).starts_with("@")) {
      ++at_;
      WEFT_TRY(layer.name, pattern_text("a layer's name"));
    }
    return layer;
  }

  static bool in_pattern(char c) { return is_word(c) || c == '*' || c == '?'; }

  Result<std::string> pattern_text(std::string_view what) {
    skip_space();
    std::size_t begin = at_;
    while (at_ < text_.size() && in_pattern(text_[at_])) ++at_;
    if (at_ == begin) return expected(what);
    return std::string(text_.substr(begin, at_ - begin));
  }

  Result<std::vector<std::optional<std::uint64_t>>> shape() {
    std::vector<std::optional<std::uint64_t>> sizes;
    ++at_;
    while (!take("]")) {
      if (!sizes.empty() && !take(",")) return expected("\",\" or \"]\"");
      skip_space();
      std::string_view word = peek_word();
      auto size = parse_u64(word);
      if (take("*")) {
        sizes.emplace_back();
      } else if (size && sizes.size() < limits::kDimensionsMax) {
        at_ += word.size();
        sizes.emplace_back(size);
      } else {
        return expected("a size or *");
      }
      if (sizes.size() > limits::kDimensionsMax) return expected("fewer sizes");
    }
    return sizes;
  }

  Result<std::vector<std::pair<std::string, std::string>>> params() {
    std::vector<std::pair<std::string, std::string>> params;
    ++at_;
    while (!take("}")) {
      if (!params.empty() && !take(",")) return expected("\",\" or \"}\"");
      WEFT_TRY(std::string key, pattern_text("a parameter"));
      if (!take("=")) return expected("\"=\"");
      skip_space();
      std::size_t begin = at_;
      while (at_ < text_.size() && (in_pattern(text_[at_]) || text_[at_] == '-' || text_[at_] == '+')) ++at_;
      if (at_ == begin) return expected("a value");
      params.emplace_back(std::move(key), text_.substr(begin, at_ - begin));
    }
    return params;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<Query> Query::parse(std::string_view text) {
  WEFT_TRY(Node root, Parser(text).run());
  return Query(std::make_unique<Node>(std::move(root)));
}

Query::Query(std::unique_ptr<Node> root) : root_(std::move(root)) {}
Query::Query(Query&&) noexcept = default;
Query& Query::operator=(Query&&) noexcept = default;
Query::~Query() = default;

}  // namespace weft
