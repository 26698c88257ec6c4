// The architectures that weft knows: their layers, names and edges. One file per family, listed in tables.cc.
// builder.cc interprets all tables.
#pragma once

#include <span>
#include <string_view>

namespace weft {

// One layer. A row without a layer in the model makes no vertex, unless the row has no names (a sum) or is tied.
struct ArchRow {
  // The name of the row in other rows. '*' in front: a model without this layer is not of this family.
  std::string_view label;
  std::string_view names;  // alternatives, separated by '|'; "{}" is the number of the block
  std::string_view kind;   // one kind, or one for each alternative, separated by '|'
  // Labels of the inputs: "a,b" in order, "a+b" summed; "a|b" the first that exists; "<" the input of the block; "^a"
  // the latest a of any block. Missing labels are left out.
  std::string_view inputs;
  std::string_view params = {};  // "heads=num_attention_heads|n_head:12 …": name, keys of the config, default
  // Label of the layer whose tensors this row uses if the model ties the two and has no layer for this row.
  std::string_view tied = {};
};

// Rows that occur once, or once for each block 0, 1, 2, …
struct ArchSection {
  std::span<const ArchRow> rows;
  std::string_view output;      // label of the result, which is "<" of the next block or section
  std::string_view input = {};  // label of "<" in the first block; empty: the last output
  bool repeated = false;
};

struct ArchTable {
  std::string_view family;
  std::string_view model_types;           // model_type of config.json, or general.architecture of GGUF; by spaces
  std::string_view class_names;           // starts of `architectures` of config.json, separated by spaces
  std::string_view prefixes;              // optional starts of names, separated by spaces
  std::string_view ignored;               // tensors that are no parameters, such as buffers of old checkpoints
  bool ties_by_default = false;           // the output layer shares the embedding, unless the config denies it
  std::span<const ArchSection> sections;  // empty: a chain of all layers, ordered by number
  std::string_view params = {};           // without sections: params of each layer
};

extern const ArchTable kArchBert;
extern const ArchTable kArchGpt2;
extern const ArchTable kArchLlama;
extern const ArchTable kArchT5;
extern const ArchTable kArchMlp;

std::span<const ArchTable* const> arch_tables();

}  // namespace weft
