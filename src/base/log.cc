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

#include "base/json.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kLineBytesMax = 16U << 10U;

// Where lines go, and how they look.
struct LogOutput {
  std::shared_ptr<spdlog::logger> logger;
  LogStyle style = {};
};

LogOutput& output() {
  static LogOutput instance{
      std::make_shared<spdlog::logger>("weft", std::make_shared<spdlog::sinks::stderr_sink_mt>())};
  return instance;
}

// The output of audit lines. Without a logger there are none.
LogOutput& audit_output() {
  static LogOutput instance;
  return instance;
}

constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%e %n[%P] %l: %v";
// The text of a line in this format is the rest of the members.
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","program":"%n","pid":%P,"level":"%l",%v})";

// The file of the log. Its sink can be replaced while other threads write lines.
struct LogFile {
  std::string path;  // empty: stderr
  LogFormat format = LogFormat::text;
  std::shared_ptr<spdlog::sinks::dist_sink_mt> lines;
};

LogFile& log_file() {
  static LogFile file;
  return file;
}

std::atomic<bool> reopens = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // for handlers of signals

Result<spdlog::sink_ptr> open_sink(const std::string& path, LogFormat format) {
  spdlog::sink_ptr sink;
  try {
    if (path.empty())
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    else
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
  } catch (const spdlog::spdlog_ex& error) {
    return Error{Errc::io, fmt::format("log file {}: {}", path, error.what())};
  }
  sink->set_pattern(format == LogFormat::json ? kJsonPattern : kPattern);
  return sink;
}

// Returns the reason if the file cannot be opened.
Status reopen_now() {
  const LogFile& file = log_file();
  if (file.path.empty() || !file.lines) return {};
  WEFT_TRY(spdlog::sink_ptr sink, open_sink(file.path, file.format));
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

// A line, before it has a format.
struct LogLine {
  std::string_view category = {};  // "": none
  std::string_view work = {};
  std::string_view message = {};
  std::span<const std::pair<std::string_view, std::string>> fields = {};
};

std::string quoted_if_needed(const std::string& value) {
  if (!value.empty() && value.find_first_of(" \"=\\") == std::string::npos) return value;
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string text_of(const LogLine& line) {
  std::string text;
  for (const std::string_view part : {line.category, line.work})
    if (!part.empty()) text += fmt::format("{}: ", part);
  text += line.message;
  for (const auto& [name, value] : line.fields)
    text += fmt::format("{}{}={}", text.ends_with(' ') ? "" : " ", name, quoted_if_needed(value));
  return printable(text, kLineBytesMax);
}

// Returns the members of the object behind those of the pattern, without braces.
std::string json_of(const LogLine& line, const std::string& node) {
  JsonWriter json;
  json.begin_object();
  const auto add = [&json](std::string_view name, std::string_view value) {
    if (!value.empty()) json.member(name, printable(value, kLineBytesMax));
  };
  add("node", node);
  add("category", line.category);
  add("work", line.work);
  add("message", line.message);
  for (const auto& [name, value] : line.fields) json.member(name, printable(value, kLineBytesMax));
  const std::string text = json.end_object().take();
  return text.substr(1, text.size() - 2);
}

void write(const LogOutput& to, LogLevel level, const LogLine& line) {
  if (reopens.load(std::memory_order_relaxed) && reopens.exchange(false))
    if (const Status reopened = reopen_now(); !reopened.ok()) log_line(LogLevel::error, reopened.error().message);
  const std::string shown = to.style.format == LogFormat::json ? json_of(line, to.style.node) : text_of(line);
  to.logger->log(spdlog_level(level), spdlog::string_view_t(shown.data(), shown.size()));
}

// Returns a logger without a level of its own.
std::shared_ptr<spdlog::logger> make_logger(std::string_view program, spdlog::sink_ptr sink) {
  auto made = std::make_shared<spdlog::logger>(std::string(program), std::move(sink));
  made->set_level(spdlog::level::debug);
  made->flush_on(spdlog::level::debug);
  return made;
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
  write(output(), level, {.message = line});
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
  write(output(), LogLevel::debug, {.category = name, .work = work, .message = line});
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

Status log_setup(const std::string& path, std::string_view levels, std::string_view program, LogStyle style) {
  WEFT_CHECK(log_set_levels(levels));
  WEFT_TRY(spdlog::sink_ptr sink, open_sink(path, style.format));
  auto lines = std::make_shared<spdlog::sinks::dist_sink_mt>();
  lines->set_sinks({std::move(sink)});
  log_file() = {path, style.format, lines};
  output() = audit_output() = {make_logger(program, std::move(lines)), std::move(style)};
  return {};
}

Status audit_setup(const std::string& path, std::string_view program, LogStyle style) {
  WEFT_TRY(spdlog::sink_ptr sink, open_sink(path, style.format));
  audit_output() = {make_logger(program, std::move(sink)), std::move(style)};
  return {};
}

// The node is a field of a line of text, and a member of each object of JSON.
void log_audit(const LogFields& fields) {
  const LogOutput& to = audit_output();
  if (!to.logger) return;
  LogFields all = fields;
  if (to.style.format == LogFormat::text && !to.style.node.empty()) all.emplace_back("node", to.style.node);
  write(to, LogLevel::info, {.category = "audit", .fields = all});
}

void log_reopen() {
  reopens.store(true, std::memory_order_relaxed);
}

void log_flush() {
  output().logger->flush();
}

bool RareLines::due(const std::string& subject, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(quiet_until_, [now](const auto& one) { return one.second <= now; });
  return quiet_until_.size() < kSubjectsMax && quiet_until_.try_emplace(subject, now + kPause).second;
}

}  // namespace weft
