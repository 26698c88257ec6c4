// Names of base models that model cards and adapter configurations declare. A card's front matter is YAML. Only its
// top-level `base_model` is read: a plain or quoted text, or a list of them.
#include <algorithm>
#include <optional>

#include "base/json_value.h"
#include "base/limits.h"
#include "base/text.h"
#include "weft/model/format.h"

namespace weft {
namespace {

using Names = std::vector<std::string>;

std::string_view trimmed(std::string_view text) {
  return weft::trimmed(text, " \t\r");
}

void add_name(Names& names, std::string_view name) {
  auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (name.empty() || name.size() > limits::kBaseNameMax || names.size() >= limits::kParentsMax) return;
  if (!valid_utf8(name) || std::ranges::any_of(name, control)) return;
  if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}

// Removes a quoted text from the front of `text` and returns its value. In single quotes, '' stands for '. In double
// quotes, a backslash escapes the next character.
std::optional<std::string> take_quoted(std::string_view& text) {
  const char quote = text.front();
  std::string out;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote && quote == '\'' && i + 1 < text.size() && text[i + 1] == quote) {
      out += text[i++];
    } else if (text[i] == quote) {
      text.remove_prefix(i + 1);
      return out;
    } else if (text[i] == '\\' && quote == '"' && i + 1 < text.size()) {
      out += text[++i];
    } else {
      out += text[i];
    }
  }
  return std::nullopt;
}

bool is_null(std::string_view plain) {
  return plain == "~" || plain == "null" || plain == "Null" || plain == "NULL";
}

// Removes one scalar from the front of `text`, up to one of `ends` or a comment, and returns it; "" for YAML's null.
// Nothing for other values: maps, anchors, aliases, tags, blocks, broken quotes.
std::optional<std::string> take_scalar(std::string_view& text, std::string_view ends) {
  text = trimmed(text);
  if (text.empty()) return std::nullopt;
  if (text.front() == '"' || text.front() == '\'') return take_quoted(text);
  constexpr std::string_view kIndicators = "{}[]&*!|>%@`#,?:-";
  if (kIndicators.find(text.front()) != std::string_view::npos) return std::nullopt;
  std::size_t end = std::min({text.find_first_of(ends), text.find(" #"), text.size()});
  std::string out(trimmed(text.substr(0, end)));
  if (out.find(": ") != std::string::npos || out.ends_with(':')) return std::nullopt;
  text.remove_prefix(end);
  return is_null(out) ? std::string() : out;
}

class CardReader {
 public:
  explicit CardReader(std::string_view front_matter) : lines_(split(front_matter, '\n')) {}

  Names names() {
    constexpr std::string_view kKey = "base_model:";
    for (next_ = 0; next_ < lines_.size(); ++next_) {
      if (!lines_[next_].starts_with(kKey)) continue;
      std::string_view value = trimmed(lines_[next_++].substr(kKey.size()));
      if (value.empty() || value.starts_with('#'))
        read_block();
      else if (value.starts_with('['))
        read_flow(value);
      else if (auto name = take_scalar(value, ""))
        add_name(names_, *name);
      break;
    }
    return std::move(names_);
  }

 private:
  // Reads a list of "- a" lines, with blank lines and comments between them.
  void read_block() {
    for (; next_ < lines_.size(); ++next_) {
      std::string_view line = trimmed(lines_[next_]);
      if (line.empty() || line.starts_with('#')) continue;
      if (!line.starts_with("- ")) return;
      line.remove_prefix(2);
      if (auto name = take_scalar(line, "")) add_name(names_, *name);
    }
  }

  // Reads a list "[a, b]", which may span several lines.
  void read_flow(std::string_view first) {
    std::string text(first.substr(1));
    while (text.find(']') == std::string::npos && next_ < lines_.size()) text.append(" ").append(lines_[next_++]);
    for (std::string_view rest = text; !rest.empty() && rest.front() != ']';) {
      auto name = take_scalar(rest, ",]");
      if (!name) return;
      add_name(names_, *name);
      rest = trimmed(rest);
      if (rest.starts_with(',')) rest = trimmed(rest.substr(1));
    }
  }

  std::vector<std::string_view> lines_;
  std::size_t next_ = 0;
  Names names_;
};

// Returns the text between the two lines of dashes; "" if they are missing.
std::string_view front_matter(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::size_t begin = text.find('\n');
  if (begin == std::string_view::npos || trimmed(text.substr(0, begin)) != "---") return {};
  for (std::size_t line = ++begin; line < text.size();) {
    std::size_t end = std::min(text.find('\n', line), text.size());
    std::string_view here = trimmed(text.substr(line, end - line));
    if (here == "---" || here == "...") return text.substr(begin, line - begin);
    line = end + 1;
  }
  return {};
}

// Returns the first `bytes_max` bytes; "" if they cannot be read.
std::string text_of(ByteSource& source, std::uint64_t bytes_max) {
  std::string text(static_cast<std::size_t>(std::min(source.size(), bytes_max)), '\0');
  if (!source.read(0, std::as_writable_bytes(std::span(text))).ok()) return {};
  return text;
}

}  // namespace

std::vector<std::string> named_bases(std::string_view file_name, ByteSource& source) {
  if (file_name == "README.md") return CardReader(front_matter(text_of(source, limits::kFrontMatterMax))).names();
  Names names;
  if (file_name != "adapter_config.json" || source.size() > limits::kAdapterConfigMax) return names;
  const JsonBounds bounds{.depth_max = limits::kJsonDepthMax, .values_max = limits::kAdapterConfigMax};
  const auto config = JsonValue::parse(text_of(source, limits::kAdapterConfigMax), bounds);
  const auto name = config.ok() ? config->text("base_model_name_or_path") : config.error();
  if (name.ok()) add_name(names, *name);
  return names;
}

}  // namespace weft
