// What weft knows of an architecture: which layers it has, what they are called, what feeds what. One file per family,
// listed in tables.cc; tables.cc turns none of them into code of its own, builder.cc reads them all.
#pragma once

#include <span>
#include <string_view>

namespace weft {

// One layer. A row whose layers are not in a model makes no vertex, unless it has no names at all (a sum).
struct ArchRow {
  std::string_view label;   // what other rows call it; '*' in front: a model without it is not of this family
  std::string_view names;   // alternatives, separated by '|'; "{}" is the number of the block
  std::string_view kind;    // or one for each alternative, separated by '|'
  std::string_view inputs;  // labels: "a,b" in order, "a+b" summed; "a|b" the first that is there; "<" what comes into
                            // the block; "^a" the latest a of any block; one that is not there is left out
  std::string_view params = {};  // "heads=num_attention_heads|n_head:12 …": name, keys of the config, default
  std::string_view tied = {};    // the label whose tensors it uses where the model has none for it, and ties them
};

// Rows that stand once, or once for each block 0, 1, 2, …
struct ArchSection {
  std::span<const ArchRow> rows;
  std::string_view output;      // the label that goes on: "<" of what follows
  std::string_view input = {};  // the label that "<" is in the first block, where it is not the last output
  bool repeated = false;
};

struct ArchTable {
  std::string_view family;
  std::string_view model_types;           // of config.json, or general.architecture of GGUF; separated by spaces
  std::string_view class_names;           // starts of `architectures` of config.json, separated by spaces
  std::string_view prefixes;              // that names may start with, separated by spaces
  std::string_view ignored;               // tensors that are no parameters: buffers that old checkpoints keep
  bool ties_by_default = false;           // the output layer with the embedding, where the config does not say
  std::span<const ArchSection> sections;  // none: all layers in the order of their numbers
  std::string_view params = {};           // without sections: of each layer
};

extern const ArchTable kArchBert;
extern const ArchTable kArchGpt2;
extern const ArchTable kArchLlama;
extern const ArchTable kArchT5;
extern const ArchTable kArchMlp;

std::span<const ArchTable* const> arch_tables();

}  // namespace weft
