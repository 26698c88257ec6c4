#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "cli/shared/writer.h"

namespace weft {
namespace {

constexpr CommandInfo kRmInfo = {
    .name = "rm",
    .summary = "remove versions",
    .description =
        "A removed version disappears at once from every listing and mount. Open files\n"
        "stay readable. The number is never used again, and `weft log` still shows the\n"
        "version. `weft undelete` brings it back until gc frees its content: without\n"
        "weftd that is the next `weft gc`, and weftd does it after gc_delay. A version\n"
        "that has a tag is only removed with --force, and its tags with it.\n"
        "\n"
        "`weft rm MODEL --keep N` removes the versions that have no tag, but for the\n"
        "newest N.\n"
        "\n"
        "--purge takes versions down for good, also ones that are removed already. weftd\n"
        "frees their content at once on this node and at the origin, and so does every\n"
        "other node, an absent one when it comes back. `weft undelete` refuses them. Bytes\n"
        "that other versions need stay. MODEL means all its versions.\n",
    .examples =
        "weft rm bert@1\n"
        "weft rm --force bert@experiment\n"
        "weft rm bert --keep 5 --keep-best loss --dry-run\n"
        "weft rm --all bert\n"
        "weft rm --purge --force bert@2\n",
    .json =
        "{dry_run, removed: [{model, version}], kept_until, kept_until_ns}\n"
        "with --dry-run, removed lists what would be removed; kept_until is null if the\n"
        "next gc may free the content; with --purge: {dry_run, purged: [{model, version}],\n"
        " shared_with: [{model, version}], bytes_freed, origin_bytes_freed,\n"
        " origin_dead_bytes, nodes: [TEXT], absent: [TEXT], problems: [TEXT]}\n",
};

class RmCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.arguments("MODEL[@V]", request_.specs, OptionSet::Need::required,
                      "a version: a number or a tag; with --all or --keep a model");
    options.flag("--all", request_.all, "remove all versions of MODEL");
    options.value("--keep", "N", keep_, "remove the versions of MODEL that have no tag, but for the newest N");
    options.value("--keep-best", "METRIC", request_.keep.best,
                  "with --keep: also keep the version with the smallest value of METRIC; with -METRIC that with the "
                  "largest");
    options.flag("--purge", purge_, "take the versions down for good, on all nodes and at the origin");
    options.flag("-f,--force", request_.force, "also remove versions that have a tag");
    options.flag("-n,--dry-run", request_.dry_run, "only print what would be removed");
  }

  Status check_usage() override {
    if (!keep_.empty() && parse_u64(keep_).value_or(0) == 0)
      return Error{Errc::invalid, fmt::format("--keep: expected a number from 1, got \"{}\"", printable(keep_))};
    if (!request_.keep.best.empty() && keep_.empty())
      return Error{Errc::invalid, "--keep-best: expected together with --keep"};
    if (!keep_.empty() && (request_.all || request_.force))
      return Error{Errc::invalid, "--keep: expected neither --all nor --force"};
    if (purge_ && (request_.all || !keep_.empty()))
      return Error{Errc::invalid, "--purge: expected neither --all nor --keep"};
    return purge_ ? Status{} : check_specs();
  }

  Result<int> run(Context& context) override {
    if (purge_) return purge(context);
    request_.keep.newest = parse_u64(keep_).value_or(0);
    WEFT_TRY(const auto writer, context.writer());
    JsonWriter json;
    json.begin_object().member("dry_run", request_.dry_run).key("removed").begin_array();
    bool any = false;
    WEFT_TRY(const RemoveReport report, writer->remove(request_, [&](const VersionName& version) {
      any = true;
      json.raw(encode_fields(version));
      if (!context.json)
        context.print("{} {}\n", request_.dry_run ? "would remove" : "removed", spec_of(version.model, version.number));
    }));
    if (context.json) {
      print_json(context, json.end_array(), report.kept_until_ns);
    } else if (!any) {
      context.print("no version to remove\n");
    } else if (!request_.dry_run && !context.quiet) {
      print_until(context, report.kept_until_ns);
    }
    return kExitDone;
  }

 private:
  Result<PurgeReport> purge_with(const Context& context) const {
    const PurgeRequest request{request_.specs, request_.force, request_.dry_run};
    WEFT_TRY(const auto daemon, context.daemon());
    if (!daemon) return purge_here(context);
    return call_daemon<PurgeReport>(context, "purge", request);
  }

  // Without weftd: no other node has content.
  Result<PurgeReport> purge_here(const Context& context) const {
    PurgeReport report;
    WEFT_TRY(const auto writer, context.writer());
    for (const bool whole : {false, true}) {
      RemoveRequest some = request_;
      some.all = whole;
      std::erase_if(some.specs,
                    [whole](const std::string& spec) { return whole == (spec.find('@') != std::string::npos); });
      if (some.specs.empty()) continue;
      WEFT_CHECK(writer->remove(some, [&](const VersionName& version) { report.purged.push_back(version); }));
    }
    if (request_.dry_run) return report;
    WEFT_TRY(const GcOutcome freed, writer->collect({.all = true}));
    report.bytes_freed = freed.report.disk_bytes_freed;
    if (freed.report.versions_open > 0)
      report.problems.push_back("a reader has a version open: gc frees its content afterwards");
    return report;
  }

  Result<int> purge(const Context& context) const {
    WEFT_TRY(const PurgeReport report, purge_with(context));
    if (context.json) {
      JsonWriter json;
      json.begin_object().member("dry_run", request_.dry_run);
      write_fields(json, report);
      context.print_json(json.end_object());
    } else {
      print_purged(context, report);
    }
    return report.problems.empty() ? kExitDone : kExitFailed;
  }

  void print_purged(const Context& context, const PurgeReport& report) const {
    for (const VersionName& version : report.purged)
      context.print("{} {}\n", request_.dry_run ? "would purge" : "purged", spec_of(version.model, version.number));
    if (!report.shared_with.empty()) {
      std::vector<std::string> specs;
      for (const VersionName& version : report.shared_with) specs.push_back(spec_of(version.model, version.number));
      context.print("bytes that other versions need stay: {}{}\n", joined(specs, ", "),
                    specs.size() >= kSharersNamed ? " and perhaps more" : "");
    }
    if (!request_.dry_run)
      context.print("freed {} on this node and {} at the origin\n", human_bytes(report.bytes_freed),
                    human_bytes(report.origin_bytes_freed));
    if (report.origin_dead_bytes > 0)
      context.print("{} of dead bytes stay at the origin, in packs that could not be rewritten\n",
                    human_bytes(report.origin_dead_bytes));
    if (!report.nodes.empty()) context.print("other nodes that free it now: {}\n", joined(report.nodes, ", "));
    if (!report.absent.empty())
      context.print("absent nodes that free it when they come back: {}\n", joined(report.absent, ", "));
    for (const std::string& problem : report.problems) context.print("{}\n", problem);
  }

  static void print_json(const Context& context, JsonWriter& json, std::uint64_t kept_until_ns) {
    json.key("kept_until");
    kept_until_ns == 0 ? json.null() : json.value(utc_time(kept_until_ns));
    json.key("kept_until_ns");
    kept_until_ns == 0 ? json.null() : json.value(kept_until_ns);
    context.print_json(json.end_object());
  }

  static void print_until(const Context& context, std::uint64_t kept_until_ns) {
    if (kept_until_ns == 0) return context.print("`weft undelete` brings it back until the next gc\n");
    context.print(
        "`weft undelete` brings it back; weftd frees its content after {}, and earlier if space is short or "
        "`weft gc` runs\n",
        utc_time(kept_until_ns));
  }

  Status check_specs() const {
    const bool models = request_.all || !keep_.empty();
    for (const std::string& spec : request_.specs) {
      const bool version = spec.find('@') != std::string::npos;
      if (models && version)
        return Error{Errc::invalid,
                     fmt::format("{}: expected a model, got {}", request_.all ? "--all" : "--keep", spec)};
      if (!models && (!version || spec.ends_with('@')))
        return Error{Errc::invalid, fmt::format("expected MODEL@V, got {}; --all removes every version", spec)};
    }
    return {};
  }

  static constexpr std::size_t kSharersNamed = 8;

  RemoveRequest request_;
  bool purge_ = false;
  std::string keep_;
};

}  // namespace

constinit const CommandEntry kRmCommand = {kRmInfo, make<RmCommand>};

}  // namespace weft
