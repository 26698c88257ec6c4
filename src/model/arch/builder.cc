#include "model/arch/builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace weft {
namespace {

using Index = std::uint32_t;
using Labels = std::map<std::string_view, Index>;

bool one_of(std::string_view words, std::string_view word) {
  auto all = split(words, ' ');
  return !word.empty() && std::ranges::find(all, word) != all.end();
}

// True if `name` matches `pattern`, in which "{}" stands for a number.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t hole = pattern.find("{}");
  if (hole == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, hole))) return false;
  name.remove_prefix(hole);
  std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  return digits > 0 && name.substr(digits) == pattern.substr(hole + 2);
}

std::string filled(std::string_view pattern, std::size_t block) {
  std::size_t hole = pattern.find("{}");
  if (hole == std::string_view::npos) return std::string(pattern);
  return fmt::format("{}{}{}", pattern.substr(0, hole), block, pattern.substr(hole + 2));
}

std::vector<std::string_view> prefixes_of(const ArchTable& table) {
  std::vector<std::string_view> prefixes = split(table.prefixes, ' ');
  prefixes.emplace_back();
  return prefixes;
}

bool ignored(const ArchTable& table, std::string_view name) {
  for (std::string_view prefix : prefixes_of(table)) {
    if (!name.starts_with(prefix)) continue;
    for (std::string_view pattern : split(table.ignored, '|'))
      if (!pattern.empty() && matches(pattern, name.substr(prefix.size()))) return true;
  }
  return false;
}

// Returns the parameters of a spec: "heads=num_attention_heads|n_head:12 …"
ArchParams params_of(std::string_view spec, const ArchConfig& config) {
  ArchParams params;
  for (std::string_view item : split(spec, ' ')) {
    if (item.empty()) continue;
    std::size_t equals = item.find('=');
    std::size_t colon = std::min(item.find(':', equals), item.size());
    std::optional<std::string> value = config_value(config, item.substr(equals + 1, colon - equals - 1));
    if (!value && colon < item.size()) value = std::string(item.substr(colon + 1));
    if (value) params.emplace_back(item.substr(0, equals), *value);
  }
  std::ranges::sort(params);
  return params;
}

ArchLayer layer_of(const NamedLayer& named, std::string_view kind) {
  ArchLayer layer;
  layer.kind = kind;
  layer.name = named.full;
  for (const auto& [role, tensor] : named.tensors) layer.tensors.emplace_back(role, tensor.position);
  return layer;
}

class Builder {
 public:
  Builder(const ArchTable& table, std::span<const NamedTensor> tensors, const ArchConfig& config)
      : table_(table),
        config_(config),
        prefixes_(prefixes_of(table)),
        named_(layers_of(tensors, [&](std::string_view name) { return ignored(table, name); })),
        used_(named_.size()) {
    for (std::size_t i = 0; i < named_.size(); ++i) by_name_.emplace(named_[i].name, i);
  }

  std::optional<std::vector<ArchLayer>> build() {
    if (table_.sections.empty()) return chain();
    for (const ArchSection& section : table_.sections)
      if (!add_section(section)) return std::nullopt;
    if (!add_rest()) return std::nullopt;
    return std::move(layers_);
  }

 private:
  std::vector<ArchLayer> chain() {
    for (const NamedLayer& named : named_) append(named, params_of(table_.params, config_));
    return std::move(layers_);
  }

  bool add_section(const ArchSection& section) {
    if (!section.input.empty()) stream_ = find_label(section.input);
    if (!section.repeated) return add_rows(section, 0);
    for (std::size_t block = 0; any_of(section, block); ++block)
      if (!add_rows(section, block)) return false;
    local_.clear();
    return true;
  }

  bool any_of(const ArchSection& section, std::size_t block) const {
    return std::ranges::any_of(section.rows, [&](const ArchRow& row) { return find_layer(row, block).has_value(); });
  }

  bool add_rows(const ArchSection& section, std::size_t block) {
    local_.clear();
    for (const ArchRow& row : section.rows)
      if (!add_row(row, block)) return false;
    std::optional<Index> output = first_of(section.output);
    if (output) stream_ = output;
    if (!section.repeated) global_.insert(local_.begin(), local_.end());
    return true;
  }

  bool add_row(const ArchRow& row, std::size_t block) {
    bool needed = row.label.starts_with('*');
    std::string_view label = row.label.substr(needed ? 1 : 0);
    std::vector<Index> inputs = inputs_of(row.inputs);
    if (row.names.empty()) return add_sum(row, label, std::move(inputs));
    std::optional<Found> found = find_layer(row, block);
    if (!found) {
      if (needed) return false;
      return row.tied.empty() || add_tied(row, label, std::move(inputs));
    }
    if (inputs.empty() && !row.inputs.empty() && stream_) inputs = {*stream_};
    used_[found->layer] = true;
    put(label, layer_of(named_[found->layer], found->kind), row, std::move(inputs));
    return true;
  }

  bool add_sum(const ArchRow& row, std::string_view label, std::vector<Index> inputs) {
    if (inputs.empty()) return true;
    if (inputs.size() == 1) {
      set_label(label, inputs[0]);
      return true;
    }
    ArchLayer layer;
    layer.kind = row.kind;
    put(label, std::move(layer), row, std::move(inputs));
    return true;
  }

  // Adds the output layer of a model that reuses its embedding.
  bool add_tied(const ArchRow& row, std::string_view label, std::vector<Index> inputs) {
    std::optional<Index> from = find_label(row.tied);
    if (!from || inputs.empty() || !ties()) return true;
    ArchLayer layer;
    layer.kind = split(row.kind, '|')[0];
    layer.name = split(row.names, '|')[0];
    layer.tensors = layers_[*from].tensors;
    put(label, std::move(layer), row, std::move(inputs));
    layers_.back().params.emplace_back("tied", "true");
    std::ranges::sort(layers_.back().params);
    return true;
  }

  bool ties() const {
    if (config_value(config_, "general.architecture")) return true;  // GGUF without an output layer is tied
    std::string tied = config_value(config_, "tie_word_embeddings").value_or(table_.ties_by_default ? "true" : "false");
    std::string classes = config_value(config_, "architectures").value_or("");
    constexpr std::string_view kWithHead[] = {"LMHead", "ForCausalLM", "ForConditionalGeneration", "ForMaskedLM",
                                              "ForPreTraining"};
    return tied == "true" &&
           std::ranges::any_of(kWithHead, [&](std::string_view head) { return classes.find(head) != classes.npos; });
  }

  void put(std::string_view label, ArchLayer layer, const ArchRow& row, std::vector<Index> inputs) {
    layer.params = params_of(row.params, config_);
    layer.summed = inputs.size() > 1 && row.inputs.find('+') != std::string_view::npos;
    layer.inputs = std::move(inputs);
    layers_.push_back(std::move(layer));
    set_label(label, static_cast<Index>(layers_.size() - 1));
  }

  void set_label(std::string_view label, Index index) {
    local_[label] = index;
    latest_[label] = index;
  }

  std::optional<Index> find_label(std::string_view label) const {
    if (label == "<") return stream_;
    bool any_block = label.starts_with('^');
    if (any_block) label.remove_prefix(1);
    const Labels* const places[] = {any_block ? &latest_ : &local_, &global_};
    for (const Labels* labels : places)
      if (auto it = labels->find(label); it != labels->end()) return it->second;
    return std::nullopt;
  }

  std::optional<Index> first_of(std::string_view labels) const {
    for (std::string_view label : split(labels, '|'))
      if (auto index = find_label(label)) return index;
    return std::nullopt;
  }

  std::vector<Index> inputs_of(std::string_view spec) const {
    std::vector<Index> inputs;
    for (std::string_view labels : split(spec, spec.find('+') == std::string_view::npos ? ',' : '+'))
      if (auto index = first_of(labels)) inputs.push_back(*index);
    return inputs;
  }

  struct Found {
    std::size_t layer;
    std::string_view kind;
  };
  std::optional<Found> find_layer(const ArchRow& row, std::size_t block) const {
    if (row.names.empty()) return std::nullopt;
    std::vector<std::string_view> names = split(row.names, '|');
    std::vector<std::string_view> kinds = split(row.kind, '|');
    for (std::size_t i = 0; i < names.size(); ++i)
      for (std::string_view prefix : prefixes_) {
        auto it = by_name_.find(std::string(prefix) + filled(names[i], block));
        if (it != by_name_.end() && !used_[it->second]) return Found{it->second, kinds[std::min(i, kinds.size() - 1)]};
      }
    return std::nullopt;
  }

  void append(const NamedLayer& named, ArchParams params) {
    ArchLayer layer = layer_of(named, guessed_kind(named));
    layer.params = std::move(params);
    if (stream_) layer.inputs = {*stream_};
    stream_ = static_cast<Index>(layers_.size());
    layers_.push_back(std::move(layer));
  }

  // Appends layers that the table does not know. Fails if one is inside a block: it would change what the block
  // computes.
  bool add_rest() {
    for (std::size_t i = 0; i < named_.size(); ++i) {
      if (used_[i]) continue;
      if (in_block(named_[i].name)) return false;
      append(named_[i], {});
    }
    return true;
  }

  bool in_block(std::string_view name) const {
    for (const ArchSection& section : table_.sections) {
      if (!section.repeated) continue;
      for (const ArchRow& row : section.rows)
        for (std::string_view pattern : split(row.names, '|'))
          for (std::string_view prefix : prefixes_)
            if (!pattern.empty() && name.starts_with(prefix) &&
                name.substr(prefix.size()).starts_with(pattern.substr(0, pattern.find("{}"))))
              return true;
    }
    return false;
  }

  const ArchTable& table_;
  const ArchConfig& config_;
  const std::vector<std::string_view> prefixes_;
  const std::vector<NamedLayer> named_;
  std::vector<bool> used_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::vector<ArchLayer> layers_;
  Labels local_, global_, latest_;
  std::optional<Index> stream_;
};

}  // namespace

const ArchTable* table_for(const ArchConfig& config) {
  std::string type = config_value(config, "model_type|general.architecture").value_or("");
  std::string classes = config_value(config, "architectures").value_or("");
  for (const ArchTable* table : arch_tables()) {
    if (one_of(table->model_types, type)) return table;
    if (!type.empty() || classes.empty()) continue;
    auto starts = split(table->class_names, ' ');
    if (std::ranges::any_of(starts, [&](std::string_view start) { return classes.starts_with(start); })) return table;
  }
  return nullptr;
}

std::optional<std::vector<ArchLayer>> fit(const ArchTable& table, std::span<const NamedTensor> tensors,
                                          const ArchConfig& config) {
  return Builder(table, tensors, config).build();
}

std::vector<ArchLayer> in_sequence(std::span<const NamedTensor> tensors) {
  std::vector<ArchLayer> layers;
  for (const NamedLayer& named : layers_of(tensors, [](std::string_view) { return false; })) {
    ArchLayer layer = layer_of(named, guessed_kind(named));
    if (!layers.empty()) layer.inputs = {static_cast<Index>(layers.size() - 1)};
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace weft
