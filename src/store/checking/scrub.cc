// weft scrub: reads the packs and assembled files of a store in small runs, as fsck does, at a bounded rate.
#include "weft/store/scrub.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "catalog/scrub_state.h"
#include "os/sys.h"
#include "packs/assembled.h"
#include "packs/verify.h"
#include "store/checking/checking.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

// Sleeps so that the average rate since construction stays within the limit.
class Pace {
 public:
  explicit Pace(std::uint64_t bytes_per_s) : bytes_per_s_(std::max<std::uint64_t>(bytes_per_s, 1)) {}

  void have_read(std::uint64_t bytes) {
    read_ += bytes;
    const std::chrono::duration<double> takes(static_cast<double>(read_) / static_cast<double>(bytes_per_s_));
    std::this_thread::sleep_until(begun_ + std::chrono::duration_cast<Clock::duration>(takes));
  }
  Clock::duration age() const { return Clock::now() - begun_; }

 private:
  const std::uint64_t bytes_per_s_;
  const Clock::time_point begun_ = Clock::now();
  std::uint64_t read_ = 0;
};

void add(ScrubPass& pass, const FsckReport& found) {
  pass.packs += found.packs;
  pass.blobs += found.blobs;
  pass.bytes += found.bytes_read;
  pass.problems += found.problems.size();
  for (const std::string& line : found.problems)
    if (pass.lines.size() < kScrubLinesMax) pass.lines.push_back(line);
}

}  // namespace

Result<ScrubReport> scrub(StoreParts& parts, const ScrubOptions& options, Progress& progress) {
  ScrubReport report;
  auto before = read_scrub_state(parts.path);
  if (before.ok()) report.state = *std::move(before);  // if the state file is damaged, a new pass begins
  if (!report.state.now) report.state.now = ScrubPass{now_ns(), 0, 0, 0, 0, 0, {}};
  Pace rate(options.bytes_per_s);
  VerifyPace pace;
  pace.from = report.state.next;
  pace.have_read = [&rate](std::uint64_t bytes) { rate.have_read(bytes); };
  bool any = false;  // each run reads at least one blob, so that the pass makes progress
  pace.is_over = [&]() {
    const bool over = progress.cancelled() || (any && options.run_for && rate.age() >= *options.run_for);
    any = true;
    return over;
  };
  FsckReport found;
  if (!report.state.assembled) {
    WEFT_CHECK(verify_packs(parts.packs, parts.blobs, true, progress, found, &pace));
    const Status searched = pace.over ? Status{} : find_missing(parts, found);
    if (!searched.ok() && searched.error().code != Errc::corrupt) return searched.error();
    if (!searched.ok()) found.problems.push_back(searched.error().message);
    report.state.assembled = !pace.over;
    if (!pace.over) pace.from = {};
  }
  if (!pace.over) {
    AssembledPacks assembled(parts.path);
    const bool clean = found.clean() && report.state.now->problems == 0;
    WEFT_CHECK(verify_assembled(assembled, true, damaged_files_after(clean), progress, found, &pace));
  }
  add(*report.state.now, found);
  report.bytes = found.bytes_read;
  report.problems = found.problems.size();
  report.lines = std::move(found.problems);
  report.damaged = std::move(found.damaged);
  report.state.next = pace.from;
  report.complete = !pace.over;
  if (report.complete) {
    report.state.now->ended_ns = now_ns();
    ScrubState done;  // the next pass starts at the first pack
    done.last = std::move(report.state.now);
    report.state = std::move(done);
  }
  const Status recorded = write_scrub_state(parts.path, report.state);
  if (!recorded.ok()) report.not_recorded = recorded.error().message;
  return report;
}

}  // namespace weft
