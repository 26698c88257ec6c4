#include "weft/store/scrub.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/json_lines.h"
#include "cli/shared/table.h"
#include "weft/store/repair.h"

namespace weft {
namespace {

constexpr std::size_t kScrubAffectedMax = 50;
constexpr std::uint64_t kSecondsMax = 366ULL * 86400;

constexpr CommandInfo kScrubInfo = {
    .name = "scrub",
    .summary = "read the whole store slowly and report damaged data",
    .description =
        "Reads and verifies every pack and every assembled file, as `weft fsck` does, at\n"
        "a limited rate and with the lowest I/O priority. If a run ends early, after\n"
        "--for or an interrupt, the next run continues where it stopped. The store\n"
        "records the findings of the last complete scrub, if this user may write there,\n"
        "and `weft status` shows them. `weft fsck --repair` repairs what scrub finds. The\n"
        "exit code is 1 if this run found a problem, and 128 + N if signal N stopped it.\n",
    .examples =
        "weft scrub\n"
        "weft scrub --rate 20M --for 1h\n",
    .json =
        "{complete, problems, bytes, lines: [TEXT], affected: [TEXT], more_affected,\n"
        " recorded}\n",
    .interrupted = "the next scrub continues where this one stopped",
};

// Sets the idle I/O priority of Linux, for which glibc has no function.
void read_when_idle() {
  constexpr int kWhoProcess = 1;
  constexpr int kClassIdle = 3;
  constexpr int kClassShift = 13;
  static_cast<void>(::syscall(SYS_ioprio_set, kWhoProcess, 0, kClassIdle << kClassShift));
}

class ScrubCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.value("--rate", "BYTES", rate_, "read at most so many bytes a second, such as 20M (default: 50M)");
    options.value("--for", "TIME", for_, "stop after this time, such as 90s, 30m or 2h");
  }

  Status check_usage() override {
    if (!rate_.empty()) {
      options_.bytes_per_s = parse_bytes(rate_).value_or(0);
      if (options_.bytes_per_s == 0)
        return Error{Errc::invalid,
                     fmt::format("--rate: expected bytes a second, such as 20M, got {}", printable(rate_))};
    }
    if (!for_.empty()) {
      options_.run_for = std::chrono::seconds(parse_time(for_, kSecondsMax).value_or(0));
      if (options_.run_for->count() == 0)
        return Error{Errc::invalid,
                     fmt::format("--for: expected a time, such as 90s, 30m or 2h, got {}", printable(for_))};
    }
    return {};
  }

  Result<int> run(Context& context) override {
    read_when_idle();
    WEFT_TRY(const auto store, context.open_to_read());
    ScrubReport report;
    {
      ProgressBar bar = context.progress();
      WEFT_TRY(report, store->scrub(options_, bar));
    }
    WEFT_TRY(const AffectedFiles affected, affected_files(*store, report.damaged, kScrubAffectedMax));
    context.json ? print_json(context, report, affected) : print_lines(context, report, affected);
    if (!report.not_recorded.empty()) context.note(fmt::format("not recorded: {}", report.not_recorded));
    if (report.problems != 0)
      context.note(fmt::format("{}: {}", context.store_path(), count_of(report.problems, "problem")));
    if (const int signal = context.environment().interrupt.load(); signal != 0 && !report.complete) return 128 + signal;
    return report.problems == 0 ? kExitDone : kExitFailed;
  }

 private:
  static void print_json(const Context& context, const ScrubReport& report, const AffectedFiles& affected) {
    JsonWriter json;
    json.begin_object().member("complete", report.complete).member("problems", report.problems);
    json.member("bytes", report.bytes);
    write_lines(json, "lines", report.lines);
    std::vector<std::string> files;
    for (const AffectedFile& file : affected.files) files.push_back(file.text());
    write_lines(json, "affected", files);
    json.member("more_affected", affected.more).member("recorded", report.not_recorded.empty()).end_object();
    context.print_json(json);
  }

  static void print_lines(const Context& context, const ScrubReport& report, const AffectedFiles& affected) {
    for (const std::string& line : report.lines) context.print("{}\n", line);
    for (const AffectedFile& file : affected.files) context.print("affected: {}\n", file.text());
    if (affected.more > 0) context.print("affected: {} more\n", count_of(affected.more, "file"));
    if (context.quiet) return;
    context.print("scrubbed: {} read, {}\n", human_bytes(report.bytes),
                  report.complete ? "up to the end of the store" : "to be continued");
  }

  std::string rate_;
  std::string for_;
  ScrubOptions options_;
};

}  // namespace

constinit const CommandEntry kScrubCommand = {kScrubInfo, make<ScrubCommand>};

}  // namespace weft
