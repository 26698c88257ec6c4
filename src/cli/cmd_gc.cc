#include "base/text.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "node/control_messages.h"
#include "weft/assembly.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "gc",
    .summary = "give back the space that no version needs",
    .description =
        "Frees what only removed versions needed, by punching holes into packs and by\n"
        "deleting or compacting them. Runs beside imports and readers: packs that are in\n"
        "use are left for the next time, and so are removed versions that somebody has\n"
        "open or mapped, with all that they need. Assembled files that no version needs go too.\n",
    .examples =
        "weft gc --dry-run\n"
        "weft gc\n",
    .json =
        "{dry_run, versions_reaped, versions_open, blobs_freed, bytes_freed,\n"
        " packs_deleted, packs_punched, packs_compacted, disk_bytes_freed, busy_packs,\n"
        " stale_temporaries, assembled_files_removed, assembled_bytes_removed}\n",
    .interrupted = "the store is whole; what was freed stays freed",
};

class GcCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.flag("--dry-run", gc_.dry_run, "tell what would be freed, and change nothing");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto daemon, context.daemon());
    WEFT_TRY(const GcOutcome outcome, daemon ? collect_through(*daemon, context) : collect(context));
    const auto& [report, swept] = outcome;
    context.json ? print_json(context, report, swept) : print_lines(context, report, swept);
    return kExitDone;
  }

 private:
  Result<GcOutcome> collect(const Context& context) const {
    WEFT_TRY(auto store, context.open_to_write());
    GcOutcome outcome;
    {
      ProgressBar bar = context.progress();
      WEFT_TRY(outcome.report, store->gc(gc_, bar));
    }
    WEFT_TRY(outcome.swept, sweep_assembled(*store, gc_.dry_run));
    return outcome;
  }

  Result<GcOutcome> collect_through(control::Client& daemon, const Context& context) const {
    JsonWriter body;
    body.begin_object().member("dry_run", gc_.dry_run).end_object();
    WEFT_TRY(const control::Answer answer, context.ask(daemon, "gc", body.text()));
    return decode_gc(answer.body);
  }

  void print_json(const Context& context, const GcReport& report, const AssembledSweep& swept) const {
    JsonWriter json;
    json.begin_object().member("dry_run", gc_.dry_run).member("versions_reaped", report.versions_reaped);
    json.member("versions_open", report.versions_open);
    json.member("blobs_freed", report.blobs_freed).member("bytes_freed", report.bytes_freed);
    json.member("packs_deleted", report.packs_deleted).member("packs_punched", report.packs_punched);
    json.member("packs_compacted", report.packs_compacted).member("disk_bytes_freed", report.disk_bytes_freed);
    json.member("busy_packs", report.busy_packs).member("stale_temporaries", report.stale_temporaries);
    json.member("assembled_files_removed", swept.files).member("assembled_bytes_removed", swept.bytes).end_object();
    context.print_json(json);
  }

  void print_lines(const Context& context, const GcReport& report, const AssembledSweep& swept) const {
    context.print("{} {} on disk: {} in {} of {}; {} deleted, {} punched, {} compacted\n",
                  gc_.dry_run ? "would free" : "freed", human_bytes(report.disk_bytes_freed),
                  human_bytes(report.bytes_freed), count_of(report.blobs_freed, "blob"),
                  count_of(report.versions_reaped, "removed version"), count_of(report.packs_deleted, "pack"),
                  report.packs_punched, report.packs_compacted);
    if (swept.files > 0)
      context.print("{} {} of {} in the cache\n", gc_.dry_run ? "would free" : "freed", human_bytes(swept.bytes),
                    count_of(swept.files, "assembled file"));
    if (report.versions_open > 0)
      context.print("{} open, left until nobody has them open\n", count_of(report.versions_open, "removed version"));
    if (report.busy_packs > 0)
      context.print("{} in use, left for the next time\n", count_of(report.busy_packs, "pack"));
  }

  GcOptions gc_;
};

}  // namespace

std::unique_ptr<Command> make_gc_command() {
  return std::make_unique<GcCommand>();
}

}  // namespace weft
