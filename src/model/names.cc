#include <fmt/core.h>

#include <optional>
#include <string_view>

#include "base/limits.h"
#include "base/text.h"
#include "weft/model/manifest.h"

namespace weft {
namespace {

// Returns the first control character of a UTF-8 text.
std::optional<char32_t> control_in(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (is_control(c.value)) return c.value;
    text.remove_prefix(c.length);
  }
  return std::nullopt;
}

Error refused(std::string_view what, std::string_view whole, const std::string& why) {
  return Error{Errc::invalid, fmt::format("{} \"{}\": {}", what, printable(whole), why)};
}

std::string path_component_fault(std::string_view component) {
  if (component.empty()) return "expected a relative path with a name between slashes, got an empty one";
  if (component == "." || component == "..") return fmt::format("expected no component \"{}\"", component);
  if (component.size() > limits::kNameMax)
    return fmt::format("expected components of at most {} bytes, got {}", limits::kNameMax, component.size());
  return {};
}

}  // namespace

Status check_file_path(std::string_view path) {
  if (path.size() > limits::kPathMax)
    return refused("file path", path, fmt::format("expected at most {} bytes, got {}", limits::kPathMax, path.size()));
  if (!valid_utf8(path)) return refused("file path", path, "expected UTF-8, got other bytes");
  if (const auto bad = control_in(path))
    return refused("file path", path,
                   fmt::format("expected no control characters, got 0x{:02x}", static_cast<std::uint32_t>(*bad)));
  auto components = split(path, '/');
  if (components.size() > limits::kPathComponentsMax)
    return refused(
        "file path", path,
        fmt::format("expected at most {} components, got {}", limits::kPathComponentsMax, components.size()));
  for (std::string_view component : components) {
    std::string fault = path_component_fault(component);
    if (!fault.empty()) return refused("file path", path, fault);
  }
  return {};
}

}  // namespace weft
