#include "drafts/draft_facts.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/json.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/text.h"
#include "os/entries.h"

namespace weft {
namespace {

constexpr std::string_view kEachMembers[] = {"model", "each", "when"};
constexpr std::string_view kMembers[] = {"message",    "metrics", "tags",  "parents", "inherit",
                                         "durability", "keep",    "model", "each",    "when"};

Status read_texts(const JsonValue& json, std::string_view name, std::vector<std::string>& out) {
  const JsonValue* value = json.find(name);
  if (value == nullptr || value->is_null()) return {};
  if (value->array() == nullptr) return unexpected(name, "a list of texts", value);
  for (const JsonValue& item : *value->array()) {
    if (item.text() == nullptr) return unexpected(name, "a list of texts", &item);
    out.push_back(*item.text());
  }
  return {};
}

Status read_text(const JsonValue& json, std::string_view name, std::string& out) {
  const JsonValue* value = json.find(name);
  if (value == nullptr || value->is_null()) return {};
  if (value->text() == nullptr) return unexpected(name, kJsonText, value);
  out = *value->text();
  return {};
}

std::optional<std::string> figure_text(const JsonValue& figure) {
  if (figure.is_object() || figure.array() != nullptr || figure.is_null()) return std::nullopt;
  if (figure.text() != nullptr) return *figure.text();
  JsonWriter text;
  write_json(text, figure);
  return text.take();
}

Status read_metrics(const JsonValue& json, std::vector<std::pair<std::string, std::string>>& out) {
  const JsonValue* value = json.find("metrics");
  if (value == nullptr || value->is_null()) return {};
  if (value->object() == nullptr) return unexpected("metrics", "an object of figures and texts", value);
  for (const auto& [name, figure] : *value->object()) {
    auto text = figure_text(figure);
    if (!text) return unexpected("metrics." + name, "a figure or a text", &figure);
    out.emplace_back(name, std::move(*text));
  }
  return {};
}

Status read_name(const JsonValue& json, std::string_view name, std::string& out) {
  WEFT_CHECK(read_text(json, name, out));
  if (out.empty() || out.find('/') != std::string::npos)
    return Error{Errc::invalid,
                 fmt::format("\"{}\": expected a name without a slash, got \"{}\"", name, printable(out))};
  return {};
}

Status read_each(const JsonValue& json, std::optional<EachCheckpoint>& out) {
  if (std::ranges::none_of(kEachMembers, [&](std::string_view name) { return json.find(name) != nullptr; })) return {};
  EachCheckpoint each;
  WEFT_CHECK(read_text(json, "model", each.model));
  if (each.model.empty()) return Error{Errc::invalid, "expected \"model\" beside \"each\" and \"when\""};
  WEFT_CHECK(read_name(json, "each", each.pattern));
  WEFT_CHECK(read_name(json, "when", each.when));
  out = std::move(each);
  return {};
}

}  // namespace

Result<DraftFacts> parse_draft_facts(const std::string& text) {
  WEFT_TRY(const JsonValue json, JsonValue::parse(text));
  if (!json.is_object()) return unexpected("the file", "an object", &json);
  for (const auto& [name, value] : *json.object())
    if (std::ranges::find(kMembers, name) == std::end(kMembers))
      return Error{Errc::invalid,
                   fmt::format("expected message, metrics, tags, parents, inherit, durability, keep, model, "
                               "each or when, got \"{}\"",
                               printable(name))};
  DraftFacts facts;
  WEFT_CHECK(read_text(json, "message", facts.message));
  WEFT_CHECK(read_text(json, "inherit", facts.inherit));
  WEFT_CHECK(read_text(json, "durability", facts.durability));
  WEFT_TRY(facts.keep, json.number_or("keep", 0));
  WEFT_CHECK(read_texts(json, "tags", facts.tags));
  WEFT_CHECK(read_texts(json, "parents", facts.parents));
  WEFT_CHECK(read_metrics(json, facts.metrics));
  WEFT_CHECK(read_each(json, facts.each));
  return facts;
}

Result<std::optional<DraftFacts>> read_draft_facts(int content) {
  const auto text = read_text_at(content, kDraftFactsFile, limits::kDraftFactsMax);
  if (!text.ok() && text.error().code == Errc::not_found) return std::optional<DraftFacts>();
  if (!text.ok()) return text.error();
  auto facts = parse_draft_facts(*text);
  if (!facts.ok()) return Error{Errc::invalid, fmt::format("{}: {}", kDraftFactsFile, facts.error().message)};
  return std::optional(std::move(facts).value());
}

// The log is a list of objects: some with a loss, others with an eval_loss.
std::vector<std::pair<std::string, std::string>> trainer_metrics(int content) {
  std::vector<std::pair<std::string, std::string>> metrics;
  const auto text = read_text_at(content, "trainer_state.json", limits::kTrainerStateMax);
  if (!text.ok()) return metrics;
  const auto json = JsonValue::parse(*text, {.values_max = limits::kTrainerValuesMax});
  const JsonValue* history = json.ok() ? json->find("log_history") : nullptr;
  if (history == nullptr || history->array() == nullptr) return metrics;
  for (const char* name : {"loss", "eval_loss", "step", "epoch"}) {
    for (auto entry = history->array()->rbegin(); entry != history->array()->rend(); ++entry) {
      const JsonValue* figure = entry->find(name);
      if (figure == nullptr) continue;
      if (auto one = figure_text(*figure)) metrics.emplace_back(name, std::move(*one));
      break;
    }
  }
  return metrics;
}

}  // namespace weft
