#include "cli/shared/progress_bar.h"

#include <doctest/doctest.h>

#include <sstream>
#include <thread>

using weft::progress_line;
using weft::ProgressState;

TEST_CASE("a line says share, bytes, rate, time left and what is being done") {
  ProgressState state{"reading model.safetensors", 512U << 20U, 2048U << 20U, 4.0};
  std::string line = progress_line(state, 120);
  CHECK(line.starts_with(" 25% [========"));
  CHECK(line.find("512.0 MiB of 2.0 GiB  128.0 MiB/s  0:12 left  reading model.safetensors") != std::string::npos);
}

TEST_CASE("a line fits any terminal") {
  ProgressState state{"lesen größerer Gewichte ☃☃☃☃☃☃☃☃☃☃☃", 3U << 30U, UINT64_MAX, 10'000.0};
  for (unsigned columns = 0; columns < 200; ++columns) {
    std::string line = progress_line(state, columns);
    auto shown = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
    CHECK(shown <= std::max(columns, 1U) - (columns > 0 ? 1 : 0));
  }
}

TEST_CASE("without a total there is no share and no time left") {
  std::string line = progress_line({"", 1024, 0, 2.0}, 80);
  CHECK(line == "1.0 KiB  512 B/s");
}

TEST_CASE("progress beyond the total shows 100 %") {
  CHECK(progress_line({"", 30, 20, 0.0}, 80).starts_with("100% ["));
}

TEST_CASE("a phase with control characters does not steer the terminal") {
  CHECK(progress_line({"\x1b[2J", 1, 2, 0.0}, 80).find('\x1b') == std::string::npos);
}

TEST_CASE("a bar is redrawn seldom, from any thread, and taken away at the end") {
  std::ostringstream out;
  std::atomic<int> interrupt = 0;
  {
    weft::ProgressBar bar(
        &out, [] { return 80U; }, interrupt);
    bar.total(100'000);
    std::thread other([&] {
      for (int i = 0; i < 50'000; ++i) bar.advance(1);
    });
    for (int i = 0; i < 50'000; ++i) bar.advance(1);
    other.join();
    CHECK_FALSE(bar.cancelled());
    interrupt = 2;
    CHECK(bar.cancelled());
  }
  std::string text = out.str();
  CHECK(std::count(text.begin(), text.end(), '\r') < 1'000);
  CHECK(text.ends_with("\r\x1b[K"));
}

TEST_CASE("without a terminal the bar shows nothing") {
  std::atomic<int> interrupt = 0;
  weft::ProgressBar bar(
      nullptr, [] { return 80U; }, interrupt);
  bar.total(10);
  bar.phase("x");
  bar.advance(10);
}
