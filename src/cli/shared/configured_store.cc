#include "cli/shared/configured_store.h"

#include <fmt/core.h>

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "drafts/old_drafts.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kConfigFileMax = 1U << 20U;           // as weftd
constexpr std::uint64_t kSecondsMax = 100ULL * 365 * 86'400;  // as weftd
constexpr std::string_view kBlank = " \t\r";
constexpr std::string_view kQuotes = "\"'";

std::string_view without(std::string_view text, std::string_view outer) {
  const auto first = text.find_first_not_of(outer);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(outer) - first + 1);
}

}  // namespace

// Reads up to the first table, because top-level keys precede all tables.
std::optional<std::string> configured_value(const std::string& config_file, std::string_view key) {
  const auto bytes = read_file(config_file, kConfigFileMax);
  if (!bytes.ok()) return {};
  for (const std::string_view raw : split({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, '\n')) {
    const std::string_view line = without(raw, kBlank);
    if (line.starts_with('[')) return {};
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || without(without(line.substr(0, equals), kBlank), kQuotes) != key) continue;
    std::string_view value = without(line.substr(equals + 1), kBlank);
    if (!value.empty() && kQuotes.find(value[0]) != std::string_view::npos)
      value = value.substr(1, value.find(value[0], 1) - 1);
    return std::string(value);
  }
  return {};
}

std::optional<std::string> configured_for(const std::string& config_file, const std::string& store_path,
                                          std::string_view key) {
  const auto store = configured_value(config_file, "store");
  std::error_code none;
  if (!store || !std::filesystem::equivalent(*store, store_path, none)) return {};
  return configured_value(config_file, key);
}

Result<std::chrono::seconds> configured_drafts_keep(const std::string& config_file, const std::string& store_path) {
  const auto said = configured_for(config_file, store_path, "drafts_keep");
  if (!said) return kDraftsKept;
  if (const auto seconds = parse_time(*said, kSecondsMax)) return std::chrono::seconds(*seconds);
  return Error{Errc::invalid,
               fmt::format("{}: drafts_keep: expected a time, such as 7d, got \"{}\"", config_file, printable(*said))};
}

}  // namespace weft
