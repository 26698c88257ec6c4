#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/table.h"
#include "weft/programs/match.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "find",
    .summary = "list the versions that match a query",
    .description =
        "QUERY consists of comparisons of names, facts, tensors and layers, joined by\n"
        "and, or, not and parentheses. After \"has\" it names a sequence of kinds of\n"
        "layers. weft-find(7) has the grammar. Without QUERY, lists all versions.\n",
    .examples =
        "weft find 'family = bert and parameters < 100M'\n"
        "weft find 'has linear[3072,768] -> linear[768,3072]{act=gelu} -> layer_norm'\n"
        "weft find 'metric.loss <= 0.3 and not dtype = F16' -0 | xargs -0 -n 1 weft info\n",
    .json =
        "{versions: [{model, version, time, time_ns, logical_bytes,\n"
        " metrics: {KEY: VALUE}}]}\n",
    .interrupted = "nothing was changed",
};

class FindCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("QUERY", query_, OptionSet::Need::optional, "the query, as one argument");
    options.flag("-0,--null", null_, "end names with a NUL byte instead of a newline");
  }

  Result<int> run(Context& context) override {
    auto query = Query::parse(query_.empty() ? "version > 0" : query_);
    if (!query.ok()) {
      context.note(fmt::format("query: {}", query.error().message));
      return kExitUsage;
    }
    WEFT_TRY(auto store, context.open_to_read());
    ProgressBar bar = context.progress();
    JsonWriter json;
    json.begin_object().key("versions").begin_array();
    WEFT_CHECK(find_versions(*store, context.resolver(), *query, bar, [&](const VersionRow& row) -> Status {
      print_version(context, json, row);
      return {};
    }));
    json.end_array().end_object();
    if (context.json) context.print_json(json.take());
    return kExitDone;
  }

 private:
  void print_version(const Context& context, JsonWriter& json, const VersionRow& row) const {
    if (!context.json) return null_ ? context.print_field(spec_of(row)) : context.print("{}\n", spec_of(row));
    json.begin_object().member("model", row.model_name).member("version", row.number);
    json.member("time", utc_time(row.time_ns)).member("time_ns", row.time_ns);
    json.member("logical_bytes", row.logical_bytes).key("metrics").begin_object();
    for (const auto& [key, value] : row.metrics) json.member(key, value);
    json.end_object().end_object();
    context.print_json_part(json.take());
  }

  std::string query_;
  bool null_ = false;
};

}  // namespace

constinit const CommandEntry kFindCommand = {kInfo, make<FindCommand>};

}  // namespace weft
