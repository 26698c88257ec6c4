// Many nodes fetch one version, by the daemon's rule in virtual time (src/swarm, swarm_world.h). Prints a line: seconds
// of the last node ÷ seconds of one node alone, and what else the run says.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include "swarm_world.h"

namespace weft::sim {
namespace {

double at_share(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

int run(const WorldOptions& options) {
  WorldOptions one = options;
  one.nodes = 1;
  one.spread = one.slow = one.deaths = 0;
  one.log = nullptr;
  const double alone = World(one).run().last_end;
  const auto begun = std::chrono::steady_clock::now();
  const WorldResult result = World(options).run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const double per_unit = static_cast<double>(std::max<std::uint64_t>(1, result.units));
  fmt::print(
      "nodes {} alone {:.3f} s; last {:.3f} median {:.3f} (of one alone); slow {:.3f}; first unit {:.3f} (last "
      "{:.3f}); "
      "copies {:.3f}; core {:.2f}; messages a unit {:.1f}; declined {:.2f}; silent wants {}; slow reads {}; "
      "unread uploads {}; left {}; from holders {:.3f}; unfinished {}; digest {:016x}; {} events in {:.1f} s, {} MiB\n",
      options.nodes, alone, at_share(result.seconds, 1) / alone, at_share(result.seconds, 0.5) / alone,
      at_share(result.slow_seconds, 1) / alone, at_share(result.first_unit, 0.5) / alone,
      at_share(result.first_unit, 1) / alone,
      static_cast<double>(result.source_bytes) / static_cast<double>(options.size),
      static_cast<double>(result.core_bytes) / static_cast<double>(options.size),
      static_cast<double>(result.messages) / per_unit, static_cast<double>(result.declined) / per_unit,
      result.silent_wants, result.slow_reads, result.unread_uploads, result.left,
      static_cast<double>(result.from_holders) / per_unit, result.unfinished, result.digest, result.events,
      took.count(), used.ru_maxrss >> 10);
  return result.unfinished == 0 ? 0 : 1;
}

}  // namespace
}  // namespace weft::sim

int main(int argc, char** argv) {
  weft::sim::WorldOptions options;
  double mbit = 10'000, delay_us = 50;
  bool log = false, no_readers = false;
  CLI::App app{"Simulates nodes that fetch one version at once."};
  app.add_option("--nodes", options.nodes)->capture_default_str();
  app.add_option("--size", options.size, "Bytes")->transform(CLI::AsSizeValue(false))->capture_default_str();
  app.add_option("--link", mbit, "Mbit/s of each node, each way")->capture_default_str();
  app.add_option("--delay", delay_us, "Microseconds, one way")->capture_default_str();
  app.add_option("--spread", options.spread, "Seconds over which the nodes begin");
  app.add_option("--slow", options.slow, "Share of the nodes with a quarter of the link");
  app.add_option("--deaths", options.deaths, "Share of the nodes that die");
  app.add_option("--silent", options.silent,
                 "Seconds until the other nodes know of a death; calls to the dead node and reads of it end before");
  app.add_option("--racks", options.network.racks)->capture_default_str();
  app.add_option("--core", options.network.core_divisor, "Between racks: the links of a rack, divided by this");
  app.add_flag("--location", options.says_rack, "Each node says its rack");
  app.add_flag("--no-readers", no_readers, "No reader waits for the units in order");
  app.add_option("--piece", options.piece_max, "The largest piece of a read, bytes")->capture_default_str();
  app.add_option("--in-flight", options.in_flight, "Pieces of one unit on the way")->capture_default_str();
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_flag("--log", log, "A line for each unit");
  CLI11_PARSE(app, argc, argv);
  options.network.bits_per_second = static_cast<std::uint64_t>(mbit * 1e6);
  options.network.delay = static_cast<std::int64_t>(delay_us * 1e3);
  options.readers = !no_readers;
  if (log) options.log = stdout;
  return weft::sim::run(options);
}
