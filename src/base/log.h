// Messages of a long-running program to its administrator: stderr or a file, one line each with time and level. The
// command line's own output does not go here. The only user of spdlog (in the .cc).
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "weft/result.h"

namespace weft {

enum class LogLevel : unsigned char { debug, info, warning, error };

// Writes one line: line ends and other characters that control a terminal are escaped by printable() (base/text.h).
void log_line(LogLevel level, std::string_view line);
// `path` empty: stderr. Levels: "debug", "info", "warning", "error".
Status log_setup(const std::string& path, std::string_view level, std::string_view program);
// Changes the level; any thread.
Status log_set_level(std::string_view level);
void log_flush();

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace weft
