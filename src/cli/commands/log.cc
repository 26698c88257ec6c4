#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/catalog.h"
#include "cli/shared/table.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr CommandInfo kLogInfo = {
    .name = "log",
    .summary = "show the history of a model or of a version, newest first",
    .description =
        "With MODEL, shows every version that was ever published, with its time, parents,\n"
        "metrics, publisher and message. Removed versions are marked as removed. With\n"
        "MODEL@V, shows that version and all its ancestors, whatever their models are.\n"
        "\n"
        "A node of a cluster may lack versions of MODEL, as in `weft ls`; log says so.\n",
    .examples =
        "weft log bert\n"
        "weft log bert@latest\n",
    .json =
        "{model, versions: [{model, version, latest, removed, durability, lost,\n"
        " publisher, user, node, time, time_ns, manifest, logical_bytes, tags, message,\n"
        " source: {endpoint, repository, revision, commit, access, time, urls,\n"
        "  left_out}, metrics: {KEY: VALUE},\n"
        " parents: [{model, version, declared, same_tensors, same_bytes}],\n"
        " parents_elsewhere}], complete}, newest first; complete as in `weft ls --json`;\n"
        "source has the known facts about a pull or an import from a hub's cache, or is\n"
        "null;\n"
        "with MODEL@V: {model, version, ancestors} as `weft lineage --json`; times are in\n"
        "UTC\n",
};

// Returns "in memory", with the id of the publishing node if that is another node of the cluster.
std::string memory_mark(const VersionRow& row, const std::optional<ClusterIdentity>& here) {
  if (!here || row.publisher == here->node) return "in memory";
  return "in memory of node " + printable(row.publisher);
}

std::string heading(const VersionEntry& version, const std::optional<ClusterIdentity>& here) {
  std::vector<std::string> marks = version.tags;
  if (version.latest) marks.insert(marks.begin(), "latest");
  if (version.row.removed) marks.push_back("removed " + short_time(version.row.removed_ns));
  if (!version.row.removed && version.durability == Durability::memory) marks.push_back(memory_mark(version.row, here));
  std::string text = fmt::format("{}  {}  {}", spec_of(version.row), short_time(version.row.time_ns),
                                 human_bytes(version.row.logical_bytes));
  return marks.empty() ? text : text + "  (" + joined(marks, ", ") + ")";
}

std::string details(const VersionRow& row) {
  std::string text;
  std::vector<std::string> words;
  for (const ParentRef& parent : row.parents) words.push_back(spec_of(parent.model, parent.number));
  if (!words.empty()) text += "    parents  " + joined(words, ", ") + "\n";
  words.clear();
  for (const auto& [key, value] : row.metrics) words.push_back(fmt::format("{}={}", key, value));
  if (!words.empty()) text += "    metrics  " + joined(words, ", ") + "\n";
  if (row.by != Author{}) text += fmt::format("    by       {}\n", author_text(row.by));
  if (!row.lost.empty()) text += fmt::format("    {}\n", row.lost);
  if (row.message.empty()) return text;
  for (std::string_view line : split(row.message, '\n')) text += fmt::format("    {}\n", line);
  return text;
}

class LogCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", model_, OptionSet::Need::required, "the model or the version");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(auto store, context.open_to_read());
    if (model_.find('@') != std::string::npos) return run_version(context, *store);
    // As in `weft ls`, the daemon is asked before the rows are read. The model itself may be missing.
    const std::string_view missing = why_incomplete(context, *store);
    const auto model = model_of(*store, model_);
    if (!model.ok() && !missing.empty())
      return Error{model.error().code, fmt::format("{}; {}", model.error().message, missing)};
    if (!model.ok()) return model.error();
    return run_model(context, *store, *model, missing);
  }

 private:
  // Prints page by page, from the newest number down.
  static Result<int> run_model(const Context& context, Store& store, const ModelRow& model, std::string_view missing) {
    JsonWriter json;
    json.begin_object().member("model", model.name).key("versions").begin_array();
    bool first = true;
    for (std::uint64_t end = model.next_number; end > model.first_number;) {
      const std::uint64_t begin = end - std::min<std::uint64_t>(end - model.first_number, limits::kRowsPerSnapshot / 2);
      WEFT_TRY(auto versions, versions_between(store, model, begin, end));
      std::string text;
      for (VersionEntry& version : versions) {
        if (!std::exchange(first, false)) text += '\n';
        text += heading(version, store.cluster()) + "\n" + details(version.row);
        if (context.json) write_version(json, version);
      }
      print(context, json, text);
      end = begin;
    }
    json.end_array().member("complete", missing.empty()).end_object();
    print(context, json, "");
    if (context.json) context.print_json_part("\n");
    if (!missing.empty()) context.note(missing);
    return kExitDone;
  }

  static void print(const Context& context, JsonWriter& json, const std::string& text) {
    context.json ? context.print_json_part(json.take()) : context.print("{}", text);
  }

  // Returns the versions with numbers from `begin` up to but excluding `end`, newest first.
  static Result<std::vector<VersionEntry>> versions_between(Store& store, const ModelRow& model, std::uint64_t begin,
                                                            std::uint64_t end) {
    std::vector<VersionEntry> out;
    Renewed renewed(store);
    WEFT_TRY(Snapshot * now, renewed.get(limits::kRowsPerSnapshot));
    WEFT_TRY(auto page, now->versions(model.id, std::to_string(begin - 1), end - begin));
    std::ranges::reverse(page.rows);
    for (VersionRow& row : page.rows) {
      VersionEntry& entry = out.emplace_back();
      if (model.tags != 0) {
        WEFT_TRY(entry.tags, tags_of(renewed, row));
      }
      entry.latest = row.number == model.latest;
      if (!row.removed) {
        WEFT_TRY(now, renewed.get());
        WEFT_TRY(entry.durability, now->durability(row));
      }
      entry.row = std::move(row);
    }
    return out;
  }

  Result<int> run_version(Context& context, Store& store) const {
    WEFT_TRY(const VersionRow row, version_or_tombstone(store, model_));
    WEFT_TRY(const KinGraph kin, kin_of(store, row, KinWay::ancestors));
    JsonWriter json;
    json.begin_object().member("model", row.model_name).member("version", row.number);
    json.key("ancestors").raw(kin_json(kin)).end_object();
    context.json ? context.print_json(json) : context.print("{}", render_log(kin));
    return kExitDone;
  }

  std::string model_;
};

}  // namespace

constinit const CommandEntry kLogCommand = {kLogInfo, make<LogCommand>};

}  // namespace weft
