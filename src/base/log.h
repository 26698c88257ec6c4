// Messages of a long-running program to its administrator: stderr or a file, one line each with time and level. The
// command line's own output does not go here. The only user of spdlog (in the .cc).
#pragma once

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/result.h"

namespace weft {

enum class LogLevel : unsigned char { debug, info, warning, error };
// The subject of a debug line, which begins with its name. The line then names its work: the search, request or draft
// in lines of peers, mount and drafts; the LogWork of the thread in the others.
enum class LogCategory : unsigned char { fetch, peers, net, store, gc, registry, mount, drafts };

inline constexpr std::array kLogLevelNames{"debug", "info", "warning", "error"};
inline constexpr std::array kLogCategoryNames{"fetch", "peers", "net", "store", "gc", "registry", "mount", "drafts"};

// Writes one line: line ends and other characters that control a terminal are escaped by printable() (base/text.h).
void log_line(LogLevel level, std::string_view line);

enum class LogFormat : unsigned char { text, json };  // json: each line is a JSON object
inline constexpr std::array kLogFormatNames{"text", "json"};
struct LogStyle {
  LogFormat format = LogFormat::text;
  std::string node = {};  // name of this node, in lines of JSON and of the audit; "": none
};

// Where the lines go, and which ones. `levels`: a level for all lines, "info", and then categories whose debug lines
// are wanted too or not, "info,fetch=debug,peers=debug". A category without a level of its own has the first one.
// `path` empty: stderr.
Status log_setup(const std::string& path, std::string_view levels, std::string_view program, LogStyle style = {});
// Checks `levels` without using it. Errc::invalid.
Status check_log_levels(std::string_view levels);
// Changes the levels; any thread. Errc::invalid: they stay as they were.
Status log_set_levels(std::string_view levels);
void log_flush();
// The next line goes to a new file of the same path, if a program such as logrotate has renamed the file. If it cannot
// be opened, lines go on to the old one. Any thread, and handlers of signals.
void log_reopen();

// The names and values of an audit line. In a line of text they are NAME=VALUE, and values that are empty or
// have a space, a quote, an equals sign or a backslash have quotes. Within quotes a backslash is before each quote and
// backslash.
using LogFields = std::vector<std::pair<std::string_view, std::string>>;
// Writes a line about what a user did, in the category "audit": at all levels, and only after log_setup() or
// audit_setup().
void log_audit(const LogFields& fields);
// For a program without a log: only audit lines go to the file, which is appended to. Errc::io: it cannot be opened.
Status audit_setup(const std::string& path, std::string_view program, LogStyle style = {});

// While this object lives, debug lines of its thread and of fetch, net, store, gc and registry name this work: "gc: gc
// 13: pack …" for the request gc with the number 13. An inner object replaces an outer one. These lines name no work:
// - of a swarm (fetch): it serves all transfers of a version, and its manifest identifies it.
// - of a connection, or of a session for a call that no thread waits for (net): all calls to a peer share them.
// - of a replay and of the daemon's own writes (store): the place in the journal identifies the record.
// - of the command line: a process does one thing, and each line has its number.
class LogWork {
 public:
  // `kind` outlives this.
  LogWork(std::string_view kind, std::uint64_t number);
  ~LogWork();
  LogWork(const LogWork&) = delete;
  LogWork& operator=(const LogWork&) = delete;

 private:
  friend std::string log_work();
  const std::string_view kind_;
  const std::uint64_t number_;
  const LogWork* const outer_;
};

// Returns the work of this thread, as "gc 13"; "" if the thread has none.
std::string log_work();

// Writes a debug line of a category that is on, with the names of the category and of the work.
void log_debug_line(LogCategory category, std::string_view line);

namespace log_internal {
extern std::array<std::atomic<bool>, kLogCategoryNames.size()> debugs;
}

// True if debug lines of the category are written. Guards costly arguments of a debug line.
inline bool log_debugs(LogCategory category) {
  return log_internal::debugs[static_cast<std::size_t>(category)].load(std::memory_order_relaxed);
}

// Costs one load while the category is off: the arguments are not formatted.
template <class... Args>
void log_debug(LogCategory category, fmt::format_string<Args...> format, Args&&... args) {
  if (!log_debugs(category)) return;
  log_debug_line(category, fmt::format(format, std::forward<Args>(args)...));
}
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

// Limits lines that others can cause: one line a minute about each subject, and few subjects. Any thread.
class RareLines {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kPause{1};
  static constexpr std::size_t kSubjectsMax = 16;  // lines a minute

  // True if a line about this subject may be written now. The next one is due after kPause.
  bool due(const std::string& subject, Clock::time_point now = Clock::now());

 private:
  std::mutex mutex_;
  std::map<std::string, Clock::time_point> quiet_until_;  // guarded by mutex_
};

}  // namespace weft
