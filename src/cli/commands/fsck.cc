#include "weft/fsck.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/json_lines.h"
#include "cli/shared/table.h"
#include "cli/shared/writer.h"
#include "weft/node.h"
#include "weft/repair.h"

namespace weft {
namespace {

constexpr std::size_t kAffectedMax = 50;

constexpr CommandInfo kInfo = {
    .name = "fsck",
    .summary = "check the store, or make its index anew",
    .description =
        "Compares index, packs, manifests and journal, and reads and hashes every blob.\n"
        "Deletes assembled files that are damaged, which can be made again, unless\n"
        "something else is damaged too, and changes nothing else. May run beside readers\n"
        "and imports.\n"
        "--rebuild makes the index again from packs, manifests and journal: names,\n"
        "numbers, tags, times and inode numbers come back, and no removed version does.\n"
        "Damaged data is repaired if the store has another copy: of the journal, of a\n"
        "pack's table of contents, of a blob (assembled files have some), of a manifest.\n"
        "If a file cannot be read just now, the rebuild ends with an error and changes\n"
        "nothing. If something is lost, the rebuild names it and refuses; --accept-loss\n"
        "rebuilds without it, and keeps what is left of a table of contents as\n"
        "<pack>.toc.lost. Lost numbers are not given again.\n"
        "Exit code 1 if something is wrong.\n"
        "\n"
        "For damaged and missing content it names the versions and files that have it.\n"
        "--repair stores that content again, from a PATH of --from (published files, a\n"
        "directory of them, another store, an origin), else from the origin, else from\n"
        "other nodes. Only weftd can ask other nodes. Every byte is verified first.\n",
    .examples =
        "weft fsck\n"
        "weft fsck --quick\n"
        "weft fsck --rebuild\n"
        "weft fsck --repair --from ~/models/llama\n",
    .json =
        "{clean, rebuilt, refused, versions, blobs, packs, bytes_read, problems: [TEXT],\n"
        " repaired: [TEXT], lost: [TEXT], affected: [{model, version, file,\n"
        " tensors: [TEXT], more_tensors}], more_affected}\n",
    .interrupted = "the store is as it was",
};

class FsckCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.flag("--rebuild", rebuild_, "make the index anew, also when it does not even open");
    options.flag("--accept-loss", accept_loss_, "rebuild without what is lost");
    options.flag("--repair", repair_, "store damaged and missing content again, from where it can be had");
    options.values("--from", "PATH", from_, "where to look for it first");
    options.flag("--quick", quick_, "go by the records alone, without reading the blobs");
  }

  Status check_usage() const override {
    if (repair_ && (rebuild_ || accept_loss_ || quick_))
      return Error{Errc::invalid, "--repair excludes --rebuild, --accept-loss and --quick"};
    if (!from_.empty() && !repair_) return Error{Errc::invalid, "--from: expected --repair with it"};
    return {};
  }

  Result<int> run(Context& context) override {
    AffectedFiles affected;
    WEFT_TRY(FsckReport report, check(context, affected));
    context.json ? print_json(context, report, affected) : print_lines(context, report, affected);
    if (report.clean()) return kExitDone;
    context.note(fmt::format("{}: {}", context.store_path(), count_of(report.problems.size(), "problem")));
    return kExitFailed;
  }

 private:
  Result<FsckReport> check(const Context& context, AffectedFiles& affected) const {
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
    WEFT_TRY(const auto writer, context.writer());
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
      return context.print("index not rebuilt: something is lost; `weft fsck --accept-loss` rebuilds without it\n");
    if (report.rebuilt) return context.print("index rebuilt: {}\n", count_of(report.versions, "version"));
    context.print("checked: {}, {}, {}, {} read\n", count_of(report.versions, "version"),
                  count_of(report.blobs, "blob"), count_of(report.packs, "pack"), human_bytes(report.bytes_read));
  }

  bool rebuild_ = false;
  bool accept_loss_ = false;
  bool quick_ = false;
  bool repair_ = false;
  std::vector<std::string> from_;
};

}  // namespace

std::unique_ptr<Command> make_fsck_command() {
  return std::make_unique<FsckCommand>();
}

}  // namespace weft
