#include "model/arch/config.h"

#include <fmt/core.h>

#include <cmath>
#include <vector>

#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

std::string number_text(double value) {
  constexpr double kWhole = 9e15;
  if (std::isfinite(value) && std::abs(value) < kWhole && value == std::trunc(value))
    return fmt::format("{}", static_cast<std::int64_t>(value));
  return fmt::format("{:.6g}", value);
}

class ConfigReader final : public JsonHandler {
 public:
  Status begin_object() override { return enter(Place::object); }
  Status begin_array() override { return enter(Place::array); }
  Status end_object() override { return leave(); }
  Status end_array() override { return leave(); }
  Status key(std::string_view name) override {
    places_.back().key = name;
    return {};
  }
  Status text(std::string_view value) override {
    if (!places_.empty() && places_.back().kind == Place::array && objects_only(places_.size() - 1)) {
      auto before = facts_.find(path());
      return keep(path(), before == facts_.end() ? std::string(value) : fmt::format("{},{}", before->second, value));
    }
    return scalar(std::string(value));
  }
  Status number(std::uint64_t value) override { return scalar(fmt::format("{}", value)); }
  Status negative(std::int64_t value) override { return scalar(fmt::format("{}", value)); }
  Status real(double value) override { return scalar(number_text(value)); }
  Status boolean(bool value) override { return scalar(value ? "true" : "false"); }
  Status null() override { return {}; }

  ArchConfig take() { return std::move(facts_); }

 private:
  struct Place {
    enum Kind { object, array } kind;
    std::string key;
  };

  Status enter(Place::Kind kind) {
    if (places_.empty() && kind == Place::array) return Error{Errc::invalid, "no object"};
    places_.push_back({kind, {}});
    return {};
  }
  Status leave() {
    places_.pop_back();
    return {};
  }

  bool objects_only(std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i)
      if (places_[i].kind != Place::object) return false;
    return true;
  }

  std::string path() const {
    std::string path;
    for (const Place& place : places_)
      if (place.kind == Place::object) path += (path.empty() ? "" : ".") + place.key;
    return path;
  }

  Status scalar(std::string value) {
    if (places_.empty()) return Error{Errc::invalid, "no object"};
    return objects_only(places_.size()) ? keep(path(), std::move(value)) : Status{};
  }

  Status keep(const std::string& path, std::string value) {
    if (value.size() > limits::kConfigTextMax || path.size() > limits::kConfigTextMax) {
      facts_.erase(path);
      return {};
    }
    if (facts_.size() >= limits::kConfigEntriesMax && !facts_.contains(path)) return {};
    facts_[path] = std::move(value);
    return {};
  }

  std::vector<Place> places_;
  ArchConfig facts_;
};

}  // namespace

ArchConfig read_config(std::string_view json) {
  ConfigReader reader;
  if (!parse_json(json, limits::kJsonDepthMax, reader).ok()) return {};
  return reader.take();
}

ArchConfig config_of_metadata(const File& gguf) {
  ArchConfig config;
  for (const auto& [key, value] : gguf.metadata) {
    if (value.size() > limits::kConfigTextMax) continue;
    std::optional<double> number = parse_real(value);
    config[key] = number ? number_text(*number) : value;
  }
  return config;
}

std::optional<std::string> config_value(const ArchConfig& config, std::string_view keys) {
  for (std::string_view key : split(keys, '|'))
    if (auto it = config.find(key); it != config.end()) return it->second;
  return std::nullopt;
}

}  // namespace weft
