#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/short_text.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/catalog.h"
#include "cli/shared/table.h"
#include "weft/programs/match.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr CommandInfo kFindInfo = {
    .name = "find",
    .summary = "list the versions that match a query",
    .description =
        "QUERY consists of comparisons of names, facts, tensors and layers, joined by\n"
        "and, or, not and parentheses. After \"has\" it names a sequence of kinds of\n"
        "layers. weft-find(7) has the grammar. Without QUERY, lists all versions.\n",
    .examples =
        "weft find 'family = bert and parameters < 100M'\n"
        "weft find 'has linear[3072,768] -> linear[768,3072]{act=gelu} -> layer_norm'\n"
        "weft find 'model = bert' --sort metric.loss --top 1\n"
        "weft find 'model = bert' --sort=-time --top 5 --columns time,metric.loss,message\n"
        "weft find 'metric.loss <= 0.3 and not dtype = F16' -0 | xargs -0 -n 1 weft info\n",
    .json =
        "{versions: [{model, version, time, time_ns, logical_bytes,\n"
        " metrics: {KEY: VALUE}}]}\n",
    .interrupted = "nothing was changed",
};

constexpr std::string_view kMetric = "metric.";
constexpr std::string_view kSortKeys[] = {"version", "time", "bytes"};
constexpr std::string_view kColumns[] = {"time", "size", "tags", "parents", "message"};

template <class List>
bool known(const List& list, std::string_view word) {
  const bool metric = word.starts_with(kMetric) && word.size() > kMetric.size();
  return metric || std::ranges::find(list, word) != std::end(list);
}

// The order of --sort: KEY is smallest first, -KEY largest first. Versions without the value come last.
class SortOrder {
 public:
  explicit SortOrder(std::string_view text)
      : descends_(text.starts_with('-')), key_(descends_ ? text.substr(1) : text) {}

  std::string_view key() const { return key_; }
  // Returns the value by which a version is ordered; empty if it has none.
  std::optional<double> of(const VersionRow& row) const {
    if (key_ == "version") return static_cast<double>(row.number);
    if (key_ == "time") return static_cast<double>(row.time_ns);
    if (key_ == "bytes") return static_cast<double>(row.logical_bytes);
    for (const auto& [name, value] : row.metrics)
      if (name == key_.substr(kMetric.size())) return parse_real(value);
    return std::nullopt;
  }
  bool before(const VersionRow& a, const VersionRow& b) const {
    const auto left = of(a);
    const auto right = of(b);
    if (!left || !right) return left.has_value() && !right.has_value();
    return descends_ ? *left > *right : *left < *right;
  }

 private:
  bool descends_;
  std::string_view key_;
};

class FindCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("QUERY", query_, OptionSet::Need::optional, "the query, as one argument");
    options.flag("-0,--null", null_, "end names with a NUL byte instead of a newline");
    options.value("--sort", "KEY", sort_,
                  "order by version, time, bytes or metric.NAME, smallest first; by -KEY largest first",
                  {"version", "time", "bytes", "metric.", "-version", "-time", "-bytes", "-metric."});
    options.value("--top", "N", top_, "list at most N versions");
    options.value("--columns", "LIST", columns_,
                  "print a table with these columns: time, size, tags, parents, message, metric.NAME");
  }

  Status check_usage() override {
    if (!sort_.empty() && !known(kSortKeys, SortOrder(sort_).key()))
      return Error{Errc::invalid,
                   fmt::format("--sort: expected version, time, bytes or metric.NAME, got \"{}\"", printable(sort_))};
    if (!top_.empty() && parse_u64(top_).value_or(0) == 0)
      return Error{Errc::invalid, fmt::format("--top: expected a number from 1, got \"{}\"", printable(top_))};
    if (columns_.empty()) return {};
    if (null_) return Error{Errc::invalid, "--null and --columns: expected only one of them"};
    for (const std::string_view column : split(columns_, ','))
      if (!known(kColumns, column))
        return Error{Errc::invalid, fmt::format("--columns: expected {} or metric.NAME, got \"{}\"",
                                                fmt::join(kColumns, ", "), printable(column))};
    return {};
  }

  Result<int> run(Context& context) override {
    auto query = Query::parse(query_.empty() ? "version > 0" : query_);
    if (!query.ok()) return context.wrong_usage({Errc::invalid, fmt::format("query: {}", query.error().message)});
    WEFT_TRY(auto store, context.open_to_read());
    ProgressBar bar = context.progress();
    JsonWriter json;
    json.begin_object().key("versions").begin_array();
    if (sort_.empty() && top_.empty() && columns_.empty()) {
      WEFT_CHECK(find_versions(*store, context.resolver(), *query, bar, [&](const VersionRow& row) -> Status {
        print_version(context, json, row);
        return {};
      }));
    } else {
      WEFT_TRY(const std::vector<VersionRow> rows, best_rows(context, *store, *query, bar));
      if (!columns_.empty() && !context.json) return print_table(context, *store, rows);
      for (const VersionRow& row : rows) print_version(context, json, row);
    }
    json.end_array().end_object();
    if (context.json) context.print_json(json.take());
    return kExitDone;
  }

 private:
  // Returns the first --top versions in the order of --sort; equal ones by model and number.
  Result<std::vector<VersionRow>> best_rows(const Context& context, Store& store, const Query& query,
                                            ProgressBar& bar) const {
    const SortOrder order(sort_);
    const std::size_t top = parse_u64(top_).value_or(SIZE_MAX);
    std::vector<VersionRow> rows;
    const auto trim = [&] {
      if (!sort_.empty())
        std::ranges::stable_sort(rows, [&](const VersionRow& a, const VersionRow& b) { return order.before(a, b); });
      rows.resize(std::min(rows.size(), top));
    };
    WEFT_CHECK(find_versions(store, context.resolver(), query, bar, [&](const VersionRow& row) -> Status {
      rows.push_back(row);
      if (rows.size() / 2 >= top) trim();
      return {};
    }));
    trim();
    return rows;
  }

  Result<int> print_table(const Context& context, Store& store, const std::vector<VersionRow>& rows) const {
    const auto columns = split(columns_, ',');
    std::vector<TextTable::Column> titles = {{"VERSION"}};
    for (const std::string_view column : columns) {
      const bool number = column == "size" || column.starts_with(kMetric);
      titles.push_back({title_of(column), number ? Align::right : Align::left});
    }
    TextTable table(std::move(titles));
    for (const VersionRow& row : rows) {
      std::vector<std::string> cells = {spec_of(row)};
      for (const std::string_view column : columns) {
        WEFT_TRY(std::string cell, cell_of(store, row, column));
        cells.push_back(std::move(cell));
      }
      table.row(std::move(cells));
    }
    context.print("{}", table.text());
    return kExitDone;
  }

  static std::string title_of(std::string_view column) {
    if (column.starts_with(kMetric)) return std::string(column.substr(kMetric.size()));
    std::string title(column);
    std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return title;
  }

  static Result<std::string> cell_of(Store& store, const VersionRow& row, std::string_view column) {
    if (column == "time") return local_time(row.time_ns);
    if (column == "size") return human_bytes(row.logical_bytes);
    if (column == "message") return first_line(row.message);
    if (column.starts_with(kMetric)) return metric_text(row, column.substr(kMetric.size()));
    std::vector<std::string> words;
    if (column == "parents") {
      for (const ParentRef& parent : row.parents) words.push_back(spec_of(parent.model, parent.number));
    } else {
      Renewed renewed(store);
      WEFT_TRY(words, tags_of(renewed, row));
    }
    return first_of(words, words.size());
  }

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
  std::string sort_, top_, columns_;
  bool null_ = false;
};

}  // namespace

constinit const CommandEntry kFindCommand = {kFindInfo, make<FindCommand>};

}  // namespace weft
