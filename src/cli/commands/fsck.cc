#include "weft/store/fsck.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/json_lines.h"
#include "cli/shared/table.h"
#include "cli/shared/writer.h"
#include "os/sys.h"
#include "weft/programs/operations.h"
#include "weft/store/repair.h"

namespace weft {
namespace {

constexpr std::size_t kAffectedMax = 50;

constexpr CommandInfo kFsckInfo = {
    .name = "fsck",
    .summary = "check the store, repair it, or rebuild its index",
    .description =
        "Compares the index, the packs, the manifests and the journal, and reads and\n"
        "hashes every blob. A blob is one tensor, or another piece of a file, as the\n"
        "store holds it. fsck may run beside readers and imports. For damaged and missing\n"
        "content it also prints the versions and files that have it. Without an option it\n"
        "deletes damaged assembled files, unless something else is damaged too, and\n"
        "changes nothing else. The exit code is 1 if something is wrong.\n"
        "\n"
        "--repair stores damaged and missing content again, from each PATH of --from (a\n"
        "published file, a directory of them, another store, an origin), then from the\n"
        "cluster's origin, then from other nodes. Only weftd can ask other nodes. Every\n"
        "byte is verified before it is stored.\n"
        "\n"
        "--rebuild rebuilds the index from the packs, the manifests and the journal.\n"
        "Names, numbers, tags, times and inode numbers come back, and no removed version\n"
        "does. The rebuild also repairs damaged data of which the store has another copy.\n"
        "If something is lost, it names it, refuses, and changes nothing. --accept-loss\n"
        "rebuilds without the lost data. Lost version numbers are not given again, and\n"
        "the remains of a table of contents are kept as <pack>.toc.lost.\n"
        "\n"
        "With --origin, weftd checks the cluster's origin instead, and reads every byte of\n"
        "it. Together with --repair it writes damaged and missing files there again, from\n"
        "this node and from other nodes.\n",
    .examples =
        "weft fsck\n"
        "weft fsck --quick\n"
        "weft fsck --rebuild\n"
        "weft fsck --repair --from ~/models/llama\n"
        "weft fsck --origin --repair\n",
    .json =
        "{clean, rebuilt, refused, versions, blobs, packs, bytes_read, problems: [TEXT],\n"
        " repaired: [TEXT], lost: [TEXT], affected: [{model, version, file,\n"
        " tensors: [TEXT], more_tensors}], more_affected}\n"
        "with --origin: {clean, versions, waiting, manifests, packs, records, bytes_read,\n"
        " damaged, problems: [TEXT], repaired: [TEXT]}\n",
    .interrupted = "the store is as it was",
};

class FsckCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.flag("--rebuild", rebuild_, "rebuild the index, even if the old index does not open");
    options.flag("--accept-loss", accept_loss_, "rebuild without the lost data");
    options.flag("--repair", repair_, "store damaged and missing content again");
    options.values("--from", "PATH", from_, "where --repair looks first");
    options.flag("--origin", origin_, "check the cluster's origin");
    options.flag("--quick", quick_, "check only the records, and do not read the blobs");
  }

  Status check_usage() override {
    if (repair_ && (rebuild_ || accept_loss_ || quick_))
      return Error{Errc::invalid, "--repair excludes --rebuild, --accept-loss and --quick"};
    if (origin_ && (rebuild_ || accept_loss_ || quick_ || !from_.empty()))
      return Error{Errc::invalid, "--origin excludes --rebuild, --accept-loss, --quick and --from"};
    if (!from_.empty() && !repair_) return Error{Errc::invalid, "--from: expected together with --repair"};
    return {};
  }

  Result<int> run(Context& context) override {
    if (origin_) return check_origin(context);
    AffectedFiles affected;
    WEFT_TRY(FsckReport report, check(context, affected));
    context.json ? print_json(context, report, affected) : print_lines(context, report, affected);
    if (report.clean()) return kExitDone;
    context.note(fmt::format("{}: {}", context.store_path(), count_of(report.problems.size(), "problem")));
    return kExitFailed;
  }

 private:
  Result<int> check_origin(const Context& context) const {
    WEFT_TRY(const auto report, call_daemon<OriginFsckReport>(context, "fsck_origin", OriginFsckRequest{repair_}));
    if (context.json) {
      JsonWriter json;
      json.begin_object().member("clean", report.problems.empty());
      write_fields(json, report);
      context.print_json(json.end_object());
    } else {
      for (const std::string& problem : report.problems) context.print("{}\n", problem);
      for (const std::string& line : report.repaired) context.print("repaired: {}\n", line);
      context.print("checked: {}, {}, {}, {}, {} read\n", count_of(report.versions, "version"),
                    count_of(report.manifests, "manifest"), count_of(report.packs, "pack"),
                    count_of(report.records, "record"), human_bytes(report.bytes_read));
      if (report.waiting > 0) context.print("{} not at the origin yet\n", count_of(report.waiting, "version"));
    }
    if (report.problems.empty()) return kExitDone;
    context.note(fmt::format("origin: {}", count_of(report.problems.size(), "problem")));
    return kExitFailed;
  }

  // All of it happens in this process, so another user than the owner and root lacks the right.
  Result<FsckReport> check(const Context& context, AffectedFiles& affected) const {
    auto report = check_store(context, affected);
    return report.ok() ? std::move(report) : context.named_right(std::move(report).error(), Context::Right::own);
  }

  Result<FsckReport> check_store(const Context& context, AffectedFiles& affected) const {
    for (const std::string& path : from_)
      if (const auto there = stat_file(path); !there.ok())
        return Error{there.error().code, fmt::format("--from: {}", there.error().message)};
    FsckReport report;
    {
      ProgressBar bar = context.progress();
      if (rebuild_ || accept_loss_)
        return Store::rebuild(context.store_path(), content_decoder(), bar,
                              {accept_loss_, context.patience(), !quick_});
      WEFT_TRY(const auto store, context.open_to_read());
      WEFT_TRY(report, store->fsck({.rebuild = false, .data = !quick_}, content_decoder(), bar));
      WEFT_TRY(affected, affected_files(*store, report.damaged, kAffectedMax));
    }
    if (repair_ && !report.damaged.empty()) WEFT_CHECK(repair(context, report));
    return report;
  }

  // Checks the records again, because a repair may have changed them.
  Status repair(const Context& context, FsckReport& report) const {
    WEFT_TRY(const auto store, context.open_to_read());
    WEFT_TRY(const auto writer, context.repairer());
    WEFT_TRY(report.problems, writer->repair(*store, report.damaged, from_));
    for (const DamagedBlob& blob : report.damaged)
      if (std::ranges::none_of(report.problems, [&](const std::string& line) { return line.starts_with(blob.what); }))
        report.repaired.push_back(blob.what);
    WEFT_TRY(const FsckReport now, store->fsck({.rebuild = false, .data = false}, content_decoder(), no_progress()));
    const auto is_damage = [&now](const std::string& line) {
      return std::ranges::find(now.damaged, line, &DamagedBlob::what) != now.damaged.end();
    };
    std::ranges::remove_copy_if(now.problems, std::back_inserter(report.problems), is_damage);
    return {};
  }

  static void print_json(const Context& context, const FsckReport& report, const AffectedFiles& affected) {
    JsonWriter json;
    json.begin_object().member("clean", report.clean()).member("rebuilt", report.rebuilt);
    json.member("versions", report.versions).member("blobs", report.blobs).member("packs", report.packs);
    json.member("bytes_read", report.bytes_read).member("refused", report.refused);
    write_lines(json, "problems", report.problems);
    write_lines(json, "repaired", report.repaired);
    write_lines(json, "lost", report.lost);
    json.key("affected").begin_array();
    for (const AffectedFile& file : affected.files) {
      json.begin_object().member("model", file.model).member("version", file.number).member("file", file.path);
      write_lines(json, "tensors", file.tensors);
      json.member("more_tensors", file.more_tensors).end_object();
    }
    json.end_array().member("more_affected", affected.more).end_object();
    context.print_json(json);
  }

  static void print_lines(const Context& context, const FsckReport& report, const AffectedFiles& affected) {
    for (const std::string& problem : report.problems) context.print("{}\n", problem);
    for (const AffectedFile& file : affected.files) context.print("affected: {}\n", file.text());
    if (affected.more > 0) context.print("affected: {} more\n", count_of(affected.more, "file"));
    for (const std::string& line : report.repaired) context.print("repaired: {}\n", line);
    for (const std::string& line : report.lost) context.print("lost: {}\n", line);
    if (report.refused)
      return context.print("index not rebuilt: data is lost; `weft fsck --accept-loss` rebuilds without it\n");
    if (report.rebuilt) return context.print("index rebuilt: {}\n", count_of(report.versions, "version"));
    context.print("checked: {}, {}, {}, {} read\n", count_of(report.versions, "version"),
                  count_of(report.blobs, "blob"), count_of(report.packs, "pack"), human_bytes(report.bytes_read));
  }

  bool rebuild_ = false;
  bool accept_loss_ = false;
  bool quick_ = false;
  bool origin_ = false;
  bool repair_ = false;
  std::vector<std::string> from_;
};

}  // namespace

constinit const CommandEntry kFsckCommand = {kFsckInfo, make<FsckCommand>};

}  // namespace weft
