// The figures of a mount for the metrics of its node (daemon_api/mount_reports.cc). The server of the mount reports
// them to weftd, which collects them in monitor/mount_table.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weft {

// The longest time of each class of requests, in nanoseconds: 100 µs to 10 s. A last class has the longer ones.
inline constexpr std::array<std::uint64_t, 6> kLatencyBoundsNs{100'000,     1'000'000,     10'000'000,
                                                               100'000'000, 1'000'000'000, 10'000'000'000};

struct MountRequests {
  std::string kind = {};                                          // such as "read"
  std::uint64_t nanoseconds = 0;                                  // all of them together
  std::array<std::uint64_t, kLatencyBoundsNs.size() + 1> took{};  // their number, by class
  bool operator==(const MountRequests&) const = default;
};

struct MountFigures {
  std::string id = {};         // unique among mounts; the same for all servers of a mount
  std::string directory = {};  // the mount point
  bool passthrough = false;
  std::uint64_t passthrough_refused = 0;     // opens that could have been passthrough
  std::uint64_t restarts = 0;                // servers that were lost
  std::vector<MountRequests> requests = {};  // answered ones
  bool operator==(const MountFigures&) const = default;
};

class MountReports {
 public:
  virtual ~MountReports() = default;
  // Returns at once. The report is lost if no weftd answers.
  virtual void report(const MountFigures& figures) = 0;
};

// Reports to the weftd of the store at `store_path`.
std::unique_ptr<MountReports> make_mount_reports(const std::string& store_path);

}  // namespace weft
