#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/table.h"
#include "weft/store/assembly.h"

namespace weft {
namespace {

constexpr CommandInfo kCacheInfo = {
    .name = "cache",
    .summary = "show or limit the cache of assembled files",
    .description =
        "Shows what the cache of assembled files holds. --max limits the size of the\n"
        "cache, at once, for all mounts that set no limit of their own. 0 keeps the cache\n"
        "empty. Files of pinned versions stay.\n",
    .examples =
        "weft cache\n"
        "weft cache --max 20G\n",
    .json = "{files, bytes, pinned_files, pinned_bytes, bytes_max}\n",
};

class CacheCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.value("--max", "SIZE", max_, "the limit in bytes, or with K, M, G, T or P in powers of 1024");
  }

  Status check_usage() override {
    bytes_max_ = parse_bytes(max_);
    if (max_.empty() || bytes_max_) return {};
    return Error{Errc::invalid, fmt::format("--max: expected a size, such as 0 or 20G, got {}", printable(max_))};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(auto store, context.open_to_read());
    if (bytes_max_)
      if (Status set = set_assembly_max(*store, *bytes_max_); !set.ok())
        return context.named_right(std::move(set).error(), Context::Right::own);
    const AssembledUsage usage = assembled_usage(*store);
    if (context.json) {
      JsonWriter json;
      json.begin_object().member("files", usage.files).member("bytes", usage.bytes);
      json.member("pinned_files", usage.pinned_files).member("pinned_bytes", usage.pinned_bytes);
      json.member("bytes_max", usage.bytes_max).end_object();
      context.print_json(json);
    } else {
      context.print("{}, {} of at most {}; {} of it pinned\n", count_of(usage.files, "assembled file"),
                    human_bytes(usage.bytes), human_bytes(usage.bytes_max), human_bytes(usage.pinned_bytes));
    }
    return kExitDone;
  }

 private:
  std::string max_;
  std::optional<std::uint64_t> bytes_max_;
};

}  // namespace

constinit const CommandEntry kCacheCommand = {kCacheInfo, make<CacheCommand>};

}  // namespace weft
