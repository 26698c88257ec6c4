#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kLineBytesMax = 16U << 10U;

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance =
      std::make_shared<spdlog::logger>("weft", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  return instance;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

Result<spdlog::level::level_enum> level_named(std::string_view level) {
  if (level == "debug") return spdlog::level::debug;
  if (level == "info") return spdlog::level::info;
  if (level == "warning") return spdlog::level::warn;
  if (level == "error") return spdlog::level::err;
  return Error{Errc::invalid, fmt::format("log level: expected debug, info, warning or error, got {}", level)};
}

}  // namespace

void log_line(LogLevel level, std::string_view line) {
  const std::string shown = printable(line, kLineBytesMax);
  logger()->log(spdlog_level(level), spdlog::string_view_t(shown.data(), shown.size()));
}

Status log_set_level(std::string_view level) {
  WEFT_TRY(const auto threshold, level_named(level));
  logger()->set_level(threshold);
  return {};
}

Status log_setup(const std::string& path, std::string_view level, std::string_view program) {
  WEFT_TRY(const auto threshold, level_named(level));
  std::shared_ptr<spdlog::sinks::sink> sink;
  try {
    if (path.empty())
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    else
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
  } catch (const spdlog::spdlog_ex& error) {
    return Error{Errc::io, fmt::format("log file {}: {}", path, error.what())};
  }
  auto made = std::make_shared<spdlog::logger>(std::string(program), std::move(sink));
  made->set_level(threshold);
  made->flush_on(spdlog::level::info);
  made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %n[%P] %l: %v");
  logger() = std::move(made);
  return {};
}

void log_flush() {
  logger()->flush();
}

}  // namespace weft
