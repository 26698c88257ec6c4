#include <array>

#include "cli/commands/commands.h"
#include "cli/shared/catalog.h"
#include "weft/programs/operations.h"

namespace weft {
namespace {

constexpr CommandInfo kLineageInfo = {
    .name = "lineage",
    .summary = "show the ancestors and the descendants of a version",
    .description =
        "Shows the ancestors of a version, then its descendants. Each line says how the\n"
        "version is related to the version above it: declared by the publisher, verified\n"
        "by equal tensors, or both. The mount has the same texts in lineage/. Removed\n"
        "versions stay in the lineage, and you can name one by its number.\n",
    .examples =
        "weft lineage org/merged\n"
        "weft lineage bert@3 --svg > bert.svg\n"
        "weft lineage bert@3 --owners | sort -t$'\\t' -k2 | head\n",
    .json =
        "{model, version, ancestors: [{model, version, removed, time, time_ns,\n"
        " logical_bytes, tensors, tensor_bytes, message, metrics: {KEY: VALUE}, parents:\n"
        " [{model, version, declared, same_tensors, same_bytes}], parents_elsewhere}],\n"
        " descendants: [...]}; each list is newest first and includes the version itself\n"
        "--json excludes --owners, --dot and --svg\n",
};

class LineageCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", spec_, OptionSet::Need::required,
                     "the version; V is a number or a tag, and the latest is the default");
    options.flag("--ancestors", ancestors_, "show only the ancestors");
    options.flag("--descendants", descendants_, "show only the descendants");
    options.flag("--owners", owners_, "print each tensor, the version that first had its content, and its bytes");
    options.flag("--dot", dot_, "print the nearest relatives as a graph for Graphviz");
    options.flag("--svg", svg_, "print the nearest relatives as an SVG picture");
  }

  Status check_usage() override {
    const std::array given = {ancestors_, descendants_, owners_, dot_, svg_};
    if (std::count(given.begin(), given.end(), true) > 1)
      return Error{Errc::invalid, "--ancestors, --descendants, --owners, --dot, --svg: expected at most one of them"};
    return {};
  }

  Result<int> run(Context& context) override {
    if (context.json && (owners_ || dot_ || svg_))
      return context.wrong_usage({Errc::invalid,
                                  "lineage: --json: expected none of --owners, --dot and --svg; see "
                                  "`weft lineage --help`"});
    WEFT_TRY(auto store, context.open_to_read());
    WEFT_TRY(const VersionRow row, version_or_tombstone(*store, spec_));
    WEFT_TRY(const std::string text, context.json ? json_of(*store, row) : text_of(*store, context.resolver(), row));
    context.print("{}", text);
    return kExitDone;
  }

 private:
  Result<std::string> text_of(Store& store, ManifestResolver& resolver, const VersionRow& row) const {
    if (owners_) return owners_text(store, resolver, row);
    if (dot_ || svg_) {
      WEFT_TRY(const KinGraph kin, kin_of(store, row, KinWay::both));
      return svg_ ? kin_svg(kin) : kin_dot(kin);
    }
    WEFT_TRY(const KinGraph up, kin_of(store, row, KinWay::ancestors));
    WEFT_TRY(const KinGraph down, kin_of(store, row, KinWay::descendants));
    if (ancestors_) return draw_ancestors(up);
    if (descendants_) return draw_descendants(down);
    std::string text = draw_ancestors(up);
    if (down.versions.size() > 1) text += "\ndescendants\n" + draw_descendants(down);
    return text;
  }

  static Result<std::string> json_of(Store& store, const VersionRow& row) {
    WEFT_TRY(const KinGraph up, kin_of(store, row, KinWay::ancestors));
    WEFT_TRY(const KinGraph down, kin_of(store, row, KinWay::descendants));
    JsonWriter json;
    json.begin_object().member("model", row.model_name).member("version", row.number);
    json.key("ancestors").raw(kin_json(up)).key("descendants").raw(kin_json(down)).end_object();
    return json.take() + "\n";
  }

  std::string spec_;
  bool ancestors_ = false;
  bool descendants_ = false;
  bool owners_ = false;
  bool dot_ = false;
  bool svg_ = false;
};

}  // namespace

constinit const CommandEntry kLineageCommand = {kLineageInfo, make<LineageCommand>};

}  // namespace weft
