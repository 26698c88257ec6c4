#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "daemon_api/control_messages.h"

namespace weft {
namespace {

constexpr CommandInfo kEvictInfo = {
    .name = "evict",
    .summary = "delete fetched bytes to free disk space",
    .description =
        "Fetched bytes are a cache: the node fetches them again when they are read. evict\n"
        "deletes those of one version or of all versions. Bytes that were published on\n"
        "this node, that are pinned, or that a reader has open, stay.\n",
    .examples =
        "weft evict llama@2\n"
        "weft evict --all\n"
        "weft evict --all --keep 20G\n",
    .json = "{packs, disk_bytes, kept_bytes, pinned_bytes, busy_bytes}\n",
};

class EvictCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", request_.spec, OptionSet::Need::optional, "the version");
    options.flag("--all", all_, "evict the bytes of all versions");
    options.value("--keep", "SIZE", keep_, "keep so many bytes, those that were used last");
    options.flag("-n,--dry-run", request_.dry_run, "only print what would be evicted");
  }

  Status check_usage() override {
    if (request_.spec.empty() != all_) return Error{Errc::invalid, "expected MODEL[@V] or --all"};
    const auto bytes_max = parse_bytes(keep_.empty() ? "0" : keep_);
    if (!bytes_max)
      return Error{Errc::invalid, fmt::format("--keep: expected a size, such as 20G, got {}", printable(keep_))};
    request_.bytes_max = *bytes_max;
    return {};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto report, call_daemon<EvictReport>(context, "evict", request_));
    if (context.json)
      context.print_json(encode_fields(report));
    else
      context.print("{} {}; {} kept, {} of it pinned, {} in use\n", request_.dry_run ? "would free" : "freed",
                    human_bytes(report.disk_bytes), human_bytes(report.kept_bytes), human_bytes(report.pinned_bytes),
                    human_bytes(report.busy_bytes));
    return kExitDone;
  }

 private:
  EvictRequest request_;
  std::string keep_;
  bool all_ = false;
};

}  // namespace

constinit const CommandEntry kEvictCommand = {kEvictInfo, make<EvictCommand>};

}  // namespace weft
