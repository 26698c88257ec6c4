#include "daemon/figures.h"

#include <fmt/core.h>

#include "monitor/process_usage.h"

namespace weft {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  return fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

std::string line(std::string_view name, const Figures::Sample& sample) {
  std::string labels;
  for (const auto& [key, value] : sample.labels)
    labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", key, escaped(value));
  return labels.empty() ? fmt::format("{} {}\n", name, sample.value)
                        : fmt::format("{}{{{}}} {}\n", name, labels, sample.value);
}

}  // namespace

void Figures::add(std::string name, std::string type, std::string help, Read read) {
  families_.push_back({std::move(name), std::move(type), std::move(help), std::move(read)});
}

void Figures::add(std::string name, std::string type, std::string help, std::function<double()> read) {
  add(std::move(name), std::move(type), std::move(help), Read([read = std::move(read)] {
        return std::vector<Sample>{{{}, read()}};
      }));
}

void Figures::request_ended(std::string_view name, std::chrono::nanoseconds took, bool failed) {
  const double seconds = std::chrono::duration<double>(took).count();
  const std::lock_guard lock(mutex_);
  Requests& requests = requests_[std::string(name)];
  ++requests.count;
  requests.failed += failed ? 1 : 0;
  requests.seconds += seconds;
  for (std::size_t i = 0; i < kBuckets.size(); ++i) requests.within[i] += seconds <= kBuckets[i] ? 1 : 0;
}

std::uint64_t Figures::requests() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t all = 0;
  for (const auto& [name, requests] : requests_) all += requests.count;
  return all;
}

std::string Figures::text() const {
  std::string text;
  for (const Family& family : families_) {
    text += head(family.name, family.type, family.help);
    for (const Sample& sample : family.read()) text += line(family.name + sample.suffix, sample);
  }
  const std::lock_guard lock(mutex_);
  text += head("weft_request_duration_seconds", "histogram", "Duration of requests on the control socket.");
  for (const auto& [name, requests] : requests_) {
    for (std::size_t i = 0; i < kBuckets.size(); ++i)
      text += line("weft_request_duration_seconds_bucket", {{{"request", name}, {"le", fmt::format("{}", kBuckets[i])}},
                                                            static_cast<double>(requests.within[i])});
    const auto count = static_cast<double>(requests.count);
    text += line("weft_request_duration_seconds_bucket", {{{"request", name}, {"le", "+Inf"}}, count});
    text += line("weft_request_duration_seconds_sum", {{{"request", name}}, requests.seconds});
    text += line("weft_request_duration_seconds_count", {{{"request", name}}, count});
  }
  text += head("weft_requests_failed_total", "counter", "Requests of the control socket that failed.");
  for (const auto& [name, requests] : requests_)
    text += line("weft_requests_failed_total", {{{"request", name}}, static_cast<double>(requests.failed)});
  return text;
}

void add_process_figures(Figures& figures, const std::string& commit) {
  figures.add("weft_build_info", "gauge", "1, with the version and the commit of the program.", Figures::Read([commit] {
                return std::vector<Figures::Sample>{{{{"version", WEFT_VERSION}, {"commit", commit}}, 1}};
              }));
  const auto add = [&figures](const char* name, const char* type, const char* help, auto member) {
    figures.add(name, type, help, Figures::Read([member] {
                  std::vector<Figures::Sample> samples;
                  if (const auto usage = process_usage(); usage.ok())
                    samples.push_back({{}, static_cast<double>((*usage).*member)});
                  return samples;
                }));
  };
  add("process_cpu_seconds_total", "counter", "CPU time of the daemon.", &ProcessUsage::cpu_seconds);
  add("process_start_time_seconds", "gauge", "Start of the daemon, in seconds since 1970.",
      &ProcessUsage::start_seconds);
  add("process_virtual_memory_bytes", "gauge", "Address space of the daemon.", &ProcessUsage::virtual_bytes);
  add("process_resident_memory_bytes", "gauge", "Memory of the daemon.", &ProcessUsage::resident_bytes);
  add("process_open_fds", "gauge", "Open file descriptors of the daemon.", &ProcessUsage::open_fds);
  add("process_max_fds", "gauge", "Limit of open file descriptors of the daemon.", &ProcessUsage::max_fds);
}

void add_pace_figures(Figures& figures, const PaceGate& gate) {
  using Labels = std::vector<std::pair<std::string, std::string>>;
  const auto of_ends = [&gate](auto member) {
    return Figures::Read([&gate, member] {
      const PaceFigures now = gate.figures();
      std::vector<Figures::Sample> samples;
      for (std::size_t traffic = 0; traffic < kTrafficNames.size(); ++traffic)
        for (std::size_t end = 0; end < kPaceEndNames.size(); ++end)
          samples.push_back(
              {Labels{{"class", std::string(kTrafficNames.at(traffic))}, {"end", std::string(kPaceEndNames.at(end))}},
               static_cast<double>((now.*member).at(traffic).at(end))});
      return samples;
    });
  };
  figures.add("weft_traffic_bytes_total", "counter",
              "Bytes that this node read from peers and the origin, or wrote to the origin, by class of traffic.",
              of_ends(&PaceFigures::bytes));
  figures.add("weft_traffic_pieces_total", "counter", "The pieces in which these bytes went.",
              of_ends(&PaceFigures::pieces));
  figures.add("weft_traffic_held_seconds_total", "counter",
              "Time that pieces waited because of a rate, by class of traffic and by the rate.", Figures::Read([&gate] {
                const PaceFigures now = gate.figures();
                std::vector<Figures::Sample> samples;
                for (std::size_t traffic = 0; traffic < kTrafficNames.size(); ++traffic)
                  for (std::size_t rate = 0; rate < kPaceRateNames.size(); ++rate)
                    samples.push_back({Labels{{"class", std::string(kTrafficNames.at(traffic))},
                                              {"rate", std::string(kPaceRateNames.at(rate))}},
                                       now.waited_s.at(traffic).at(rate)});
                return samples;
              }));
}

HttpReply metrics_reply(const Figures& figures, const HttpRequest& request) {
  if (request.path.text != "/metrics") return http_text(404, "/metrics is here\n");
  return http_text(200, figures.text(), "text/plain; version=0.0.4; charset=utf-8");
}

}  // namespace weft
