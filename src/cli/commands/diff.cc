#include "cli/commands/commands.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr CommandInfo kDiffInfo = {
    .name = "diff",
    .summary = "compare the tensors of two versions",
    .description =
        "Compares tensors by name, type, shape and content. Reads no tensor data. A mark\n"
        "stands before each tensor: ~ for changed, + for added, - for removed, = for\n"
        "unchanged. If BEFORE has the content of an added tensor under another name, the\n"
        "line says so.\n",
    .examples =
        "weft diff bert@1 bert@2\n"
        "weft diff bert@1 bert@2 --norms\n"
        "weft diff org/base org/tuned --json | jq .changed\n",
    .json =
        "{before, after, changed: {tensors, bytes}, added, removed, same, files:\n"
        " [{change, path}], tensors: [{change, name, before: {file, dtype, shape, bytes},\n"
        " after, was, norms: {before, difference, largest, not_finite}}]}; keys that do\n"
        "not apply to a tensor are left out\n",
    .interrupted = "nothing was changed",
};

class DiffCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("BEFORE", before_, OptionSet::Need::required, "a version, MODEL[@V]");
    options.argument("AFTER", after_, OptionSet::Need::required, "the version to compare with BEFORE");
    options.flag("--norms", norms_,
                 "read the changed tensors of float types that kept their shape, and print how far they moved");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(auto store, context.open_to_read());
    WEFT_TRY(const VersionRow before, version_of(*store, before_));
    WEFT_TRY(const VersionRow after, version_of(*store, after_));
    WEFT_TRY(const Manifest first, load_manifest(*store, context.resolver(), before));
    WEFT_TRY(const Manifest second, load_manifest(*store, context.resolver(), after));
    const DiffSides sides{spec_of(before), spec_of(after), first, second};
    WEFT_TRY(const ManifestDiff diff, diff_manifests(sides.before, sides.after));
    Norms norms;
    if (norms_) {
      ProgressBar bar = context.progress();
      WEFT_TRY(norms, measure_norms(*store, sides, diff, bar));
    }
    context.print("{}", context.json ? diff_json(sides, diff, norms) + "\n" : render_diff(sides, diff, norms));
    return kExitDone;
  }

 private:
  std::string before_;
  std::string after_;
  bool norms_ = false;
};

}  // namespace

constinit const CommandEntry kDiffCommand = {kDiffInfo, make<DiffCommand>};

}  // namespace weft
