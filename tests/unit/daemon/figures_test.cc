#include "daemon/figures.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <variant>
#include <vector>

namespace weft {
namespace {

using namespace std::chrono_literals;

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST_CASE("requests are a histogram by name") {
  Figures figures;
  figures.request_ended("import", 50ms, false);
  figures.request_ended("import", 2s, true);
  figures.request_ended("tag", 0ms, false);
  const std::string text = figures.text();
  CHECK(has_line(text, "# TYPE weft_request_duration_seconds histogram"));
  CHECK(has_line(text, R"(weft_request_duration_seconds_bucket{request="import",le="0.01"} 0)"));
  CHECK(has_line(text, R"(weft_request_duration_seconds_bucket{request="import",le="0.1"} 1)"));
  CHECK(has_line(text, R"(weft_request_duration_seconds_bucket{request="import",le="10"} 2)"));
  CHECK(has_line(text, R"(weft_request_duration_seconds_bucket{request="import",le="+Inf"} 2)"));
  CHECK(has_line(text, R"(weft_request_duration_seconds_sum{request="import"} 2.05)"));
  CHECK(has_line(text, R"(weft_requests_failed_total{request="import"} 1)"));
  CHECK(has_line(text, R"(weft_requests_failed_total{request="tag"} 0)"));
  CHECK(figures.requests() == 3);
}

TEST_CASE("figures are read at each look, labels are escaped") {
  Figures figures;
  double value = 1;
  figures.add("a", "gauge", "What it is.", [&] { return value; });
  figures.add("b", "counter", "Another.", Figures::Read([] {
                return std::vector<Figures::Sample>{{{{"from", "x\"\\\ny"}}, 2.5}};
              }));
  CHECK(has_line(figures.text(), "a 1"));
  value = 2;
  CHECK(has_line(figures.text(), "a 2"));
  CHECK(has_line(figures.text(), R"(b{from="x\"\\ y"} 2.5)"));
  CHECK(has_line(figures.text(), "# HELP a What it is."));
}

TEST_CASE("the process and its build are among the metrics") {
  Figures figures;
  add_process_figures(figures, "0123456789ab");
  const std::string text = figures.text();
  CHECK(has_line(text, "weft_build_info{version=\"" WEFT_VERSION "\",commit=\"0123456789ab\"} 1"));
  for (const char* name : {"process_cpu_seconds_total", "process_start_time_seconds", "process_virtual_memory_bytes",
                           "process_resident_memory_bytes", "process_open_fds", "process_max_fds"})
    CHECK(text.find("\n" + std::string(name) + " ") != std::string::npos);
}

TEST_CASE("the metrics are one page of the HTTP server") {
  Figures figures;
  figures.add("a", "gauge", "What it is.", [] { return 1.0; });
  HttpRequest request;
  request.path.text = "/metrics";
  const HttpReply page = metrics_reply(figures, request);
  CHECK(page.status == 200);
  CHECK(page.fields == HttpFields{{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}});
  CHECK(has_line(std::get<std::string>(page.body), "a 1"));
  for (const char* path : {"/", "/metricsx", "/metrics/", "/a/metrics"}) {
    request.path.text = path;
    CHECK(metrics_reply(figures, request).status == 404);
  }
}

}  // namespace
}  // namespace weft
