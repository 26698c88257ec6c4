#include "weft/store/gc.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "cli/shared/writer.h"

namespace weft {
namespace {

constexpr CommandInfo kGcInfo = {
    .name = "gc",
    .summary = "free the space that no version needs",
    .description =
        "Frees the space that only removed versions needed. gc deletes a pack if no\n"
        "version needs any of its bytes. It rewrites a pack if more than a fifth of it is\n"
        "dead, or if any of it is dead and the file system shares blocks. It also deletes\n"
        "assembled files that no version needs, and drafts in new/ to which nobody has\n"
        "written for a week, or for `drafts_keep` in weft.conf.\n"
        "\n"
        "gc runs beside imports and readers. A removed version that a reader has open or\n"
        "mapped stays complete until the reader closes it. If the disk is too full to\n"
        "rewrite a pack, gc says how much free space it needs.\n"
        "\n"
        "In a cluster gc needs the manifest of each version. If a node or etcd does not\n"
        "answer, gc frees only what no version decides: assembled files, drafts and pulls.\n"
        "It lists the reasons, each with the command against it, and the exit status is 1.\n"
        "\n"
        "With --origin, weftd frees packs and manifests at the cluster's origin instead. A\n"
        "removed version keeps its content there for the grace period, 7 days by default,\n"
        "so that `weft undelete` can bring it back. All nodes may publish meanwhile. A pack\n"
        "that is rewritten there stays for the grace period too: readers may use it.\n",
    .examples =
        "weft gc --dry-run\n"
        "weft gc\n"
        "weft gc --all\n"
        "weft gc --origin --grace 30d\n",
    .json =
        "{dry_run, versions_reaped, versions_open, blobs_freed, bytes_freed,\n"
        " packs_deleted, packs_compacted, disk_bytes_freed, busy_packs, dead_bytes,\n"
        " packs_waiting, bytes_wanted, stale_temporaries, assembled_files_removed,\n"
        " assembled_bytes_removed, drafts: [{path, bytes, unwritten_seconds}],\n"
        " undecided: [{version, problem, command}]}\n"
        "with --origin: {dry_run, versions, versions_in_grace, packs_freed, bytes_freed,\n"
        " manifests_freed, packs, dead_bytes, unfinished_freed, packs_rewritten,\n"
        " packs_spared}\n",
    .interrupted = "the store is whole; what was freed stays freed",
};

constexpr std::uint64_t kDay = 86'400;  // seconds
constexpr std::uint64_t kGraceMax = 36'500 * kDay;

class GcCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.flag("--dry-run", gc_.dry_run, "print what gc would free, and change nothing");
    options.flag("--all", gc_.all, "rewrite every pack that has dead bytes, however few");
    options.flag("--origin", origin_, "free packs and manifests at the cluster's origin");
    options.value("--grace", "DURATION", grace_,
                  "with --origin: how long removed versions keep their content, such as 12h or 30d (default 7d)");
  }

  Status check_usage() override {
    if (!grace_.empty() && !origin_) return Error{Errc::invalid, "--grace: expected together with --origin"};
    if (origin_ && gc_.all) return Error{Errc::invalid, "--origin excludes --all"};
    if (!grace_.empty() && !parse_time(grace_, kGraceMax))
      return Error{Errc::invalid,
                   fmt::format("--grace: expected a time such as 12h or 30d, got \"{}\"", printable(grace_))};
    return {};
  }

  Result<int> run(Context& context) override {
    if (origin_) return collect_origin(context);
    WEFT_TRY(const auto writer, context.writer());
    WEFT_TRY(const GcOutcome outcome, writer->collect(gc_));
    if (context.json) {
      print_json(context, outcome);
    } else {
      print_lines(context, outcome.report, outcome.swept, outcome.drafts);
      print_undecided(context, outcome.undecided);
    }
    return outcome.undecided.empty() ? kExitDone : kExitFailed;
  }

 private:
  static void print_undecided(const Context& context, const std::vector<UndecidedVersion>& undecided) {
    if (!undecided.empty()) context.print("removed versions stay, because gc cannot tell what is needed:\n");
    for (const UndecidedVersion& one : undecided)
      context.print("{}{}{}\n  {}\n", one.version, one.version.empty() ? "" : ": ", one.problem, one.command);
  }

  Result<int> collect_origin(const Context& context) const {
    const OriginGcRequest request{parse_time(grace_, kGraceMax).value_or(7 * kDay), gc_.dry_run};
    WEFT_TRY(const auto report, call_daemon<OriginGcReport>(context, "gc_origin", request));
    if (context.json) {
      JsonWriter json;
      json.begin_object().member("dry_run", gc_.dry_run);
      write_fields(json, report);
      context.print_json(json.end_object());
      return kExitDone;
    }
    context.print("{} {} at the origin: {} and {}; {} of {} kept\n", gc_.dry_run ? "would free" : "freed",
                  human_bytes(report.bytes_freed), count_of(report.packs_freed, "pack"),
                  count_of(report.manifests_freed, "manifest"), count_of(report.packs, "pack"),
                  count_of(report.versions, "version"));
    if (report.versions_in_grace > 0)
      context.print("{} removed within the grace period, kept\n", count_of(report.versions_in_grace, "version"));
    if (report.dead_bytes > 0)
      context.print("{} of dead bytes stay in packs that versions need\n", human_bytes(report.dead_bytes));
    if (report.packs_rewritten > 0)
      context.print("{} {} that {} partly dead\n", gc_.dry_run ? "would rewrite" : "rewrote",
                    count_of(report.packs_rewritten, "pack"), report.packs_rewritten == 1 ? "was" : "were");
    if (report.packs_spared > 0)
      context.print("{} stay until versions that may need them are at the origin\n",
                    count_of(report.packs_spared, "rewritten pack"));
    if (report.unfinished_freed > 0)
      context.print("{} {} that a writer left\n", gc_.dry_run ? "would delete" : "deleted",
                    count_of(report.unfinished_freed, "unfinished file"));
    return kExitDone;
  }

  void print_json(const Context& context, const GcOutcome& outcome) const {
    JsonWriter json;
    json.begin_object().member("dry_run", gc_.dry_run);
    write_fields(json, outcome);
    context.print_json(json.end_object());
  }

  void print_lines(const Context& context, const GcReport& report, const AssembledSweep& swept,
                   const std::vector<OldDraft>& drafts) const {
    context.print("{} {} on disk: {} in {} of {}; {} deleted, {} rewritten\n", gc_.dry_run ? "would free" : "freed",
                  human_bytes(report.disk_bytes_freed), human_bytes(report.bytes_freed),
                  count_of(report.blobs_freed, "blob"), count_of(report.versions_reaped, "removed version"),
                  count_of(report.packs_deleted, "pack"), report.packs_compacted);
    if (swept.files > 0)
      context.print("{} {} of {} in the cache\n", gc_.dry_run ? "would free" : "freed", human_bytes(swept.bytes),
                    count_of(swept.files, "assembled file"));
    for (const OldDraft& draft : drafts)
      context.print("{} the draft new/{}, {}: nobody has written to it for {}\n",
                    gc_.dry_run ? "would remove" : "removed", printable(draft.path), human_bytes(draft.bytes),
                    count_of(draft.unwritten_s / kDay, "day"));
    if (report.versions_open > 0)
      context.print("{} open in a reader, kept until closed\n", count_of(report.versions_open, "removed version"));
    if (report.busy_packs > 0) context.print("{} in use, left for the next run\n", count_of(report.busy_packs, "pack"));
    if (report.packs_waiting > 0)
      context.print("the disk is full: rewriting {} more needs {} of free space\n",
                    count_of(report.packs_waiting, "pack"), human_bytes(report.bytes_wanted));
    if (report.dead_bytes > 0)
      context.print("{} of dead bytes stay in packs that are not worth rewriting yet\n",
                    human_bytes(report.dead_bytes));
  }

  GcOptions gc_;
  bool origin_ = false;
  std::string grace_;
};

}  // namespace

constinit const CommandEntry kGcCommand = {kGcInfo, make<GcCommand>};

}  // namespace weft
