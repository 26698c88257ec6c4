#include "monitor/process_usage.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kProcFileMax = 4U << 20U;  // bytes; /proc/stat has a line for each CPU

// Places in /proc/self/stat, counted from the first word after the program's name (proc(5)).
constexpr std::size_t kUserTicks = 11, kSystemTicks = 12, kStartTicks = 19, kVirtualBytes = 20, kResidentPages = 21;

// The name of a program may contain spaces and parentheses, so the words begin behind the last parenthesis.
Result<std::vector<std::uint64_t>> stat_numbers() {
  constexpr const char* kPath = "/proc/self/stat";
  WEFT_TRY(const std::string text, read_kernel_file(kPath, kProcFileMax));
  const std::size_t end = text.rfind(") ");
  std::vector<std::uint64_t> numbers;
  if (end != std::string::npos)
    for (const std::string_view word : split(std::string_view(text).substr(end + 2), ' '))
      numbers.push_back(parse_u64(word).value_or(0));
  if (numbers.size() > kResidentPages) return numbers;
  return Error{Errc::invalid, fmt::format("{}: expected {} words, got {}", kPath, kResidentPages + 1, numbers.size())};
}

// Returns the time of the machine's start, in seconds since 1970.
Result<std::uint64_t> boot_seconds() {
  constexpr const char* kPath = "/proc/stat";
  constexpr std::string_view kKey = "btime ";
  WEFT_TRY(const std::string text, read_kernel_file(kPath, kProcFileMax));
  for (const std::string_view line : split(text, '\n'))
    if (line.starts_with(kKey))
      if (const auto seconds = parse_u64(line.substr(kKey.size()))) return *seconds;
  return Error{Errc::invalid, fmt::format("{}: expected a line with btime, got none", kPath)};
}

}  // namespace

Result<ProcessUsage> process_usage() {
  const auto ticks_a_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  WEFT_TRY(const std::vector<std::uint64_t> numbers, stat_numbers());
  static const Result<std::uint64_t> boot = boot_seconds();
  WEFT_CHECK(boot);
  WEFT_TRY(const std::vector<std::string> fds, list_directory("/proc/self/fd"));
  ProcessUsage usage;
  usage.cpu_seconds = static_cast<double>(numbers[kUserTicks] + numbers[kSystemTicks]) / ticks_a_second;
  usage.start_seconds = static_cast<double>(*boot) + static_cast<double>(numbers[kStartTicks]) / ticks_a_second;
  usage.virtual_bytes = numbers[kVirtualBytes];
  usage.resident_bytes = numbers[kResidentPages] * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  usage.open_fds = fds.size() - 1;  // one is the descriptor of the listing
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) usage.max_fds = limit.rlim_cur;
  return usage;
}

}  // namespace weft
