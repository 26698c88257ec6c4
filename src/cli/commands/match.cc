#include "weft/programs/match.h"

#include <algorithm>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/catalog.h"
#include "cli/shared/table.h"

namespace weft {
namespace {

constexpr CommandInfo kMatchInfo = {
    .name = "match",
    .summary = "find stored versions whose first layers equal those of a model",
    .description =
        "Compares the architecture of a version, of a directory or file that is not\n"
        "published, or of a graph (*.json, as `weft info --graph json` prints it) with\n"
        "the architectures of all versions. A layer is shared if it and every layer\n"
        "before it are the same in both. The version that shares the most layers comes\n"
        "first; --by decides between equals, and then the earlier version comes first.\n"
        "The tensors of shared layers have the same types and shapes, so a new model can\n"
        "take them over.\n",
    .examples =
        "weft match bert@2\n"
        "weft match ./new-model --top 1 --by prefix,accuracy --json\n"
        "weft match graph.json --by prefix,-loss\n",
    .json =
        "{query: {family, id, layers}, matches: [{model, version, shared, layers,\n"
        " metrics: {KEY: VALUE}, tensors: [{name, from, dtype, shape, bytes}],\n"
        " tensor_bytes}]}; name is a tensor of the query, from one of the version\n",
};

std::uint64_t bytes_of(const Match& match) {
  std::uint64_t bytes = 0;
  for (const TakenTensor& tensor : match.tensors) bytes += tensor.bytes;
  return bytes;
}

class MatchCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]|DIR|FILE", subject_, OptionSet::Need::required,
                     "the model to compare with all versions");
    options.value("--top", "K", top_, "show at most K versions (default: 10)");
    options.value("--by", "ORDER", by_, "prefix, or prefix,METRIC (largest first), or prefix,-METRIC (smallest first)",
                  {"prefix"});
  }

  Status check_usage() override {
    if (!top_.empty()) options_.top = parse_u64(top_).value_or(0);
    if (options_.top == 0)
      return Error{Errc::invalid, fmt::format("--top: expected a number from 1, got \"{}\"", printable(top_))};
    bool known =
        by_.empty() || by_ == "prefix" || (by_.starts_with("prefix,") && by_ != "prefix," && by_ != "prefix,-");
    if (!known)
      return Error{Errc::invalid,
                   fmt::format("--by: expected prefix, prefix,METRIC or prefix,-METRIC, got \"{}\"", printable(by_))};
    if (auto comma = by_.find(','); comma != std::string::npos) options_.metric = by_.substr(comma + 1);
    options_.smallest = options_.metric.starts_with('-');
    if (options_.smallest) options_.metric.erase(0, 1);
    return {};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(auto store, context.open_to_read());
    ProgressBar bar = context.progress();
    WEFT_TRY(MatchSubject subject, match_subject(*store, context.resolver(), subject_, bar));
    if (subject.graph.vertices.empty())
      return Error{Errc::invalid, fmt::format("{}: expected tensors to compare, got none", subject_)};
    WEFT_TRY(auto matches, find_matches(*store, context.resolver(), subject, options_));
    context.json ? print_json(context, subject, matches) : print_table(context, subject, matches);
    return kExitDone;
  }

 private:
  void print_table(const Context& context, const MatchSubject& subject, const std::vector<Match>& matches) const {
    const std::string& metric = options_.metric;
    if (matches.empty()) return context.print("no version shares a layer\n");
    std::vector<TextTable::Column> columns = {{"VERSION"}, {"SHARED", Align::right}, {"LAYERS", Align::right}};
    if (!metric.empty()) columns.push_back({metric, Align::right});
    columns.push_back({"TENSORS", Align::right});
    columns.push_back({"SIZE", Align::right});
    TextTable table(std::move(columns));
    for (const Match& match : matches) {
      std::vector<std::string> cells = {spec_of(match.version),
                                        fmt::format("{} of {}", match.shared, subject.graph.vertices.size()),
                                        fmt::format("{}", match.vertices)};
      if (!metric.empty()) cells.push_back(metric_text(match.version, metric));
      cells.push_back(fmt::format("{}", match.tensors.size()));
      cells.push_back(human_bytes(bytes_of(match)));
      table.row(std::move(cells));
    }
    context.print("{}", table.text());
  }

  static void write_match(JsonWriter& json, const Match& match) {
    json.begin_object().member("model", match.version.model_name).member("version", match.version.number);
    json.member("shared", match.shared).member("layers", match.vertices).key("metrics").begin_object();
    for (const auto& [key, value] : match.version.metrics) json.member(key, value);
    json.end_object().key("tensors").begin_array();
    for (const TakenTensor& tensor : match.tensors) {
      json.begin_object().member("name", tensor.name).member("from", tensor.from);
      json.member("dtype", dtype_info(tensor.dtype)->name).key("shape").begin_array();
      for (std::uint64_t dimension : tensor.shape) json.value(dimension);
      json.end_array().member("bytes", tensor.bytes).end_object();
    }
    json.end_array().member("tensor_bytes", bytes_of(match)).end_object();
  }

  static void print_json(const Context& context, const MatchSubject& subject, const std::vector<Match>& matches) {
    JsonWriter json;
    json.begin_object().key("query").begin_object().member("family", subject.graph.family);
    json.member("id", to_hex(graph_id(vertex_ids(subject.graph))));
    json.member("layers", std::uint64_t{subject.graph.vertices.size()}).end_object();
    json.key("matches").begin_array();
    for (const Match& match : matches) write_match(json, match);
    json.end_array().end_object();
    context.print_json(json);
  }

  std::string subject_;
  std::string top_;
  std::string by_;
  MatchOptions options_;
};

}  // namespace

constinit const CommandEntry kMatchCommand = {kMatchInfo, make<MatchCommand>};

}  // namespace weft
