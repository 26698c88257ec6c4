#include "monitor/process_usage.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kProcFileMax = 4U << 20U;  // bytes; /proc/stat has a line for each CPU

constexpr std::uint64_t kKilobyte = 1024;
constexpr double kTicksASecond = 100;    // of times in /proc, on all machines that weft runs on
constexpr std::size_t kStartTicks = 19;  // place of the start in /proc/self/stat after the program's name (proc(5))

// Returns the time from the machine's start to this process's. The name of a program may contain spaces and
// parentheses, so the words begin behind the last parenthesis.
Result<double> start_after_boot() {
  constexpr const char* kPath = "/proc/self/stat";
  WEFT_TRY(const std::string text, read_kernel_file(kPath, kProcFileMax));
  const std::size_t end = text.rfind(") ");
  const auto words = split(std::string_view(text).substr(end == std::string::npos ? text.size() : end + 2), ' ');
  if (words.size() > kStartTicks)
    if (const auto ticks = parse_u64(words[kStartTicks])) return static_cast<double>(*ticks) / kTicksASecond;
  return Error{Errc::invalid, fmt::format("{}: expected the start of the process as word {}, got {} words", kPath,
                                          kStartTicks, words.size())};
}

// Returns the first number of the line that begins with `key`. "unlimited" is the largest number.
Result<std::uint64_t> number_after(const std::string& path, std::string_view key) {
  WEFT_TRY(const std::string text, read_kernel_file(path, kProcFileMax));
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    const std::string_view rest = line.substr(std::min(line.find_first_not_of(" \t", key.size()), line.size()));
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (word == "unlimited") return UINT64_MAX;
    if (const auto number = parse_u64(word)) return *number;
  }
  return Error{Errc::invalid, fmt::format("{}: expected a line with \"{}\" and a number, got none", path, key)};
}

}  // namespace

Result<ProcessUsage> process_usage() {
  constexpr const char* kStatus = "/proc/self/status";
  static const Result<std::uint64_t> boot = number_after("/proc/stat", "btime");
  WEFT_CHECK(boot);
  WEFT_TRY(const double start, start_after_boot());
  WEFT_TRY(const std::uint64_t virtual_kilobytes, number_after(kStatus, "VmSize:"));
  WEFT_TRY(const std::uint64_t resident_kilobytes, number_after(kStatus, "VmRSS:"));
  WEFT_TRY(const std::vector<std::string> fds, list_directory("/proc/self/fd"));
  ProcessUsage usage;
  usage.cpu_seconds = static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
  usage.start_seconds = static_cast<double>(*boot) + start;
  usage.virtual_bytes = virtual_kilobytes * kKilobyte;
  usage.resident_bytes = resident_kilobytes * kKilobyte;
  usage.open_fds = fds.size() - 1;  // without the descriptor of the listing
  WEFT_TRY(usage.max_fds, number_after("/proc/self/limits", "Max open files"));
  return usage;
}

}  // namespace weft
