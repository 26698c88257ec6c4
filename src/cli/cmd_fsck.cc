#include "base/text.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/table.h"
#include "weft/node.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "fsck",
    .summary = "check the store, or make its index anew",
    .description =
        "Compares index, packs, manifests and journal, and reads and hashes every blob.\n"
        "Changes nothing, and may run beside readers and imports.\n"
        "--rebuild makes the index again from packs, manifests and journal: names,\n"
        "numbers, tags, times and inode numbers come back, and no removed version does.\n"
        "Damaged data is repaired if the store has another copy: of the journal, of a\n"
        "pack's table of contents, of a blob, of a manifest. If a file cannot be read just\n"
        "now, the rebuild ends with an error and changes nothing. If something is lost, the\n"
        "rebuild names it and refuses; --accept-loss rebuilds without it, and keeps what is\n"
        "left of a table of contents as <pack>.toc.lost. Lost numbers are not given again.\n"
        "Exit code 1 if something is wrong.\n",
    .examples =
        "weft fsck\n"
        "weft fsck --quick\n"
        "weft fsck --rebuild\n",
    .json =
        "{clean, rebuilt, refused, versions, blobs, packs, bytes_read, problems: [TEXT],\n"
        " repaired: [TEXT], lost: [TEXT]}\n",
    .interrupted = "the store is as it was",
};

class FsckCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.flag("--rebuild", rebuild_, "make the index anew, also when it does not even open");
    options.flag("--accept-loss", accept_loss_, "rebuild without what is lost");
    options.flag("--quick", quick_, "go by the records alone, without reading the blobs");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(FsckReport report, check(context));
    context.json ? print_json(context, report) : print_lines(context, report);
    if (report.clean()) return kExitDone;
    context.note(fmt::format("{}: {}", context.store_path(), count_of(report.problems.size(), "problem")));
    return kExitFailed;
  }

 private:
  Result<FsckReport> check(const Context& context) const {
    ProgressBar bar = context.progress();
    if (rebuild_ || accept_loss_)
      return Store::rebuild(context.store_path(), content_decoder(), bar, {accept_loss_, context.patience(), !quick_});
    WEFT_TRY(auto store, context.open_to_read());
    return store->fsck({.rebuild = false, .data = !quick_}, content_decoder(), bar);
  }

  static void print_json(const Context& context, const FsckReport& report) {
    JsonWriter json;
    json.begin_object().member("clean", report.clean()).member("rebuilt", report.rebuilt);
    json.member("versions", report.versions).member("blobs", report.blobs).member("packs", report.packs);
    json.member("bytes_read", report.bytes_read).member("refused", report.refused);
    write_lines(json, "problems", report.problems);
    write_lines(json, "repaired", report.repaired);
    write_lines(json, "lost", report.lost);
    json.end_object();
    context.print_json(json);
  }

  static void print_lines(const Context& context, const FsckReport& report) {
    for (const std::string& problem : report.problems) context.print("{}\n", problem);
    for (const std::string& line : report.repaired) context.print("mended: {}\n", line);
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
};

}  // namespace

std::unique_ptr<Command> make_fsck_command() {
  return std::make_unique<FsckCommand>();
}

}  // namespace weft
