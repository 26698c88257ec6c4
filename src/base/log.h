// Messages for whoever runs a long-lived program: stderr or a file, one line each with time and level. The command
// line's own output does not go here. Only user of spdlog (in the .cc).
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "weft/result.h"

namespace weft {

enum class LogLevel : unsigned char { debug, info, warning, error };

// Stays one line: line ends and what else steers a terminal are written as printable() does (base/text.h).
void log_line(LogLevel level, std::string_view line);
// `path` empty: stderr. Levels: "debug", "info", "warning", "error".
Status log_setup(const std::string& path, std::string_view level, std::string_view program);
// Another level from now on; any thread.
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
