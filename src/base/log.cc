#include "base/log.h"

#include <fmt/ranges.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kLineBytesMax = 16U << 10U;

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance =
      std::make_shared<spdlog::logger>("weft", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  return instance;
}

constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%e %n[%P] %l: %v";

// The file of the log. Its sink can be replaced while other threads write lines.
struct LogFile {
  std::string path;  // empty: stderr
  std::shared_ptr<spdlog::sinks::dist_sink_mt> lines;
};

LogFile& log_file() {
  static LogFile file;
  return file;
}

std::atomic<bool> reopens = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // for handlers of signals

Result<spdlog::sink_ptr> open_sink(const std::string& path) {
  spdlog::sink_ptr sink;
  try {
    if (path.empty())
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    else
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
  } catch (const spdlog::spdlog_ex& error) {
    return Error{Errc::io, fmt::format("log file {}: {}", path, error.what())};
  }
  sink->set_pattern(kPattern);
  return sink;
}

// Returns the reason if the file cannot be opened.
Status reopen_now() {
  const LogFile& file = log_file();
  if (file.path.empty() || !file.lines) return {};
  WEFT_TRY(spdlog::sink_ptr sink, open_sink(file.path));
  file.lines->set_sinks({std::move(sink)});
  return {};
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

// The level of lines without a category, and of each category.
struct Levels {
  LogLevel general = LogLevel::info;
  std::array<std::optional<LogLevel>, kLogCategoryNames.size()> own{};
};

std::atomic<LogLevel> general_level = LogLevel::info;

std::optional<std::size_t> find(std::span<const char* const> names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return {};
  return static_cast<std::size_t>(found - names.begin());
}

Error unknown_level(std::string_view expected, std::string_view got) {
  return {Errc::invalid, fmt::format("log level: expected {}, got {}", expected, printable(got))};
}

Status set_own(Levels& levels, std::string_view name, std::string_view value) {
  const auto category = find(kLogCategoryNames, name);
  if (!category) return unknown_level(fmt::format("one of {}", fmt::join(kLogCategoryNames, ", ")), name);
  const auto level = find(kLogLevelNames, value);
  if (!level || *level > static_cast<std::size_t>(LogLevel::info))
    return unknown_level(fmt::format("{}=debug or {}=info", name, name), value);
  levels.own[*category] = static_cast<LogLevel>(*level);
  return {};
}

Result<Levels> parse(std::string_view text) {
  Levels levels;
  for (const std::string_view part : split(text, ',')) {
    if (const auto equals = part.find('='); equals != std::string_view::npos) {
      WEFT_CHECK(set_own(levels, part.substr(0, equals), part.substr(equals + 1)));
      continue;
    }
    const auto level = find(kLogLevelNames, part);
    if (!level) return unknown_level("debug, info, warning or error", part);
    levels.general = static_cast<LogLevel>(*level);
  }
  return levels;
}

thread_local const LogWork* work_of_thread = nullptr;

// True if each line of the category has a search, request or draft in its text.
bool names_its_work(LogCategory category) {
  return category == LogCategory::peers || category == LogCategory::mount || category == LogCategory::drafts;
}

void apply(const Levels& levels) {
  general_level = levels.general;
  for (std::size_t i = 0; i < levels.own.size(); ++i)
    log_internal::debugs[i] = levels.own[i].value_or(levels.general) == LogLevel::debug;
}

}  // namespace

std::array<std::atomic<bool>, kLogCategoryNames.size()> log_internal::debugs{};

void log_line(LogLevel level, std::string_view line) {
  if (level != LogLevel::debug && level < general_level.load(std::memory_order_relaxed)) return;
  if (reopens.load(std::memory_order_relaxed) && reopens.exchange(false))
    if (const Status reopened = reopen_now(); !reopened.ok()) log_line(LogLevel::error, reopened.error().message);
  const std::string shown = printable(line, kLineBytesMax);
  logger()->log(spdlog_level(level), spdlog::string_view_t(shown.data(), shown.size()));
}

LogWork::LogWork(std::string_view kind, std::uint64_t number)
    : kind_(kind), number_(number), outer_(std::exchange(work_of_thread, this)) {}

LogWork::~LogWork() {
  work_of_thread = outer_;
}

std::string log_work() {
  return work_of_thread == nullptr ? "" : fmt::format("{} {}", work_of_thread->kind_, work_of_thread->number_);
}

void log_debug_line(LogCategory category, std::string_view line) {
  const char* const name = kLogCategoryNames[static_cast<std::size_t>(category)];
  const std::string work = names_its_work(category) ? "" : log_work();
  log_line(LogLevel::debug,
           work.empty() ? fmt::format("{}: {}", name, line) : fmt::format("{}: {}: {}", name, work, line));
}

Status check_log_levels(std::string_view levels) {
  WEFT_CHECK(parse(levels));
  return {};
}

Status log_set_levels(std::string_view levels) {
  WEFT_TRY(const Levels parsed, parse(levels));
  apply(parsed);
  return {};
}

Status log_setup(const std::string& path, std::string_view levels, std::string_view program) {
  WEFT_CHECK(log_set_levels(levels));
  WEFT_TRY(spdlog::sink_ptr sink, open_sink(path));
  auto lines = std::make_shared<spdlog::sinks::dist_sink_mt>();
  lines->set_sinks({std::move(sink)});
  auto made = std::make_shared<spdlog::logger>(std::string(program), lines);
  made->set_level(spdlog::level::debug);
  made->flush_on(spdlog::level::debug);
  made->set_pattern(kPattern);
  logger() = std::move(made);
  log_file() = {path, std::move(lines)};
  return {};
}

void log_reopen() {
  reopens.store(true, std::memory_order_relaxed);
}

void log_flush() {
  logger()->flush();
}

bool RareLines::due(const std::string& subject, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(quiet_until_, [now](const auto& one) { return one.second <= now; });
  return quiet_until_.size() < kSubjectsMax && quiet_until_.try_emplace(subject, now + kPause).second;
}

}  // namespace weft
